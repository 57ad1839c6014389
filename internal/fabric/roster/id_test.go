package roster

import (
	"strings"
	"testing"
)

// TestValidID takes ids of ours and what routers knew a controller of others by.
func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		NewID(): true, "netkeep-0123": false, "netkeep-0123456789aX": false,
		"ctrl1": true, "controller.example.org client": true, "": false, " ctrl1": false, "a/b": false, "a\nb": false,
		strings.Repeat("x", 201): false,
	} {
		if ValidID(id) != want {
			t.Errorf("%q: want %v", id, want)
		}
	}
}
