package server

import (
	"encoding/json"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/model"
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

// TestClockOfTheStore has the clocks of others differ from this controller's. Most of
// them are the store's, and of two the later one.
func TestClockOfTheStore(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hear := func(r *reports, at time.Time, delay time.Duration, ahead map[string]time.Duration) {
		t.Helper()
		var claims []store.Claim
		for id, by := range ahead {
			text, err := json.Marshal(report{Time: at.Add(by - delay)})
			if err != nil {
				t.Fatal(err)
			}
			claims = append(claims, store.Claim{Name: reportPrefix + id, Value: text})
		}
		r.take(claims, false, at)
	}
	type others = map[string]time.Duration
	const hour = time.Hour
	for name, test := range map[string]struct {
		others others
		want   time.Duration
		known  bool
	}{
		"nobody":                        {nil, 0, false},
		"one that is right":             {others{"b": time.Second}, time.Second, true},
		"one that is ahead":             {others{"b": hour}, hour, true},
		"one that is behind":            {others{"b": -hour}, 0, true},
		"one of two is ahead":           {others{"b": hour, "c": 0}, 0, true},
		"one of two is behind":          {others{"b": -hour, "c": 0}, 0, true},
		"both are ahead":                {others{"b": hour, "c": 2 * hour}, hour, true},
		"both are behind":               {others{"b": -hour, "c": -2 * hour}, -hour, true},
		"one of three is ahead":         {others{"b": hour, "c": 0, "d": 0}, 0, true},
		"what it says itself is no one": {others{"a": hour}, 0, false},
	} {
		var r reports
		for i := range 3 {
			hear(&r, now.Add(time.Duration(i)*reportEvery), 0, test.others)
		}
		if by, known := r.fromStore("a"); by != test.want || known != test.known {
			t.Errorf("%s: the store is ahead by %s, known %t; want %s, %t", name, by, known, test.want, test.known)
		}
		if r.confirm("a") != (test.known && test.want.Abs() <= 5*time.Second) {
			t.Errorf("%s: the others confirm the clock: %t", name, r.confirm("a"))
		}
	}

	// What is late, or comes all at once after a machine was asleep, is no clock that is
	// behind. That it is, is known when it was heard for a while, and no more when
	// one report is in time.
	var r reports
	for range 5 {
		hear(&r, now, 20*time.Second, others{"b": 0, "c": 0})
	}
	if by, known := r.fromStore("a"); known || by != 0 {
		t.Errorf("what was late is a clock that is %s ahead", by)
	}
	later := now.Add(2 * reportEvery)
	hear(&r, later, 20*time.Second, others{"b": 0, "c": 0})
	if by, known := r.fromStore("a"); !known || by != -20*time.Second {
		t.Errorf("what is late for %s is a clock that is %s ahead, known %t", later.Sub(now), by, known)
	}
	hear(&r, later, time.Second, others{"b": 0, "c": 0})
	if by, known := r.fromStore("a"); !known || by != -time.Second {
		t.Errorf("what is in time is a clock that is %s ahead, known %t", by, known)
	}
	r.take(nil, true, later)
	if _, known := r.fromStore("a"); known {
		t.Error("the clocks of who is gone are known")
	}
}

// TestReadyClock has a controller that is alone find what it stored in the future, and
// its clock set back while it runs.
func TestReadyClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := watched(t, 0)
		write := func() {
			t.Helper()
			if err := s.state.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
				return model.ConfigTypes.Create(tx, &model.ConfigType{Name: tx.Now().String()})
			}); err != nil {
				t.Fatal(err)
			}
		}
		write()
		ails(t, s, nil)
		var back time.Duration
		s.clock.Wall = func() time.Time { return time.Now().Round(0).Add(-back) }
		back = time.Hour
		ails(t, s, map[string]string{"clock": "the machine's clock was set back by 1h0m0s while the controller ran, which goes on with the time that has passed: set the clock right, or if it is right now, start the controller again"})
		s.clock.Believe() // as it is after a start
		ails(t, s, map[string]string{"clock": "the clock of this machine is 1h0m0s behind what was last stored, and nothing begins or ends before it has caught up: set it right"})
		<-time.After(time.Hour - 2*time.Second)
		ails(t, s, nil)
	})
}
