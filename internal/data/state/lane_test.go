package state_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// TestLanesTakeTurns has somebody write the model without a pause: a session that
// waits meanwhile is next, and so the other way about.
func TestLanesTakeTurns(t *testing.T) {
	var s *state.State
	var all sync.WaitGroup
	var order []kind.Lane
	write := func(i int) {
		all.Go(func() {
			must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
				return places.Create(tx, &place{Name: fmt.Sprint(i)})
			}))
		})
		all.Go(func() {
			must(t, s.UpdateSessions(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
				return visits.Create(tx, &visit{Token: fmt.Sprint(i)})
			}))
		})
	}
	// While a lane is written, something comes to wait in both.
	s = open(t, storetest.NewMemory(), state.Options{Stored: func(w state.Stored) {
		if order = append(order, w.Lane); len(order) > 40 {
			return
		}
		for write(len(order)); s.Waiting(kind.Model) == 0 || s.Waiting(kind.Session) == 0; {
			runtime.Gosched()
		}
	}})
	write(0)
	all.Wait() // those that are written last begin none
	// Two of the same may follow each other, three never: a turn ends with the
	// other lane.
	for i := range 38 {
		if order[i] == order[i+1] && order[i+1] == order[i+2] {
			t.Fatalf("one lane waits while the other is written again and again: %v", order)
		}
	}
}
