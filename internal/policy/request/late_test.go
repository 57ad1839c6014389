package request_test

import (
	"log/slog"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/validity"
)

// TestDecideUntilThen has somebody decide who may for an hour, and nobody write down that
// the hour is over: they cannot after it, and what they said before does not count.
func TestDecideUntilThen(t *testing.T) {
	w := newWorld(t)
	w.desk.View = (&validity.Keeper{State: w.st, Now: w.clock, Log: slog.New(slog.DiscardHandler)}).View
	w.service(t, func(s *model.Service) { s.Requests.Approvals = 2 })
	for _, who := range []string{"cat", "dan"} {
		w.identity(t, who, func(i *model.Identity) { i.RoleAttributes = nil })
		w.give(t, func(tx *state.Tx) error {
			return model.Grants.Create(tx, &model.Grant{IdentityID: who, Attribute: "leads", Reason: "holidays", ValidUntil: w.clock().Add(time.Hour)})
		})
	}
	id := w.asked(t, "ann")
	if err := w.approve("cat", id); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Hour)
	if err := w.approve("dan", id); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("approving when one's time is over: %v", err)
	}
	if err := w.desk.Deny(t.Context(), by("dan"), "dan", id, "no"); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("denying when one's time is over: %v", err)
	}
	if err := w.approve("eve", id); err != nil {
		t.Fatal(err)
	}
	if q, _ := model.AccessRequests.Get(w.st.Snapshot(), id); !q.Pending() || len(q.Approvals) != 1 {
		t.Errorf("with the word of one whose time is over and of one other it is %s with %v", q.Standing, q.Approvals)
	}
}
