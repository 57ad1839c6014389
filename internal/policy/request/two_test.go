package request_test

import (
	"sync"
	"testing"

	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/request"
)

// TestTwoControllers has people decide on a request at two controllers at once, and say it
// again as one does who was not answered: one word counts, whoever was too late is told,
// and there is one grant, or none.
func TestTwoControllers(t *testing.T) {
	store := storetest.NewMemory()
	w := newWorldOn(t, store)
	other, err := state.Open(t.Context(), store, model.All, state.Options{Frozen: true, Now: w.clock, Judge: power.Judge})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	desks := []request.Desk{w.desk, {State: other}}
	for round := range 20 {
		id := w.asked(t, "ann")
		if _, err := other.Since(t.Context(), w.st.Snapshot().Rev); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		said := make([]error, 2)
		for i, who := range deciders[:2] {
			all.Go(func() {
				if round%2 == 0 && i == 1 {
					said[i] = desks[i].Deny(t.Context(), by(who), who, id, "no")
				} else {
					_, said[i] = desks[i].Approve(t.Context(), by(who), who, id)
				}
			})
		}
		all.Wait()
		if (said[0] == nil) == (said[1] == nil) {
			t.Fatalf("round %d: both were told %v", round, said)
		}
		for _, err := range said {
			if err != nil && !fault.Is(err, fault.CodeInvalid) {
				t.Errorf("who was too late is told %v", err)
			}
		}
		if _, err := other.Since(t.Context(), w.st.Snapshot().Rev); err != nil {
			t.Fatal(err)
		}
		// The one who made it is gone before it could answer: it is asked again elsewhere.
		for i, who := range deciders[:2] {
			if _, err := desks[1-i].Approve(t.Context(), by(who), who, id); !fault.Is(err, fault.CodeInvalid) {
				t.Errorf("round %d: said again: %v", round, err)
			}
		}
		if _, err := w.st.Since(t.Context(), other.Snapshot().Rev); err != nil {
			t.Fatal(err)
		}
		grants := 0
		for g := range model.Grants.Select(w.st.Snapshot(), "identityId", "ann") {
			if g.RequestID == id {
				grants++
			}
		}
		q, _ := model.AccessRequests.Get(w.st.Snapshot(), id)
		if want := map[string]int{model.Approved: 1, model.Denied: 0}[q.Standing]; grants != want || q.Pending() {
			t.Fatalf("round %d: %d grants of a request that is %s", round, grants, q.Standing)
		}
		w.give(t, func(tx *state.Tx) error { return model.AccessRequests.Delete(tx, id) })
	}
}
