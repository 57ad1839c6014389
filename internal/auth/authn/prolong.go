package authn

import (
	"context"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
)

var (
	errNoToken    = fault.New(fault.CodeInvalid, "the session does not rest on a token, and needs no newer one")
	errOtherToken = fault.New(fault.CodeInvalid, "the token is of another signer, or of somebody else, than the session")
)

// Prolong has a session rest on a newer token of the same signer for the same identity, so
// that what was begun in it goes on. One that ends sooner changes nothing. How long a
// session may last at all stays as it is.
func (s *APISessions) Prolong(ctx context.Context, by state.Author, who *Caller, p Proof) error {
	session := who.session
	if p.identity.ID != session.IdentityID || p.session.AuthenticatorID != session.AuthenticatorID || p.session.ExternalID != session.ExternalID {
		return errOtherToken // whoever it is that a proof is from
	}
	return s.State.UpdateSessions(ctx, by, func(tx *state.Tx) error {
		return model.APISessions.Edit(tx, session.ID, func(now *model.APISession) error {
			if p.session.NotAfter.After(now.NotAfter) {
				now.NotAfter = p.session.NotAfter
			}
			return nil
		})
	})
}
