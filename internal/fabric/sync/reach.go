package sync

import (
	"slices"

	"netkeep/internal/data/state"
	"netkeep/internal/data/state/cow"
	"netkeep/internal/fabric/control"
	"netkeep/internal/line/message"
	"netkeep/internal/line/wire"
	"netkeep/internal/model"
	"netkeep/internal/policy/access"
)

// A router is told of the API sessions of those who may use it, and of its own.

// reach is which routers identities may use.
type reach struct {
	snap    *state.Snapshot
	routers map[string]*cow.Bitmap // by identity, as far as they were asked for
}

func (w *reach) has(identityID string, r *control.Router) bool {
	if identityID == r.ID {
		return true
	}
	may := w.routers[identityID]
	if may == nil {
		may = access.EdgeRouters(w.snap, identityID)
		w.routers[identityID] = may
	}
	ord, ok := w.snap.Ordinal(model.EdgeRouters.Def, r.ID)
	return ok && may.Contains(ord)
}

// share tells each router of those API sessions that concern it. Most often
// there is one, or all concern the same routers.
func (s *Sync) share(snap *state.Snapshot, sessions []message.APISession, say func(form, []message.APISession) *wire.Frame) {
	if len(sessions) == 0 {
		return
	}
	type version struct {
		form form
		part string // which of them
	}
	within, made := reach{snap, map[string]*cow.Bitmap{}}, map[version]*wire.Frame{}
	s.broadcast(func(r *control.Router, f form) *wire.Frame {
		var part []message.APISession
		which := make([]byte, len(sessions))
		for i, one := range sessions {
			if within.has(one.IdentityID, r) {
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
	was, is := reach{before, map[string]*cow.Bitmap{}}, reach{after, map[string]*cow.Bitmap{}}
	for _, r := range s.told() {
		if slices.Contains(routers, r.ID) || selected(r.ID) || selects(r.ID) {
			s.moveAll(before, after, r)
			continue
		}
		for _, id := range identities {
			switch had, has := was.has(id, r), is.has(id, r); {
			case had && !has:
				s.leave(after, r, id)
			case has && !had:
				s.come(after, r, id)
			}
		}
	}
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
	was, is := access.IdentitiesOfRouter(before, r.ID), access.IdentitiesOfRouter(after, r.ID)
	if was == is {
		return
	}
	lost, gained := was.Clone(), is.Clone()
	lost.AndNot(is)
	gained.AndNot(was)
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
	var gone message.Removed
	for api := range model.APISessions.Select(snap, "identityId", identityID) {
		gone.IDs, gone.Tokens = append(gone.IDs, api.ID), append(gone.Tokens, s.Sessions.Token(api.ID))
	}
	if len(gone.IDs) > 0 && identityID != r.ID {
		s.tellOne(r, func(f form) *wire.Frame { return f.removed(message.TypeAPISessionsRemoved, gone) })
	}
}

// come tells a router of an identity that may use it now.
func (s *Sync) come(snap *state.Snapshot, r *control.Router, identityID string) {
	var there []message.APISession
	for api := range model.APISessions.Select(snap, "identityId", identityID) {
		if s.Sessions.Usable(snap, api) {
			there = append(there, s.describe(snap, api))
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
