package cluster_test

import (
	"fmt"
	"net/http"
	"testing"

	"netkeep.internal/test/servertest"
)

// TestEventsElsewhere follows what happens at one of two controllers, is cut off and
// goes on at the other, again and again, while both are used to change things: every
// change and every entry of the audit log is told once, in one order.
func TestEventsElsewhere(t *testing.T) {
	beside(t)
	a, b := two(t)
	closing(t, a)
	admin := a.Admin(t)
	at := []*servertest.Client{admin, as(t, b, admin)}
	const kinds = "events?kinds=services,audit-entries"
	last := at[0].Stream(kinds).Next().ID
	var want []string
	for n := range 24 {
		name := fmt.Sprint("service", n)
		at[n/2%2].Post("services", M{"name": name, "encryptionRequired": true}).Want(http.StatusCreated)
		want = append(want, name)
	}
	changes, entries := []string{}, []string{}
	number := 0.0
	for turn := 0; len(changes) < len(want) || len(entries) < len(want); turn++ {
		stream := at[turn%2].With("Last-Event-ID", last).Stream(kinds)
		for range 5 {
			e := stream.Next()
			switch {
			case e.Name == "change":
				changes = append(changes, e.Data["name"].(string))
			case e.Name == "audit":
				if next := e.Data["number"].(float64); number != 0 && next != number+1 {
					t.Fatalf("after entry %v comes %v", number, next)
				}
				number = e.Data["number"].(float64)
				if e.Data["event"] == "created" && e.Data["targetKind"] == "service" {
					entries = append(entries, e.Data["targetName"].(string))
				}
			default:
				t.Fatalf("told %+v", e)
			}
			last = e.ID
			if len(changes) == len(want) && len(entries) == len(want) {
				break
			}
		}
		stream.Close()
	}
	for i, name := range want {
		if changes[i] != name || entries[i] != name {
			t.Fatalf("told %v, and of the log %v", changes, entries)
		}
	}
}
