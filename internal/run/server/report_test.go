package server

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"netkeep.internal/internal/data/store"
)

// TestReports has controllers tell of themselves, go, and have a clock that is off.
func TestReports(t *testing.T) {
	var r reports
	now := time.Now()
	tell := func(id string, routers int, at time.Time) store.Claim {
		text, err := json.Marshal(report{Version: "v1", Routers: routers, Time: at})
		if err != nil {
			t.Fatal(err)
		}
		return store.Claim{Name: reportPrefix + id, Value: text}
	}
	r.take([]store.Claim{tell("a", 1, now), tell("b", 2, now)}, true, now)
	later := now.Add(time.Minute)
	r.take([]store.Claim{tell("a", 3, later.Add(-10*time.Second)), {Name: reportPrefix + "b"}}, false, later)
	if a, _ := r.of("a"); !a.there || a.Routers != 3 || !a.at.Equal(later) {
		t.Errorf("of one that is there it is known: %+v", a)
	}
	if b, ok := r.of("b"); b.there || !ok || b.Routers != 2 || !b.at.Equal(now) {
		t.Errorf("of one that is gone it is known: %+v", b)
	}
	if _, ok := r.of("c"); ok || r.skew() != 0 {
		t.Errorf("of one that never was it is known, or clocks are %s apart", r.skew())
	}
	r.take([]store.Claim{tell("a", 3, later.Add(5*time.Minute))}, false, later)
	if got := r.skew(); got != 5*time.Minute {
		t.Errorf("clocks are %s apart", got)
	}
	// A feed that begins again tells of everybody who is there.
	r.take(nil, true, later)
	if a, _ := r.of("a"); a.there || r.skew() != 0 {
		t.Errorf("one that is gone is there: %+v", a)
	}
	r.take([]store.Claim{{Name: reportPrefix + "a", Value: []byte("{")}}, false, later)
	if a, _ := r.of("a"); a.there {
		t.Error("what cannot be read counts")
	}
}

// TestArchivedByAll waits with what is archived for those who are there, and for nobody
// before all have been heard of.
func TestArchivedByAll(t *testing.T) {
	var r reports
	now := time.Now()
	tell := func(id string, archived *int64) store.Claim {
		text, err := json.Marshal(report{Time: now, Archived: archived})
		if err != nil {
			t.Fatal(err)
		}
		return store.Claim{Name: reportPrefix + id, Value: text}
	}
	want := func(to int64, who string) {
		t.Helper()
		if is, last := r.archived(); is != to || last != who {
			t.Errorf("up to %d is archived by all, %q being the last; want %d, %q", is, last, to, who)
		}
	}
	want(0, "")
	far, near := int64(900), int64(100)
	r.take([]store.Claim{tell("a", &far), tell("b", &near), tell("c", nil)}, true, now)
	want(100, "b")
	r.take([]store.Claim{{Name: reportPrefix + "b"}}, false, now)
	want(900, "a")
	r.take(nil, true, now)
	want(math.MaxInt64, "")
}
