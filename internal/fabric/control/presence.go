package control

import (
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Presence is what the router says of itself. It is never changed, only
// replaced.
func (r *Router) Presence() *model.Presence { return r.presence.Load() }

// Describe changes what the router says of itself.
func (r *Router) Describe(change func(*model.Presence)) {
	defer r.all.opt.Changed(r.ID)
	r.mu.Lock()
	defer r.mu.Unlock()
	next := *r.presence.Load()
	change(&next)
	next.UpdatedAt = kind.MomentOf(r.all.opt.Now())
	r.presence.Store(&next)
}
