package sync

import (
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
}

// note adds the API sessions of an identity.
func note(concerned map[string]bool, snap *state.Snapshot, identityID string) {
	for api := range model.APISessions.Select(snap, "identityId", identityID) {
		concerned[api.ID] = true
	}
}

// Restart tells every router everything again: anything may have changed.
func (s *Sync) Restart() {
	s.mu.Lock()
	all := make([]*control.Router, 0, len(s.routers))
	for r := range s.routers {
		all = append(all, r)
	}
	s.mu.Unlock()
	for _, r := range all {
		s.start(r)
	}
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
	if len(added) > 0 {
		s.broadcast(func(f form) *wire.Frame { return f.added(added, false) })
	}
	if len(updated) > 0 {
		s.broadcast(func(f form) *wire.Frame { return f.updated(updated) })
	}
	if len(removed.IDs) > 0 {
		s.broadcast(func(f form) *wire.Frame { return f.removed(message.TypeAPISessionsRemoved, removed) })
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
	gone := message.Removed{IDs: []string{id}, Tokens: []string{token}}
	s.broadcast(func(f form) *wire.Frame { return f.removed(message.TypeSessionsRemoved, gone) })
}
