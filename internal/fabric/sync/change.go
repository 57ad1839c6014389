package sync

import (
	"maps"
	"slices"

	"netkeep/internal/data/state"
	"netkeep/internal/fabric/control"
	"netkeep/internal/line/message"
	"netkeep/internal/line/wire"
	"netkeep/internal/model"
)

// Applied passes on what a change means for routers.
func (s *Sync) Applied(before, after *state.Snapshot, changed []state.Ref) {
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

// tellOf tells routers how API sessions differ from what they were.
func (s *Sync) tellOf(before, after *state.Snapshot, concerned map[string]bool) {
	var added, updated []message.APISession
	var removed message.Removed
	for id := range concerned {
		old, was := s.seen(before, id)
		next, is := s.seen(after, id)
		switch {
		case is && !was:
			added = append(added, next)
		case was && !is:
			removed.IDs = append(removed.IDs, id)
			removed.Tokens = append(removed.Tokens, old.Token)
		case is && !slices.Equal(old.Fingerprints, next.Fingerprints):
			updated = append(updated, next)
		}
	}
	s.share(after, added, func(f form, part []message.APISession) *wire.Frame { return f.added(part, false) })
	s.share(after, updated, form.updated)
	if len(removed.IDs) > 0 {
		s.tellAll(message.TypeAPISessionsRemoved, removed)
	}
}

// seen is an API session as routers know it, if they do.
func (s *Sync) seen(snap *state.Snapshot, id string) (message.APISession, bool) {
	api, ok := model.APISessions.Get(snap, id)
	if !ok || !s.Sessions.Usable(snap, api) {
		return message.APISession{Token: s.Sessions.Token(id)}, false
	}
	return s.describe(snap, api), true
}

// SessionRemoved tells routers that a session to dial or host is over.
func (s *Sync) SessionRemoved(id, token string) {
	s.tellAll(message.TypeSessionsRemoved, message.Removed{IDs: []string{id}, Tokens: []string{token}})
}

// tellAll tells every router of sessions that are over: one that was never told
// of them does not mind.
func (s *Sync) tellAll(typ int32, gone message.Removed) {
	made := map[form]*wire.Frame{}
	s.broadcast(func(_ *control.Router, f form) *wire.Frame {
		if made[f] == nil {
			made[f] = f.removed(typ, gone)
		}
		return made[f]
	})
}
