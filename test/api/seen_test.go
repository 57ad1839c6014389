package api_test

import (
	"net/url"
	"testing"
	"time"
)

// TestLastSeen knows when an identity was last there, also after it has left, and
// filters know it too.
func TestLastSeen(t *testing.T) {
	admin, user := shared.Admin(t), shared.AddUser(t, false)
	seen := func() any { return admin.Get("identities/" + user.ID).Data()["lastSeenAt"] }
	is := func(filter string) bool {
		return len(admin.Get("identities?filter="+url.QueryEscape(`id = "`+user.ID+`" and `+filter)).Want(200).List()) == 1
	}
	if at := seen(); at != nil || !is("lastSeenAt = null") {
		t.Errorf("who was never there was seen at %v", at)
	}
	from := time.Now().Add(-time.Minute)
	c := shared.Login(t, user.Username, user.Password)
	c.Delete("current-api-session").Want(200)
	at, err := time.Parse(time.RFC3339, seen().(string))
	if err != nil || at.Before(from) {
		t.Errorf("it was last seen at %v: %v", at, err)
	}
	before := func(at time.Time) string { return "lastSeenAt < datetime(" + at.UTC().Format(time.RFC3339) + ")" }
	if is("lastSeenAt = null") || is(before(from)) || !is(before(from.Add(time.Hour))) {
		t.Error("filters do not go by it")
	}
	admin.Get("identities?sort=" + url.QueryEscape("lastSeenAt desc")).Want(200)
}
