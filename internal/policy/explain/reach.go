package explain

import (
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/grant"
)

// Reach is what one identity can do with its services now, for itself: it is told
// what is in its way, and nothing of policies, roles and others.
type Reach struct {
	Network
	snap  *state.Snapshot
	own   *model.APISession
	other []*model.APISession // that are good, of the same identity
}

// maxDevices is how many devices of an identity are looked at beside the one that
// asks, those that were used last: it may open sessions without end, and each is
// looked at for each service.
const maxDevices = 32

// Reach looks as the identity of an API session.
func (n Network) Reach(snap *state.Snapshot, own *model.APISession) *Reach {
	r := &Reach{Network: n, snap: snap, own: own}
	for api := range model.APISessions.Select(snap, "identityId", own.IdentityID) {
		if api.ID != own.ID && n.Sessions.Flaw(snap, api) == "" {
			r.other = append(r.other, api)
		}
	}
	slices.SortFunc(r.other, func(a, b *model.APISession) int { return b.LastActivityAt.Compare(a.LastActivityAt) })
	r.other = r.other[:min(len(r.other), maxDevices)]
	return r
}

// Obstacle is what keeps the identity from dialing or hosting a service that a
// policy lets it; empty if nothing does.
func (r *Reach) Obstacle(service *model.Service, typ string) string {
	chain := r.Grants.Chain(r.snap, r.own, service.ID, typ)
	if chain.Cleared() != nil && !r.elsewhere(service, typ) {
		return "your devices fail its posture checks"
	}
	if chain.Routed() != nil {
		return "you share no edge router with it"
	}
	return r.beyond(chain, service, typ)
}

// elsewhere reports whether another device of the identity passes.
func (r *Reach) elsewhere(service *model.Service, typ string) bool {
	for _, api := range r.other {
		if r.Grants.Chain(r.snap, api, service.ID, typ).Cleared() == nil {
			return true
		}
	}
	return false
}

// beyond is what is in the way at the routers and behind them.
func (r *Reach) beyond(chain *grant.Chain, service *model.Service, typ string) string {
	none := "no edge router for it is online"
	for rec := range r.snap.Within(model.EdgeRouters.Def, chain.Routers()) {
		id := rec.Base().ID
		if !r.Online(id) {
			continue
		}
		if typ == model.Bind || len(r.Hosts(r.snap, service, id)) > 0 {
			return ""
		}
		none = "nobody hosts it at present"
	}
	return none
}
