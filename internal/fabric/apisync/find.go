package apisync

import (
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// onFind answers a router that was shown a token that nobody has told it of: who
// tells it of API sessions may not have heard yet, or have died. It learns
// nothing that it would not be told.
func (s *Sync) onFind(r *control.Router, f *wire.Frame) {
	s.aside(r, func() {
		form, snap := s.formOf(r), s.Permits.Timely(s.State.Snapshot())
		found, ok := s.find(snap, r.ID, f.Headers.Text(message.HeaderAPISessionToken))
		if !ok || !form.digests {
			r.Result(f, false, "there is no API session with this token whose holder may use the router")
			return
		}
		r.Reply(f, form.added([]apiSession{found}, false))
	})
}

// find returns the API session with a token, if a router may let its holder in.
func (s *Sync) find(snap *state.Snapshot, routerID, token string) (apiSession, bool) {
	id, ok := s.Sessions.IDOf(snap, token)
	if !ok {
		return apiSession{}, false
	}
	one, ok := s.is(snap, id)
	one.Token = token // which need not be the session's own, if it names it
	if !ok || one.IdentityID == routerID {
		return one, ok
	}
	ord, ok := snap.Ordinal(model.Identities.Def, one.IdentityID)
	return one, ok && access.IdentitiesOfRouter(snap, routerID).Contains(ord)
}
