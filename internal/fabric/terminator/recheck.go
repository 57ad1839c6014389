package terminator

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// recheckAfter is when a router is asked whether a new terminator is still: a
// client may have gone just when it was written down.
const recheckAfter = 5 * time.Second

// recheck is the terminators whose router is to be asked about them.
type recheck struct {
	mu  sync.Mutex
	due map[string]map[string]time.Time // terminators by router
}

func (c *recheck) later(routerID, id string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.due == nil {
		c.due = map[string]map[string]time.Time{}
	}
	if c.due[routerID] == nil {
		c.due[routerID] = map[string]time.Time{}
	}
	c.due[routerID][id] = at
}

// take returns what is due.
func (c *recheck) take(now time.Time) map[string][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := map[string][]string{}
	for routerID, ids := range c.due {
		for id, at := range ids {
			if !at.After(now) {
				taken[routerID] = append(taken[routerID], id)
				delete(ids, id)
			}
		}
		if len(ids) == 0 {
			delete(c.due, routerID)
		}
	}
	return taken
}

// askDue asks routers about terminators whose time has come.
func (h *Hosts) askDue() {
	for routerID, ids := range h.recheck.take(h.Now()) {
		if r, ok := h.Routers.Get(routerID); ok {
			h.ask(r, ids)
		}
	}
}

// AskAll asks a router about all terminators that it is said to have.
func (h *Hosts) AskAll(r *control.Router) {
	var ids []string
	for t := range model.Terminators.Select(h.State.Snapshot(), "router", r.ID) {
		if t.Binding == BindingEdge || t.Binding == BindingTunnel {
			ids = append(ids, t.ID)
		}
	}
	h.ask(r, ids)
}

// askedAtOnce is how many terminators one frame asks about.
const askedAtOnce = 1000

// ask has a router say which of its terminators are still.
func (h *Hosts) ask(r *control.Router, ids []string) {
	snap := h.State.Snapshot()
	question := &message.ValidateTerminators{Fix: true}
	for _, id := range ids {
		t, ok := model.Terminators.Get(snap, id)
		if !ok || t.RouterID != r.ID {
			continue
		}
		// The revision tells whether it was written anew before the answer.
		marker := uint64(snap.RevOf(model.Terminators.Def, id))
		question.Terminators = append(question.Terminators, message.Terminator{ID: id, Binding: t.Binding, Address: t.Address, Marker: marker})
		if len(question.Terminators) == askedAtOnce {
			_ = r.Send(control.Message(message.TypeValidateTerminators, question))
			question.Terminators = nil
		}
	}
	if len(question.Terminators) > 0 {
		_ = r.Send(control.Message(message.TypeValidateTerminators, question))
	}
}

// onValidated takes out those terminators that their router says are no more.
func (h *Hosts) onValidated(r *control.Router, f *wire.Frame, m *message.TerminatorsValidated) {
	var gone []string
	for id, said := range m.States {
		if !said.Valid {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 {
		return
	}
	r.For(f, func(ctx context.Context) {
		err := h.removeIf(ctx, r, r.Author("validateTerminators", f), gone, func(tx *state.Tx, t *model.Terminator) bool {
			return m.States[t.ID].Marker == uint64(tx.RevOf(model.Terminators.Def, t.ID))
		})
		if err != nil && ctx.Err() == nil {
			r.Say(slog.LevelWarn, "terminators that are no more could not be removed", "error", err)
		}
	})
}
