package authn

import (
	"context"
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// A router that acts as a client itself has nothing to authenticate with but
// the connection that it is here on, which it got for the certificate that it
// enrolled with. Its session rests on the router: that it is enrolled, enabled
// and may be a client.

// routerFlaw is about a session that rests on the edge router with the id of
// its identity.
func (p Proof) routerFlaw(r kind.Reader) Flaw {
	router, there := model.EdgeRouters.Get(r, p.identity.ID)
	return unless(there && p.identity.Type == model.TypeRouter && router.IsTunnelerEnabled && router.IsVerified && !router.Disabled,
		"the session rests on an edge router that is gone, disabled, not enrolled or may not be a client")
}

// OfRouter returns the API session that an edge router has as a client, or
// opens one: there is one for each router, whichever of its requests comes
// first. The caller vouches for the router being connected. A request without
// config types leaves them as they are, and means all of them for a new session.
func (s *APISessions) OfRouter(ctx context.Context, by state.Author, routerID string, req Request) (*Caller, error) {
	snap := s.State.Snapshot()
	proof, err := prove(snap, routerID, routerAuthenticator, s.Now())
	if err == nil {
		err = proof.flaw(snap, s.Now()).denied()
	}
	var session *model.APISession
	if err == nil {
		session, err = s.keepRouter(ctx, by, proof, req)
	}
	if fault.Is(err, fault.CodeNotFound) {
		err = errDenied // the router was deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	return s.Verify(ctx, s.State.Snapshot(), Credentials{Token: s.Token(session)})
}

// keepRouter returns a router's session, with the config types that it asks
// for, and keeps what it says of itself. Nothing is written if all is as it should be.
func (s *APISessions) keepRouter(ctx context.Context, by state.Author, p Proof, req Request) (session *model.APISession, err error) {
	suits := func(r kind.Reader) bool { // it has the config types that it wants
		return req.ConfigTypes == nil || slices.Equal(session.ConfigTypes, ResolveConfigTypes(r, req.ConfigTypes))
	}
	served := func(r kind.Reader) bool { // it has a session, and as it wants it
		session = s.ofRouter(r, p.identity.ID)
		return session != nil && suits(r) && model.Remembered(r, p.identity.ID, req.EnvInfo, req.SDKInfo)
	}
	if served(s.State.Snapshot()) {
		return session, nil
	}
	err = s.State.UpdateSessions(ctx, by, func(tx *state.Tx) (err error) {
		switch {
		case served(tx): // another request came first
			return nil
		case session != nil:
			if err := model.Remember(tx, p.identity.ID, req.EnvInfo, req.SDKInfo, tx.Now()); err != nil || suits(tx) {
				return err
			}
			return model.APISessions.Edit(tx, session.ID, func(a *model.APISession) error {
				a.ConfigTypes = ResolveConfigTypes(tx, req.ConfigTypes)
				return nil
			})
		}
		first := req
		if first.ConfigTypes == nil {
			first.ConfigTypes = []string{model.AllConfigTypes}
		}
		session, err = s.createIn(tx, by, p, first)
		return err
	})
	return session, err
}

// ofRouter returns the session that a router has, nil if it has none.
func (s *APISessions) ofRouter(r kind.Reader, routerID string) *model.APISession {
	now := s.Now()
	for session := range model.APISessions.Select(r, "identityId", routerID) {
		if session.AuthenticatorID != routerAuthenticator {
			continue
		}
		if _, flaw := s.alive(r, session, now); flaw == "" {
			return session
		}
	}
	return nil
}
