package terminator

import (
	"context"
	"fmt"
	"log/slog"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Change is how a host wants to be chosen from now on.
type Change struct {
	TerminatorID     string
	UpdateCost       bool
	Cost             uint32
	UpdatePrecedence bool
	Precedence       message.Precedence
}

// onUpdate answers a router whose client wants to be chosen otherwise.
func (h *Hosts) onUpdate(r *control.Router, f *wire.Frame, m *message.UpdateTerminator) {
	h.Work(r, f, message.TypeTerminatorUpdated, func(ctx context.Context) error {
		s, err := h.owner(r, m.SessionToken, m.APISessionToken)
		if err != nil {
			return err
		}
		change := Change{m.TerminatorID, m.UpdateCost, m.Cost, m.UpdatePrecedence, m.Precedence}
		return h.Update(ctx, r, f, change, func(t *model.Terminator) bool {
			return t.ServiceID == s.ServiceID && t.HostID == s.IdentityID
		})
	})
}

// Update changes how a terminator of a router is chosen, if it is one of those
// that the router asks for.
func (h *Hosts) Update(ctx context.Context, r *control.Router, f *wire.Frame, m Change, own func(*model.Terminator) bool) error {
	if m.UpdateCost && m.Cost > 65535 {
		return permit.Refuse(message.CodeInvalidCost, "the cost must be 0 to 65535")
	}
	wanted, err := precedence(m.Precedence)
	if err != nil && m.UpdatePrecedence {
		return err
	}
	return h.State.Update(ctx, r.Author("updateTerminator", f), func(tx *state.Tx) error {
		t, ok := model.Terminators.Get(tx, m.TerminatorID)
		if !ok || t.RouterID != r.ID || !own(t) {
			return permit.Refuse(message.CodeInvalidTerminator, "the host has no such terminator at this router")
		}
		return model.Terminators.Edit(tx, t.ID, func(t *model.Terminator) error {
			if m.UpdateCost {
				t.Cost = int(m.Cost)
			}
			if m.UpdatePrecedence {
				t.Precedence = wanted
			}
			return nil
		})
	})
}

// onRemoveOne answers a router whose client hosts no more.
func (h *Hosts) onRemoveOne(r *control.Router, f *wire.Frame, m *message.RemoveTerminator) {
	h.Work(r, f, message.TypeTerminatorRemoved, func(ctx context.Context) error {
		if _, err := h.owner(r, m.SessionToken, m.APISessionToken); err != nil {
			return err
		}
		return h.remove(ctx, r, f, []string{m.TerminatorID})
	})
}

// Remove takes out a terminator of a router, if it is one of those that the
// router asks for. One that is gone already is none that is left to remove.
func (h *Hosts) Remove(ctx context.Context, r *control.Router, f *wire.Frame, id string, own func(*model.Terminator) bool) error {
	return h.removeIf(ctx, r, r.Author("removeTerminators", f), []string{id}, func(_ *state.Tx, t *model.Terminator) bool { return own(t) })
}

// owner returns the session that a router changes terminators for.
func (h *Hosts) owner(r *control.Router, token, apiToken string) (*model.Session, error) {
	return permit.Session(h.State.Snapshot(), h.Sessions, permit.Request{RouterID: r.ID, SessionToken: token, APIToken: apiToken, Type: model.Bind})
}

// Work answers a request with an empty frame of a type, or with why not.
func (h *Hosts) Work(r *control.Router, f *wire.Frame, success int32, do func(ctx context.Context) error) {
	started := r.For(f, func(ctx context.Context) {
		err := r.Writing(ctx, func() error { return do(ctx) })
		if err == nil {
			r.Reply(f, &wire.Frame{Type: success})
			return
		}
		refused, ok := permit.AsRefusal(err)
		if !ok {
			r.Say(slog.LevelWarn, "a terminator could not be changed", "error", err)
			refused = control.TryAgain
		}
		r.Refuse(f, refused)
	})
	if !started {
		r.Refuse(f, control.Busy)
	}
}

// maxRemoved is how many terminators one frame may name.
const maxRemoved = 10_000

// onRemove answers a router that has lost hosts.
func (h *Hosts) onRemove(r *control.Router, f *wire.Frame, m *message.RemoveTerminators) {
	if len(m.IDs) > maxRemoved {
		r.Result(f, false, fmt.Sprintf("at most %d at a time", maxRemoved))
		return
	}
	started := r.For(f, func(ctx context.Context) {
		if err := r.Writing(ctx, func() error { return h.remove(ctx, r, f, m.IDs) }); err != nil {
			r.Say(slog.LevelWarn, "terminators could not be removed; the router tries again", "error", err)
			r.Result(f, false, "try again")
			return
		}
		r.Result(f, true, "")
	})
	if !started {
		r.Result(f, false, "the router asks for too much at once; try again")
	}
}

// removedAtOnce is how many terminators one write takes out.
const removedAtOnce = 100

// remove takes out those of a router's terminators that are named.
func (h *Hosts) remove(ctx context.Context, r *control.Router, f *wire.Frame, ids []string) error {
	return h.removeIf(ctx, r, r.Author("removeTerminators", f), ids, func(*state.Tx, *model.Terminator) bool { return true })
}

// removeIf takes out those of a router's terminators that are named and are
// so. What is not there is gone already, and what belongs to another router is
// none of its business.
func (h *Hosts) removeIf(ctx context.Context, r *control.Router, by state.Author, ids []string, so func(*state.Tx, *model.Terminator) bool) error {
	for len(ids) > 0 {
		n := min(removedAtOnce, len(ids))
		err := h.State.Update(ctx, by, func(tx *state.Tx) error {
			for _, id := range ids[:n] {
				t, ok := model.Terminators.Get(tx, id)
				if !ok || t.RouterID != r.ID || t.Binding != BindingEdge && t.Binding != BindingTunnel || !so(tx, t) {
					continue
				}
				if err := model.Terminators.Delete(tx, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// Invalid takes out a terminator that its router knows nothing of.
func (h *Hosts) Invalid(ctx context.Context, r *control.Router, f *wire.Frame, id string) {
	if err := h.remove(ctx, r, f, []string{id}); err != nil {
		r.Say(slog.LevelWarn, "a terminator that its router does not know could not be removed", "terminator", id, "error", err)
	}
}

// Failed takes note that a circuit could not end at a terminator: it costs more
// for a while.
func (h *Hosts) Failed(t *model.Terminator) { h.ledger.failed(t.ServiceID, t.ID, h.Now()) }

// Succeeded takes note that a circuit ends at a terminator: if it failed lately
// that counts for less.
func (h *Hosts) Succeeded(t *model.Terminator) { h.ledger.succeeded(t.ServiceID, t.ID, h.Now()) }

// Gone forgets what is known of a terminator that is no more.
func (h *Hosts) Gone(t *model.Terminator) { h.ledger.forget(t.ServiceID, t.ID) }

// DynamicCost is what a terminator costs more at present because it failed.
func (h *Hosts) DynamicCost(t *model.Terminator) int {
	return h.ledger.cost(t.ServiceID, t.ID, h.Now())
}
