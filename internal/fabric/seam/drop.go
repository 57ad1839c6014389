package seam

import (
	"context"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// DropLost ends the connections of routers that changes shut out, until ctx
// ends: those deleted, disabled or without the certificate that they connected
// with.
func DropLost(ctx context.Context, st *state.State, routers Routers) {
	sub := st.Subscribe(model.Routers.Def).Bare()
	known := known{}
	for {
		ev, err := sub.Next(ctx)
		if err != nil {
			return
		}
		for id, good := range known.learn(ev) {
			routers.Drop(id, good)
		}
	}
}

// certificate is the fingerprint of what a router may connect with; none if it
// may not.
func certificate(r *model.Router) string {
	if r == nil || r.Disabled {
		return ""
	}
	return r.Fingerprint
}

// known is the routers that may be connected, by id, as the last event left
// them.
type known map[string]*model.Router

// learn takes an event in and returns the routers whose certificate is worth
// nothing any more, each with the one that is now.
func (k known) learn(ev state.Event) (lost map[string]string) {
	lost = map[string]string{}
	see := func(id string, next *model.Router) {
		if was := certificate(k[id]); was != "" && certificate(next) != was {
			lost[id] = certificate(next)
		}
		if k[id] = next; next == nil {
			delete(k, id)
		}
	}
	if ev.Reset != nil {
		for id := range k {
			next, _ := model.Routers.Get(ev.Reset, id)
			see(id, next)
		}
		for r := range model.Routers.All(ev.Reset) {
			k[r.ID] = r
		}
		return lost
	}
	for _, w := range ev.Writes {
		for _, c := range w.Changes {
			if c.Def == model.Routers.Def {
				next, _ := c.After.(*model.Router)
				see(c.ID, next)
			}
		}
	}
	return lost
}
