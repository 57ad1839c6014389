package control

import (
	"iter"
	"slices"
	"strings"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Presences is who is connected, for those who look at it.
func (rs *Routers) Presences() kind.Source { return presences{rs} }

type presences struct{ *Routers }

// Lookup returns the presence of a router.
func (p presences) Lookup(id string) (kind.Record, bool) {
	found, ok := p.Connected(id)
	if !ok {
		return nil, false
	}
	return found, true
}

// All yields the presences by the ids of their routers.
func (p presences) All() iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		all := p.Routers.All()
		slices.SortFunc(all, func(a, b *Router) int { return strings.Compare(a.ID, b.ID) })
		for _, r := range all {
			if !yield(r.Presence()) {
				return
			}
		}
	}
}

// Len is how many routers are connected.
func (p presences) Len() int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.byID)
}

// Presence is what the router says of itself. It is never changed, only
// replaced.
func (r *Router) Presence() *model.Presence { return r.presence.Load() }

// Describe changes what the router says of itself.
func (r *Router) Describe(change func(*model.Presence)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := *r.presence.Load()
	change(&next)
	next.UpdatedAt = r.all.opt.Now()
	r.presence.Store(&next)
}
