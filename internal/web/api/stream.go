package api

import (
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// Review has the streams of those look whether they may go on for whom a change may
// have ended a session, taken a factor or a right. It is for State.Attend: who is
// told that a session has ended must find its streams on their way out.
func (s *Service) Review(before, after *state.Snapshot, changed []state.Ref) {
	if before == nil {
		s.Streams.LookAll()
		return
	}
	for _, c := range changed {
		switch c.Def {
		case model.Identities.Def, model.EdgeRouters.Def:
			s.Streams.Look(c.ID)
			for token := range model.Tokens.Select(before, "ownerId", c.ID) {
				s.Streams.Look(token.ID)
			}
		case model.Tokens.Def:
			s.Streams.Look(c.ID)
		case model.APISessions.Def:
			was, had := model.APISessions.Get(before, c.ID)
			// Most changes of sessions are of when they were last used.
			if is, has := model.APISessions.Get(after, c.ID); had && (!has || is.IsMFAComplete != was.IsMFAComplete || is.IsMFARequired != was.IsMFARequired) {
				s.Streams.Look(was.IdentityID)
			}
		case model.Authenticators.Def:
			if was, had := model.Authenticators.Get(before, c.ID); had {
				s.Streams.Look(was.IdentityID)
			}
		case model.MFAs.Def:
			for _, snap := range []*state.Snapshot{before, after} {
				if mfa, there := model.MFAs.Get(snap, c.ID); there {
					s.Streams.Look(mfa.IdentityID)
				}
			}
		case model.AuthPolicies.Def, model.CAs.Def, model.ExtJWTSigners.Def, model.AdminRoles.Def, model.RoleBindings.Def:
			s.Streams.LookAll()
		}
	}
}
