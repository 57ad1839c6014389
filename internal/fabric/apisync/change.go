package apisync

import (
	"maps"
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Applied passes on what a change means for routers.
func (s *Sync) Applied(before, after *state.Snapshot, changed []state.Ref) {
	if s.alone() {
		return
	}
	concerned := map[string]bool{} // API sessions
	everyone := false
	for _, c := range changed {
		switch c.Def {
		case model.APISessions.Def:
			concerned[c.ID] = true
		case model.SessionCertificates.Def:
			for _, snap := range []*state.Snapshot{before, after} {
				if cert, ok := model.SessionCertificates.Get(snap, c.ID); ok {
					concerned[cert.APISessionID] = true
				}
			}
		case model.Authenticators.Def:
			for _, snap := range []*state.Snapshot{before, after} {
				if a, ok := model.Authenticators.Get(snap, c.ID); ok {
					note(concerned, snap, a.IdentityID)
				}
			}
		case model.Identities.Def:
			note(concerned, before, c.ID)
		case model.AuthPolicies.Def, model.CAs.Def, model.ExtJWTSigners.Def:
			everyone = true
		}
	}
	if everyone {
		s.Restart()
		return
	}
	if len(concerned) > 0 {
		s.tellOf(before, after, concerned)
	}
	s.move(before, after, changed)
}

// note adds the API sessions of an identity.
func note(concerned map[string]bool, snap *state.Snapshot, identityID string) {
	for api := range model.APISessions.Select(snap, "identityId", identityID) {
		concerned[api.ID] = true
	}
}

// Restart tells every router everything again: anything may have changed.
func (s *Sync) Restart() {
	for _, r := range s.told() {
		s.start(r)
	}
}

// told are the routers that have said hello.
func (s *Sync) told() []*control.Router {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.routers))
}

// tellOf tells routers how API sessions differ from what they were: of those
// that are over, the routers that were told of them.
func (s *Sync) tellOf(before, after *state.Snapshot, concerned map[string]bool) {
	var added, updated, removed []apiSession
	for id := range concerned {
		old, was := s.was(before, id)
		next, is := s.is(after, id)
		switch {
		case is && !was:
			added = append(added, next)
		case was && !is:
			removed = append(removed, old)
		case is && !slices.Equal(old.Fingerprints, next.Fingerprints):
			updated = append(updated, next)
		}
	}
	s.share(after, added, func(f form, part []apiSession) *wire.Frame { return f.added(part, false) })
	s.share(after, updated, form.updated)
	s.share(before, removed, form.ended)
}

// is returns an API session as routers know it, if they are to.
func (s *Sync) is(snap *state.Snapshot, id string) (apiSession, bool) {
	api, ok := model.APISessions.Get(snap, id)
	if !ok || !told(snap, api) || !s.Sessions.Usable(snap, api) {
		return apiSession{}, false
	}
	return s.describe(snap, api), true
}

// was returns an API session as routers knew it, if they did. What ended it may
// be time: it counts how it was when it was last used.
func (s *Sync) was(snap *state.Snapshot, id string) (apiSession, bool) {
	api, ok := model.APISessions.Get(snap, id)
	if !ok || !told(snap, api) || !s.Sessions.Stood(snap, api) {
		return apiSession{}, false
	}
	return s.describe(snap, api), true
}

// told reports whether routers are told of an API session. That of a router is
// told to itself, which needs no certificate for it.
func told(snap *state.Snapshot, api *model.APISession) bool {
	_, own := model.EdgeRouters.Get(snap, api.IdentityID)
	return own || api.Told(snap)
}

// SessionRemoved tells routers that a session to dial or host is over: those
// that its holder may have shown it to. Its token is asked for if there are any.
func (s *Sync) SessionRemoved(before *state.Snapshot, gone *model.Session, token func() string) {
	api, ok := model.APISessions.Get(before, gone.APISessionID)
	if !ok || s.alone() || !told(before, api) {
		return
	}
	holder := []apiSession{{APISession: message.APISession{ID: api.ID, IdentityID: api.IdentityID}}}
	s.share(before, holder, func(f form, _ []apiSession) *wire.Frame {
		return f.removed(message.TypeSessionsRemoved, message.Removed{IDs: []string{gone.ID}, Tokens: []string{token()}})
	})
}
