package forward

import (
	"reflect"
	"testing"
	"time"

	"netkeep.internal/internal/wire/message"
	"netkeep.internal/internal/wire/stream"
)

// TestOwner has several controllers have circuits carried: each belongs to the
// one that was first, whoever leads it elsewhere.
func TestOwner(t *testing.T) {
	now := time.Unix(1000, 0)
	table := New(Options{ID: "r", Link: func(string) (Place, bool) { return nil, false }, Now: func() time.Time { return now }})
	route := func(id, owner, to string) {
		t.Helper()
		if err := table.Route(id, owner, []message.Forward{{From: "start", To: to, Type: message.ToStart}}); err != nil {
			t.Fatal(err)
		}
	}
	route("one", "a", "x")
	route("two", "b", "x")
	route("one", "b", "y")
	want := map[string]Carried{"one": {"a", map[string]string{"start": "y"}}, "two": {"b", map[string]string{"start": "x"}}}
	if got := table.Circuits(); !reflect.DeepEqual(got, want) {
		t.Errorf("it carries %v, want %v", got, want)
	}
	now = now.Add(time.Minute)
	idle := map[string]map[string]time.Duration{"a": {"one": time.Minute}, "b": {"two": time.Minute}}
	if got := table.Idle(time.Minute); !reflect.DeepEqual(got, idle) {
		t.Errorf("idle are %v, want %v", got, idle)
	}
	for _, id := range []string{"one", "two", "three"} {
		table.Payload("elsewhere", &stream.Payload{Circuit: id}, false)
	}
	known, unknown := table.Strays()
	if !reflect.DeepEqual(known, map[string][]string{"a": {"one"}, "b": {"two"}}) || !reflect.DeepEqual(unknown, []string{"three"}) {
		t.Errorf("strays are %v and %v", known, unknown)
	}
	table.Unroute("one")
	if owner, ok := table.Owner("one"); ok {
		t.Errorf("a circuit that is over belongs to %q", owner)
	}
	route("one", "b", "x")
	if owner, _ := table.Owner("one"); owner != "b" {
		t.Errorf("one that is made again belongs to %q", owner)
	}
}
