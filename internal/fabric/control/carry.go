package control

import (
	"maps"
	"slices"
)

// Carries reports whether a router has lately named the identity as connected
// to it.
func (rs *Routers) Carries(identityID string) bool {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return len(rs.carried[identityID]) > 0
}

// Carriers are the routers that have lately named the identity as connected to
// them.
func (rs *Routers) Carriers(identityID string) []*Router {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	return slices.Collect(maps.Keys(rs.carried[identityID]))
}

// maxCarried is how many identities one router may name.
const maxCarried = 100_000

// carries takes note of the identities that are connected to a router, by id
// whether they are. all says that there are no others.
func (rs *Routers) carries(r *Router, identities map[string]bool, all bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if all {
		for id := range r.carrying {
			rs.drop(r, id)
		}
	}
	for id, connected := range identities {
		if !connected {
			rs.drop(r, id)
			continue
		}
		if len(r.carrying) == maxCarried {
			return
		}
		if rs.carried[id] == nil {
			rs.carried[id] = map[*Router]struct{}{}
		}
		rs.carried[id][r] = struct{}{}
		r.carrying[id] = struct{}{}
	}
}

func (rs *Routers) drop(r *Router, identityID string) {
	delete(r.carrying, identityID)
	delete(rs.carried[identityID], r)
	if len(rs.carried[identityID]) == 0 {
		delete(rs.carried, identityID)
	}
}

// Carrying takes note of the identities that are connected to the router, by
// id whether they are. all says that there are no others.
func (r *Router) Carrying(identities map[string]bool, all bool) { r.all.carries(r, identities, all) }
