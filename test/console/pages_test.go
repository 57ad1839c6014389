package console

import (
	"net/http"
	"testing"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// TestPages opens the page of every kind, and its form.
func TestPages(t *testing.T) {
	b := admin(t, controller)
	for _, path := range []string{"/console/", "/console/search?q=admin"} {
		b.get(path).is(http.StatusOK)
	}
	for _, d := range model.All.Defs {
		if !d.Verbs.Has(kind.Lists | kind.Gets) {
			continue
		}
		b.get("/console/" + d.Path).is(http.StatusOK)
		b.get("/console/" + d.Path + "?wide=1").is(http.StatusOK)
		if d.Verbs.Has(kind.Creates) {
			b.get("/console/" + d.Path + "/new").is(http.StatusOK)
		}
	}
}
