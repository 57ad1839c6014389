package datamodel

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/wire/message"
)

// Routers of the second generation judge clients that show access tokens by what
// they know of the network. Of those who hold one and may use the router it is told
// the id, and which services they may dial and host, by their ids; whoever dials or hosts is
// judged here again. What a device reports goes to such a router alone, so it is told of the
// posture checks by which these clients get more.

// share is what an identity may use, by ids of services in their order.
type share struct {
	dial, bind []string
	checked    []checked
}

// checked is what a policy with posture checks gives an identity that it has not anyway.
type checked struct {
	policyID string
	typ      message.PolicyType
	services []string
	checks   []*model.PostureCheck
}

// ended is an API session that is over, and until when somebody may have a token of it.
type ended struct {
	id    string
	until time.Time
}

// bears reports whether somebody may show tokens of an API session to routers.
func bears(snap *state.Snapshot, api *model.APISession) bool {
	return api.Bears() && api.Told(snap)
}

// addBearers adds those who hold tokens that they may show to the router, and what was
// told of before and is over. shares has what was found out already, and gets more.
func (m *Models) addBearers(k *known, snap *state.Snapshot, t *told, shares map[string]share) {
	was := t.knows
	k.ended = m.over(was, m.Now())
	theirs := map[string]share{}
	for api := range borne(snap, t) {
		k.sessions = append(k.sessions, api.ID)
		if _, there := theirs[api.IdentityID]; there {
			continue
		}
		theirs[api.IdentityID] = shareOf(snap, api.IdentityID, shares)
		if ord, ok := snap.Ordinal(model.Identities.Def, api.IdentityID); ok {
			k.ords = append(k.ords, ord)
		}
	}
	slices.Sort(k.sessions)
	k.note(was, m.Now().Add(m.Bearing))
	k.join(theirs)
	if t.judges {
		k.joinChecked(theirs)
	}
}

// borne are the sessions of whose tokens the router is to know the bearers. Unless everything
// must be looked at, it goes through those that it knows, and those of the identities that are
// said to have others: however many there are elsewhere.
func borne(snap *state.Snapshot, t *told) iter.Seq[*model.APISession] {
	return func(yield func(*model.APISession) bool) {
		if t.afresh() {
			may := access.IdentitiesOfRouter(snap, t.id)
			for api := range model.APISessions.All(snap) {
				ord, ok := snap.Ordinal(model.Identities.Def, api.IdentityID)
				if bears(snap, api) && api.IdentityID != t.id && ok && may.Contains(ord) && !yield(api) {
					return
				}
			}
			return
		}
		for _, id := range t.knows.sessions {
			api, there := model.APISessions.Get(snap, id)
			if there && !t.whose[api.IdentityID] && bears(snap, api) && !yield(api) {
				return
			}
		}
		router, is := snap.Ordinal(model.EdgeRouters.Def, t.id)
		for id := range t.whose {
			if !is || id == t.id || !access.EdgeRouters(snap, id).Contains(router) {
				continue
			}
			for api := range model.APISessions.Select(snap, "identityId", id) {
				if bears(snap, api) && !yield(api) {
					return
				}
			}
		}
	}
}

func shareOf(snap *state.Snapshot, identityID string, shares map[string]share) share {
	one, there := shares[identityID]
	if there {
		return one
	}
	grants := access.Unchecked(snap, identityID)
	for rec := range snap.Within(model.Services.Def, grants.Dial) {
		one.dial = append(one.dial, rec.Base().ID)
	}
	for rec := range snap.Within(model.Services.Def, grants.Bind) {
		one.bind = append(one.bind, rec.Base().ID)
	}
	slices.Sort(one.dial)
	slices.Sort(one.bind)
	for _, p := range access.Services(snap, identityID).Policies {
		if c, more := one.checkedBy(snap, p); more {
			one.checked = append(one.checked, c)
		}
	}
	shares[identityID] = one
	return one
}

// checkedBy returns what a policy gives to devices that pass its checks; more is false if
// it has none, or gives nothing that everybody has.
func (s share) checkedBy(snap *state.Snapshot, p *model.ServicePolicy) (c checked, more bool) {
	c = checked{policyID: p.ID, typ: message.PolicyDial}
	anyway := s.dial
	if p.Type == model.Bind {
		c.typ, anyway = message.PolicyBind, s.bind
	}
	for _, check := range access.Checks(snap, p) {
		if !check.OnlyTells() {
			c.checks = append(c.checks, check)
		}
	}
	if len(c.checks) == 0 {
		return c, false
	}
	for rec := range snap.Within(model.Services.Def, access.ServicePolicyServices.Members(snap, p)) {
		if id := rec.Base().ID; !slices.Contains(anyway, id) {
			c.services = append(c.services, id)
		}
	}
	slices.Sort(c.services)
	return c, len(c.services) > 0
}

// over is what a router was told to be over, as long as that matters.
func (m *Models) over(was *known, now time.Time) (still []ended) {
	if was != nil {
		still = slices.DeleteFunc(slices.Clone(was.ended), func(e ended) bool { return !now.Before(e.until) })
	}
	return still
}

// note adds the sessions that the router knew and is to know no more. One that is back,
// as the router may be used again, is not over.
func (k *known) note(was *known, until time.Time) {
	k.ended = slices.DeleteFunc(k.ended, func(e ended) bool {
		_, back := slices.BinarySearch(k.sessions, e.id)
		return back
	})
	if was != nil {
		gone, _ := apart(was.sessions, k.sessions)
		for _, id := range gone {
			k.ended = append(k.ended, ended{id, until})
		}
	}
	slices.SortFunc(k.ended, func(a, b ended) int { return cmp.Compare(a.id, b.id) })
	for _, e := range k.ended {
		k.turn(e.until)
	}
}

// join adds identities with what they may use.
func (k *known) join(theirs map[string]share) {
	services := k.serviceIDs()
	for _, id := range slices.Sorted(maps.Keys(theirs)) {
		one := theirs[id]
		k.identities = append(k.identities, message.DataIdentity{ID: id})
		k.policies = append(k.policies, policy{id: dialPolicy + " " + id, typ: message.PolicyDial, identity: id, services: one.dial},
			policy{id: bindPolicy + " " + id, typ: message.PolicyBind, identity: id, services: one.bind})
		k.addServices(services, one.dial)
		k.addServices(services, one.bind)
	}
	slices.SortFunc(k.identities, func(a, b message.DataIdentity) int { return strings.Compare(a.ID, b.ID) })
	k.sort()
}

// joinChecked adds what identities may use with a device that passes, and the checks.
func (k *known) joinChecked(theirs map[string]share) {
	services, checks := k.serviceIDs(), map[string]*model.PostureCheck{}
	for id, one := range theirs {
		for _, c := range one.checked {
			p := policy{id: dialPolicy + " " + id + " " + c.policyID, typ: c.typ, identity: id, services: c.services}
			if c.typ == message.PolicyBind {
				p.id = bindPolicy + " " + id + " " + c.policyID
			}
			for _, check := range c.checks {
				checks[check.ID] = check
				p.checks = append(p.checks, check.ID)
			}
			slices.Sort(p.checks)
			k.policies = append(k.policies, p)
			k.addServices(services, c.services)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(checks)) {
		k.checks = append(k.checks, checkOf(checks[id]))
	}
	k.sort()
}

func (k *known) serviceIDs() map[string]bool {
	services := map[string]bool{}
	for _, s := range k.services {
		services[s.ID] = true
	}
	return services
}

// addServices adds services by their ids alone, unless they are there.
func (k *known) addServices(there map[string]bool, ids []string) {
	for _, id := range ids {
		if !there[id] {
			there[id] = true
			k.services = append(k.services, message.DataService{ID: id})
		}
	}
}

func (k *known) sort() {
	slices.SortFunc(k.services, func(a, b message.DataService) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(k.policies, func(a, b policy) int { return strings.Compare(a.id, b.id) })
}

// bearersChanged returns the identities of whose tokens other routers may have to be
// told now, and whether that may be so for everybody's.
func bearersChanged(before, after *state.Snapshot, changed []state.Ref) (identities []string, all bool) {
	sessionsOf := func(snap *state.Snapshot, id string) {
		for api := range model.APISessions.Select(snap, "identityId", id) {
			if bears(snap, api) {
				identities = append(identities, id)
				return
			}
		}
	}
	for _, c := range changed {
		switch c.Def {
		case model.APISessions.Def:
			was, had := model.APISessions.Get(before, c.ID)
			is, has := model.APISessions.Get(after, c.ID)
			had, has = had && bears(before, was), has && bears(after, is)
			if had && !has {
				identities = append(identities, was.IdentityID)
			} else if has && !had {
				identities = append(identities, is.IdentityID)
			}
		case model.Identities.Def:
			sessionsOf(after, c.ID)
		case model.SessionCertificates.Def, model.Authenticators.Def:
			for _, snap := range []*state.Snapshot{before, after} {
				if cert, ok := model.SessionCertificates.Get(snap, c.ID); ok {
					if api, ok := model.APISessions.Get(snap, cert.APISessionID); ok {
						sessionsOf(snap, api.IdentityID)
					}
				}
				if a, ok := model.Authenticators.Get(snap, c.ID); ok {
					sessionsOf(snap, a.IdentityID)
				}
			}
		case model.EdgeRouterPolicies.Def:
			all = true
		}
	}
	return identities, all
}

// noteBearers has those routers looked at that know one of some identities, or that one
// of them may use.
func (m *Models) noteBearers(before, after *state.Snapshot, changed []state.Ref) {
	if m.Bearing == 0 {
		return
	}
	identities, all := bearersChanged(before, after, changed)
	if len(identities) == 0 && !all {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.routers {
		if after.Rev <= t.rev {
			continue
		}
		ord, is := after.Ordinal(model.EdgeRouters.Def, t.id)
		concerned := func(id string) bool {
			_, knows := slices.BinarySearchFunc(t.knows.identities, id, func(i message.DataIdentity, id string) int { return strings.Compare(i.ID, id) })
			return knows || is && access.EdgeRouters(after, id).Contains(ord)
		}
		if all {
			m.suspect(t)
			continue
		}
		var whose []string
		for _, id := range identities {
			if t.unsure() || concerned(id) {
				whose = append(whose, id)
			}
		}
		m.suspectOf(t, whose)
	}
}
