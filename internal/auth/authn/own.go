package authn

import (
	"context"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/limit"
)

// errPassword says that the present password is needed; never what was sent.
var errPassword = fault.On(fault.CodeUnauthorized, "currentPassword", "is not the present password", nil)

// Own returns an authenticator of the caller. Those of others do not exist
// for it.
func Own(r kind.Reader, who *Caller, id string) (*model.Authenticator, error) {
	a, ok := model.Authenticators.Get(r, id)
	if !ok || a.IdentityID != who.identity.ID {
		return nil, fault.NotFound("authenticator", id)
	}
	return a, nil
}

// RestOn has the caller's session go on with a new password of the
// authenticator, if it rests on the one before. Others do not.
func (c *Caller) RestOn(tx *state.Tx, authenticator string, rev int) error {
	now, ok := model.APISessions.Get(tx, c.session.ID)
	if !ok || now.AuthenticatorID != authenticator || now.PasswordRev != rev-1 {
		return nil
	}
	return model.APISessions.Edit(tx, now.ID, func(s *model.APISession) error {
		s.PasswordRev = rev
		return nil
	})
}

// owner is whom an authenticator belongs to.
func owner(a *model.Authenticator) limit.Party {
	return limit.Party{Rank: limit.Member, ID: a.IdentityID}
}

// Confirm checks the present password of an authenticator before it is
// changed. Wrong ones count as they do for a login: who took over a session
// may not guess either.
func (p *Passwords) Confirm(ctx context.Context, a *model.Authenticator, password string) error {
	if a.Method != model.MethodUPDB {
		return fault.New(fault.CodeAuthenticator, "only a user name and password can be changed, and this is a certificate")
	}
	try := attempt{a.Username, owner(a)}
	right, err := p.verify(ctx, try, a.PasswordHash, password)
	if err != nil {
		return err
	}
	proof, err := prove(p.sessions.State.Snapshot(), a.IdentityID, a.ID, p.now())
	if err != nil {
		return errPassword
	}
	if !p.judge(proof, try, right) {
		p.guard.wrong(try)
		return errPassword
	}
	return nil
}
