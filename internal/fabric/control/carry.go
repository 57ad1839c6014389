package control

import (
	"maps"
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/herald"
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

// Carried are the routers, by id, that have lately named an identity as connected to them, of
// each identity that any has named.
func (rs *Routers) Carried() map[string][]string {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	all := make(map[string][]string, len(rs.carried))
	for id, routers := range rs.carried {
		for r := range routers {
			all[id] = append(all[id], r.ID)
		}
	}
	return all
}

// maxCarried is how many identities one router may name.
const maxCarried = 100_000

// What those who look are told of an identity.
const (
	clientOnline  = "online"
	clientOffline = "offline"
	clientUnknown = "unknown" // the router that has named it is lost, and it may be connected still
)

// carries takes note of the identities that are connected to a router, by id
// whether they are. all says that there are no others.
func (rs *Routers) carries(r *Router, identities map[string]bool, all bool) {
	rs.mu.Lock()
	was := rs.before(r, identities)
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
			break
		}
		if rs.carried[id] == nil {
			rs.carried[id] = map[*Router]struct{}{}
		}
		rs.carried[id][r] = struct{}{}
		r.carrying[id] = struct{}{}
	}
	told := rs.moved(was, clientOffline)
	if all && was != nil {
		for id, at := range rs.unsure {
			if at == r.ID && len(rs.carried[id]) == 0 {
				delete(rs.unsure, id)
				told[id] = clientOffline
			}
		}
	}
	rs.mu.Unlock()
	rs.tellClients(told)
}

// loses forgets who is connected to a router that is lost.
func (rs *Routers) loses(r *Router) {
	rs.mu.Lock()
	was := rs.before(r, nil)
	for id := range r.carrying {
		rs.drop(r, id)
	}
	told := rs.moved(was, clientUnknown)
	for id := range told {
		if len(rs.unsure) < maxCarried {
			rs.unsure[id] = r.ID
		}
	}
	rs.mu.Unlock()
	rs.tellClients(told)
}

// before is which of the identities are connected to any router that a router has
// named, or names now; nil if nobody looks. The caller has the mutex, as that of moved.
func (rs *Routers) before(r *Router, identities map[string]bool) map[string]bool {
	if !rs.opt.Herald.Wanted(herald.Clients) {
		clear(rs.unsure)
		return nil
	}
	was := make(map[string]bool, len(r.carrying)+len(identities))
	for id := range r.carrying {
		was[id] = true
	}
	for id := range identities {
		was[id] = len(rs.carried[id]) > 0
	}
	return was
}

// moved is of whom that is not so any more, by what there is to tell.
func (rs *Routers) moved(was map[string]bool, gone string) map[string]string {
	told := map[string]string{}
	for id, before := range was {
		switch is := len(rs.carried[id]) > 0; {
		case is && !before:
			told[id] = clientOnline
			delete(rs.unsure, id)
		case !is && before:
			told[id] = gone
		}
	}
	return told
}

func (rs *Routers) tellClients(told map[string]string) {
	for _, id := range slices.Sorted(maps.Keys(told)) {
		rs.opt.Herald.Tell(herald.Event{Ref: state.Ref{Def: herald.Clients, ID: id}, Verb: told[id], At: rs.opt.Now()})
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
