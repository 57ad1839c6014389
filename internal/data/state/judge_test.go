package state_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// TestJudge has a judge who lets only the mayor take places away: it sees who
// wrote and what the write came to, its refusal leaves no trace, and others in the
// same commit do not suffer.
func TestJudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		mayor, tester := state.Program("mayor"), state.Program("tester")
		refusal := fault.New(fault.CodeUnauthorized, "only the mayor takes places away")
		s := open(t, memory, state.Options{Judge: func(_ context.Context, step state.Step, by state.Author) error {
			for _, ref := range step.Changed {
				_, before := step.Before.Lookup(ref.Def, ref.ID)
				_, after := step.After.Lookup(ref.Def, ref.ID)
				switch {
				case ref.ID == "quake":
					panic("the ground shakes")
				case ref.Def == places.Def && before && !after && by.Name != mayor.Name:
					return refusal
				}
			}
			return nil
		}})
		must(t, createPlace(s, t.Context(), "1", "home"))
		before := s.Snapshot()

		must(t, s.Update(t.Context(), tester, func(*state.Tx) error { return nil })) // of nothing there is nothing to judge
		if err := s.Delete(t.Context(), tester, places.Def, "1"); codeOf(err) != fault.CodeUnauthorized {
			t.Errorf("a delete by somebody else: %v", err)
		}
		tear := func(tx *state.Tx) error { return places.Delete(tx, "1") }
		if _, err := s.Try(t.Context(), tester, before, tear); codeOf(err) != fault.CodeUnauthorized {
			t.Errorf("a plan of somebody else: %v", err)
		}
		step, err := s.Try(t.Context(), mayor, before, tear)
		if err != nil || len(step.Changed) != 1 {
			t.Errorf("the mayor's plan changes %v: %v", step.Changed, err)
		}
		quake := s.Update(t.Context(), tester, func(tx *state.Tx) error {
			return places.Create(tx, &place{Meta: kind.Meta{ID: "quake"}, Name: "quake"})
		})
		if quake == nil || !strings.Contains(quake.Error(), "panic") {
			t.Errorf("a judge who panics consents: %v", quake)
		}
		if s.Snapshot().Rev != before.Rev {
			t.Error("what was refused left a trace")
		}

		const people = 10
		done := make(chan error, 2*people)
		for i := range people {
			go func() { done <- createPlace(s, t.Context(), fmt.Sprint("p", i), fmt.Sprint("place ", i)) }()
			go func() { done <- s.Delete(t.Context(), tester, places.Def, "1") }()
		}
		refused := 0
		for range 2 * people {
			if err := <-done; codeOf(err) == fault.CodeUnauthorized {
				refused++
			} else {
				must(t, err)
			}
		}
		if _, still := places.Get(s.Snapshot(), "1"); refused != people || !still {
			t.Errorf("%d of %d were refused, and the place is there: %v", refused, people, still)
		}
		must(t, s.Delete(t.Context(), mayor, places.Def, "1"))
		sameAsStore(t, memory, s)
	})
}
