package authn

import (
	"context"
	"time"

	"netkeep.internal/internal/auth/mfa"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
)

// Factors is the second factors of identities: one-time codes and recovery
// codes.
type Factors struct {
	State *state.State
	Now   func() time.Time
	// Issuer is what authenticator apps show.
	Issuer string

	guesses guesses
}

var (
	errCode       = fault.New(fault.CodeMFACode, "the code is wrong or was used already")
	errNoFactor   = fault.New(fault.CodeNotFound, "there is no enrollment in this state")
	errNotEnabled = fault.New(fault.CodeMFAMissing, "the identity has no second factor; enroll one first")
	errGuesses    = fault.New(fault.CodeRateLimited, "there were too many wrong codes; try again in a few minutes")
)

// Start gives an identity a second factor, to be verified.
func (f *Factors) Start(ctx context.Context, by state.Author, who *Caller) (id string, err error) {
	secret, codes := mfa.NewSecret(), mfa.NewRecoveryCodes()
	err = f.State.Update(ctx, by, func(tx *state.Tx) error {
		if _, has := model.MFAOf(tx, who.identity.ID); has {
			return fault.New(fault.CodeMFAExists, "the identity has a second factor; remove it first")
		}
		m := &model.MFA{IdentityID: who.identity.ID, Secret: secret, RecoveryCodes: codes}
		err := model.MFAs.Create(tx, m)
		id = m.ID
		return err
	})
	return id, err
}

// ProvisioningURL is what an authenticator app needs to know.
func (f *Factors) ProvisioningURL(who *Caller, m *model.MFA) string {
	return mfa.ProvisioningURL(f.Issuer, who.identity.Name, m.Secret)
}

// Confirm completes an enrollment with a one-time code, which also counts for
// the session.
func (f *Factors) Confirm(ctx context.Context, by state.Author, who *Caller, code string) error {
	return f.guess(ctx, by, who, func(tx *state.Tx) error {
		err := change(tx, who, errNoFactor, func(m *model.MFA) error {
			if m.IsVerified {
				return errNoFactor
			}
			if err := f.oneTime(m, code); err != nil {
				return err
			}
			m.IsVerified = true
			return nil
		})
		if err != nil {
			return err
		}
		return complete(tx, who, true)
	})
}

// Show completes a session's authentication with a one-time or recovery code.
func (f *Factors) Show(ctx context.Context, by state.Author, who *Caller, code string) error {
	return f.guess(ctx, by, who, func(tx *state.Tx) error {
		err := change(tx, who, errNotEnabled, func(m *model.MFA) error {
			if !m.IsVerified {
				return errNotEnabled
			}
			return f.anyCode(m, code)
		})
		if err != nil {
			return err
		}
		return complete(tx, who, false)
	})
}

// Prove is Show with a one-time code for who has routers judge when it was: it returns that
// time. The code that was shown last does again, for a session that has shown one: programs
// log in with it and ask then, and it makes nothing later than it was.
func (f *Factors) Prove(ctx context.Context, by state.Author, who *Caller, code string) (passed time.Time, err error) {
	err = f.guess(ctx, by, who, func(tx *state.Tx) error {
		session, there := model.APISessions.Get(tx, who.session.ID)
		m, has := model.MFAOf(tx, who.identity.ID)
		if !there || !has || !m.IsVerified {
			return errNotEnabled
		}
		if shown := session.FactorShown(tx); shown != nil && f.shownLast(m, code) {
			passed = *shown
			return nil
		}
		if err := change(tx, who, errNotEnabled, func(m *model.MFA) error { return f.oneTime(m, code) }); err != nil {
			return err
		}
		passed = tx.Now()
		return complete(tx, who, false)
	})
	return passed, err
}

// shownLast reports whether a code is the one-time code that somebody showed last, and would
// still be good.
func (f *Factors) shownLast(m *model.MFA, code string) bool {
	step, ok := mfa.Verify(m.Secret, code, f.Now(), uint64(m.LastStep-1))
	return ok && int64(step) == m.LastStep
}

// complete marks the session.
func complete(tx *state.Tx, who *Caller, required bool) error {
	return model.APISessions.Edit(tx, who.session.ID, func(s *model.APISession) error {
		s.ShowFactor(tx)
		s.IsMFARequired = s.IsMFARequired || required
		return nil
	})
}

// Recover returns the recovery codes to somebody who shows a one-time code.
func (f *Factors) Recover(ctx context.Context, by state.Author, who *Caller, code string) (codes []string, err error) {
	err = f.guess(ctx, by, who, func(tx *state.Tx) error {
		return change(tx, who, errNoFactor, func(m *model.MFA) error {
			if !m.IsVerified {
				return errNoFactor
			}
			if err := f.onceMore(m, who, code); err != nil {
				return err
			}
			codes = m.RecoveryCodes
			return nil
		})
	})
	return codes, err
}

// Renew replaces all recovery codes.
func (f *Factors) Renew(ctx context.Context, by state.Author, who *Caller, code string) error {
	fresh := mfa.NewRecoveryCodes()
	return f.guess(ctx, by, who, func(tx *state.Tx) error {
		return change(tx, who, errNoFactor, func(m *model.MFA) error {
			if !m.IsVerified {
				return errNoFactor
			}
			last := m.LastStep
			if err := f.anyCode(m, code); err != nil {
				return err
			}
			m.RecoveryCodes = fresh
			if m.LastStep != last { // and not a recovery code
				m.RenewedBy = who.session.ID
			}
			return nil
		})
	})
}

// Remove takes the second factor away. One that was never verified needs no
// code.
func (f *Factors) Remove(ctx context.Context, by state.Author, who *Caller, code string) error {
	return f.guess(ctx, by, who, func(tx *state.Tx) error {
		m, has := model.MFAOf(tx, who.identity.ID)
		if !has {
			return errNoFactor
		}
		if m.IsVerified {
			spent := *m
			if err := f.anyCode(&spent, code); err != nil {
				return err
			}
		}
		return model.MFAs.Delete(tx, m.ID)
	})
}

// Drop takes the second factor of any identity away.
func (f *Factors) Drop(ctx context.Context, by state.Author, identityID string) error {
	return f.State.Update(ctx, by, func(tx *state.Tx) error {
		if _, ok := model.Identities.Get(tx, identityID); !ok {
			return fault.NotFound("identity", identityID)
		}
		if m, has := model.MFAOf(tx, identityID); has {
			return model.MFAs.Delete(tx, m.ID)
		}
		return nil
	})
}

// change changes the caller's second factor.
func change(tx *state.Tx, who *Caller, missing error, fn func(*model.MFA) error) error {
	m, has := model.MFAOf(tx, who.identity.ID)
	if !has {
		return missing
	}
	return model.MFAs.Edit(tx, m.ID, fn)
}

// guess runs a write that a code pays for, unless the identity has tried too
// many. The code is spent in the same write as what it pays for, so each works
// once, on every controller, and none is spent in vain.
func (f *Factors) guess(ctx context.Context, by state.Author, who *Caller, write func(tx *state.Tx) error) error {
	id := who.identity.ID
	if !f.guesses.take(id, f.Now()) {
		return errGuesses
	}
	err := f.State.Update(ctx, by, write)
	switch {
	case err == nil:
		f.guesses.forget(id)
	case !fault.Is(err, fault.CodeMFACode) && ctx.Err() == nil:
		f.guesses.giveBack(id)
	}
	return err
}

// oneTime spends a one-time code.
func (f *Factors) oneTime(m *model.MFA, code string) error {
	step, ok := mfa.Verify(m.Secret, code, f.Now(), uint64(m.LastStep))
	if !ok {
		return errCode
	}
	m.LastStep, m.RenewedBy = int64(step), ""
	return nil
}

// onceMore spends a one-time code, or takes the one that has just replaced the
// recovery codes a second time, for the session that did so to read them: programs
// ask for one code and do both. It is as good for that as long as it would be if
// nobody had shown it.
func (f *Factors) onceMore(m *model.MFA, who *Caller, code string) error {
	if m.RenewedBy == who.session.ID && f.shownLast(m, code) {
		m.RenewedBy = ""
		return nil
	}
	return f.oneTime(m, code)
}

// anyCode spends a one-time code or a recovery code.
func (f *Factors) anyCode(m *model.MFA, code string) error {
	if i, ok := mfa.MatchRecovery(m.RecoveryCodes, code); ok {
		rest := append([]string(nil), m.RecoveryCodes[:i]...)
		m.RecoveryCodes = append(rest, m.RecoveryCodes[i+1:]...)
		return nil
	}
	return f.oneTime(m, code)
}
