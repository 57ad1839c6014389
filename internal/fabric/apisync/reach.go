package apisync

import (
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/wire"
)

// A router is told of the API sessions of those who may use it, and of its own.

// share tells each router of those API sessions that concern it. Most often
// there is one, or all concern the same routers.
func (s *Sync) share(snap *state.Snapshot, sessions []apiSession, say func(form, []apiSession) *wire.Frame) {
	if len(sessions) == 0 {
		return
	}
	type version struct {
		form form
		part string // which of them
	}
	routers, made := map[string]*cow.Bitmap{}, map[version]*wire.Frame{}
	for _, one := range sessions {
		if routers[one.IdentityID] != nil {
			continue
		}
		routers[one.IdentityID] = new(cow.Bitmap)
		if _, own := model.EdgeRouters.Get(snap, one.IdentityID); !own { // of itself alone
			routers[one.IdentityID] = access.EdgeRouters(snap, one.IdentityID)
		}
	}
	s.broadcast(func(r *control.Router, f form) *wire.Frame {
		var part []apiSession
		ord, known := snap.Ordinal(model.EdgeRouters.Def, r.ID)
		which := make([]byte, len(sessions))
		for i, one := range sessions {
			if one.IdentityID == r.ID || known && routers[one.IdentityID].Contains(ord) {
				part, which[i] = append(part, one), 1
			}
		}
		as := version{f, string(which)}
		if made[as] == nil && len(part) > 0 {
			made[as] = say(f, part)
		}
		return made[as]
	})
}

// maxMoved is how many identities may come and go at a router before it is told
// everything again instead.
const maxMoved = 1000

// move tells routers of those who may use them because of a change, and of those
// who may no more.
func (s *Sync) move(before, after *state.Snapshot, changed []state.Ref) {
	var policies, routers, identities []string
	for _, c := range changed {
		switch c.Def {
		case model.EdgeRouterPolicies.Def:
			policies = append(policies, c.ID)
		case model.EdgeRouters.Def:
			routers = append(routers, c.ID)
		case model.Identities.Def:
			if !sameAttributes(before, after, c.ID) {
				identities = append(identities, c.ID)
			}
		}
	}
	if len(policies)+len(routers)+len(identities) == 0 {
		return
	}
	selected, selects := selection(before, policies), selection(after, policies)
	others := map[uint32]*control.Router{}
	for _, r := range s.told() {
		if slices.Contains(routers, r.ID) || selected(r.ID) || selects(r.ID) {
			s.moveAll(before, after, r)
		} else if ord, ok := after.Ordinal(model.EdgeRouters.Def, r.ID); ok {
			others[ord] = r
		}
	}
	for _, id := range identities {
		lost, gained := apart(access.EdgeRouters(before, id), access.EdgeRouters(after, id))
		for it := lost.Iterator(); it.HasNext(); {
			if r := others[it.Next()]; r != nil {
				s.leave(after, r, id)
			}
		}
		for it := gained.Iterator(); it.HasNext(); {
			if r := others[it.Next()]; r != nil {
				s.come(after, r, id)
			}
		}
	}
}

// apart is what was and is not, and what is and was not.
func apart(was, is *cow.Bitmap) (lost, gained *cow.Bitmap) {
	if was == is {
		return new(cow.Bitmap), new(cow.Bitmap)
	}
	lost, gained = was.Clone(), is.Clone()
	lost.AndNot(is)
	gained.AndNot(was)
	return lost, gained
}

func sameAttributes(before, after *state.Snapshot, id string) bool {
	was, had := model.Identities.Get(before, id)
	is, has := model.Identities.Get(after, id)
	return !had || !has || slices.Equal(was.RoleAttributes, is.RoleAttributes)
}

// selection reports of a router whether one of the policies selects it.
func selection(snap *state.Snapshot, policies []string) func(routerID string) bool {
	var selected []*cow.Bitmap
	for _, id := range policies {
		if p, ok := model.EdgeRouterPolicies.Get(snap, id); ok {
			selected = append(selected, access.EdgeRouterPolicyRouters.Members(snap, p))
		}
	}
	return func(routerID string) bool {
		ord, ok := snap.Ordinal(model.EdgeRouters.Def, routerID)
		return ok && slices.ContainsFunc(selected, func(set *cow.Bitmap) bool { return set.Contains(ord) })
	}
}

// moveAll tells a router who may use it now that could not, and the other way
// round, whoever that is.
func (s *Sync) moveAll(before, after *state.Snapshot, r *control.Router) {
	lost, gained := apart(access.IdentitiesOfRouter(before, r.ID), access.IdentitiesOfRouter(after, r.ID))
	if lost.GetCardinality()+gained.GetCardinality() > maxMoved {
		s.start(r)
		return
	}
	for rec := range before.Within(model.Identities.Def, lost) {
		s.leave(after, r, rec.Base().ID)
	}
	for rec := range after.Within(model.Identities.Def, gained) {
		s.come(after, r, rec.Base().ID)
	}
}

// leave tells a router that an identity may not use it any more.
func (s *Sync) leave(snap *state.Snapshot, r *control.Router, identityID string) {
	var gone []apiSession
	for api := range model.APISessions.Select(snap, "identityId", identityID) {
		if old, was := s.was(snap, api.ID); was {
			gone = append(gone, old)
		}
	}
	if len(gone) > 0 && identityID != r.ID {
		s.tellOne(r, func(f form) *wire.Frame { return f.ended(gone) })
	}
}

// come tells a router of an identity that may use it now.
func (s *Sync) come(snap *state.Snapshot, r *control.Router, identityID string) {
	var there []apiSession
	for api := range model.APISessions.Select(snap, "identityId", identityID) {
		if one, is := s.is(snap, api.ID); is {
			there = append(there, one)
		}
	}
	if len(there) > 0 {
		s.tellOne(r, func(f form) *wire.Frame { return f.added(there, false) })
	}
}

func (s *Sync) tellOne(r *control.Router, news func(form) *wire.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.routers[r]; p != nil {
		p.send(r, news(p.form))
	}
}
