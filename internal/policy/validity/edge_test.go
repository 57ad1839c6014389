package validity_test

import (
	"log/slog"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/validity"
)

// TestFarAway has ends beyond all years that are written in four digits, as a time with an
// offset can have them: they are refused, or are no reason for others not to end.
func TestFarAway(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	brief(t, st)
	for text, fits := range map[string]bool{"9999-12-31T23:59:59.999Z": true, "9999-12-31T23:59:59-23:00": false, "9999-12-31T23:59:59.9999Z": true} {
		far, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		for field, times := range map[string][2]*time.Time{"validUntil": {nil, &far}, "validFrom": {&far, nil}} {
			err = st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
				return model.ServicePolicies.Upsert(tx, field+text, func(p *model.ServicePolicy) {
					p.Name, p.Type, p.Semantic, p.ValidFrom, p.ValidUntil = field+text, model.Dial, model.AnyOf, times[0], times[1]
				})
			})
			if e, ok := err.(*fault.Error); fits && err != nil || !fits && (!ok || e.Field != field) {
				t.Errorf("%s %s: %v", field, text, err)
			}
		}
	}
	k := &validity.Keeper{State: st, Now: clock, Log: slog.New(slog.DiscardHandler)}
	now = now.Add(2 * time.Hour)
	if access.MayDial(k.View(st.Snapshot()), "ann", "pay") {
		t.Error("what is over counts")
	}
	if err := k.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if access.MayDial(st.Snapshot(), "ann", "pay") || access.MayDial(st.Snapshot(), "bob", "pay") {
		t.Error("what is over is not ended")
	}
}

// TestClockSteps sets the clock forth and back by more than controllers may differ: what
// is over stays over, and nothing ends twice.
func TestClockSteps(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	brief(t, st)
	k := &validity.Keeper{State: st, Now: clock, Log: slog.New(slog.DiscardHandler)}
	sees := func() bool { return access.MayDial(k.View(st.Snapshot()), "ann", "pay") }
	now = now.Add(time.Hour - 3*time.Second)
	for _, step := range []struct {
		by    time.Duration
		write bool
		sees  bool
	}{
		{0, true, true}, {-6 * time.Second, true, true}, {6 * time.Second, false, true},
		{6 * time.Second, false, false}, {-6 * time.Second, false, true}, // nobody has said so to anybody yet
		{6 * time.Second, true, false}, {-6 * time.Second, true, false}, {6 * time.Second, true, false},
	} {
		now = now.Add(step.by)
		if step.write {
			if err := k.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := sees(); got != step.sees {
			t.Errorf("after a step of %s (written: %v) ann may dial: %v", step.by, step.write, got)
		}
	}
}
