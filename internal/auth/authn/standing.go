package authn

import (
	"cmp"
	"strings"
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// A session stands as long as everything holds that it rests on. This file is
// the one place that says what that is: at a login, at every request, and when
// something of it changes.

// Flaw is why an identity or session is not good enough, in words for admins;
// empty if it is. Whoever authenticates is not told.
type Flaw string

// Flaws that something can be done about.
const (
	Disabled Flaw = "the identity is disabled"
	Unused   Flaw = "the session was not used for too long"
	Partial  Flaw = "the session has yet to show a one-time or recovery code"
)

// denied is what somebody is told of a flaw.
func (f Flaw) denied() error {
	if f == "" {
		return nil
	}
	return errDenied
}

// stand returns whom a session is of and what it rests on, if that still holds.
func stand(r kind.Reader, session *model.APISession, now time.Time) (Proof, Flaw) {
	p, flaw := admit(r, session.IdentityID, now)
	if flaw == "" {
		p.session = session
		flaw = p.flaw(r, now)
	}
	if flaw != "" {
		return Proof{}, flaw
	}
	return p, ""
}

// flaw says whether what was shown is still there, is still accepted by the
// identity's policy, still means this identity, and has not come to its end.
func (p Proof) flaw(r kind.Reader, now time.Time) Flaw {
	s := p.session
	switch {
	case p.ended(now):
		return "the session rests on a token or certificate that has come to its end"
	case s.ExternalID != "" && s.ExternalID != p.identity.ExternalID:
		return "the session rests on an external id that the identity no longer has"
	}
	if id, byToken := strings.CutPrefix(s.AuthenticatorID, signerPrefix); byToken {
		return p.tokenFlaw(r, id)
	}
	switch s.AuthenticatorID {
	case internalAuthenticator:
		return cmp.Or(p.certFlaw(r),
			unless(mayName(r, p.identity, s.CAID), "the session rests on a CA that may not name the identity"))
	case routerAuthenticator:
		return p.routerFlaw(r)
	}
	a, there := model.Authenticators.Get(r, s.AuthenticatorID)
	switch {
	case !there:
		return "the session rests on an authenticator that is gone"
	case a.Method == model.MethodUPDB:
		return cmp.Or(
			unless(p.policy.Primary.UPDB.Allowed, "the session rests on a password, which the authentication policy does not accept"),
			unless(s.PasswordRev == a.PasswordRev, "the session rests on a password that was changed"))
	case s.CAID == "":
		return unless(p.policy.Primary.Cert.Allowed, certsRefused)
	}
	return p.certFlaw(r)
}

const certsRefused Flaw = "the session rests on a certificate, which the authentication policy does not accept"

// certFlaw is about a certificate of somebody else's CA.
func (p Proof) certFlaw(r kind.Reader) Flaw {
	return cmp.Or(unless(p.policy.Primary.Cert.Allowed, certsRefused),
		unless(mayAuthenticate(r, p.session.CAID), "the session rests on a CA that is gone or does not show who somebody is"))
}

func (p Proof) tokenFlaw(r kind.Reader, signerID string) Flaw {
	signer, there := model.ExtJWTSigners.Get(r, signerID)
	return cmp.Or(
		unless(there && signer.Enabled, "the session rests on an external JWT signer that is gone or disabled"),
		unless(p.policy.Primary.ExtJWT.Accepts(signerID), "the session rests on a token of a signer that the authentication policy does not accept"),
		unless(p.identity.NamedBy(signerID), "the session rests on a signer that may not name the identity"))
}

func unless(holds bool, flaw Flaw) Flaw {
	if holds {
		return ""
	}
	return flaw
}

// mayAuthenticate reports whether certificates of a CA show who somebody is.
func mayAuthenticate(r kind.Reader, id string) bool {
	ca, there := model.CAs.Get(r, id)
	return there && ca.IsVerified && ca.IsAuthEnabled
}

// notAfter is when what was shown ends; zero if it does not, or if its end does
// not matter.
func (p Proof) notAfter() time.Time {
	if byToken := strings.HasPrefix(p.session.AuthenticatorID, signerPrefix); !byToken && p.policy.Primary.Cert.AllowExpiredCerts {
		return time.Time{}
	}
	return p.session.NotAfter.Time()
}

func (p Proof) ended(now time.Time) bool { return isPast(p.notAfter(), now) }

// isPast reports whether an end, if there is one, has come.
func isPast(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }

// end is when a session is over however much it is used; zero for never.
func (s *APISessions) end(p Proof) time.Time {
	end, last := p.notAfter(), s.last(p.session)
	if end.IsZero() || !last.IsZero() && last.Before(end) {
		return last
	}
	return end
}

// last is when a session has lasted for as long as any may; zero for never.
func (s *APISessions) last(session *model.APISession) time.Time {
	if s.Lifetime <= 0 {
		return time.Time{}
	}
	return session.CreatedAt.Time().Add(s.Lifetime)
}

// stands says whether a session may be used as far as time and what it rests
// on go.
func (s *APISessions) stands(r kind.Reader, session *model.APISession, now time.Time) (Proof, Flaw) {
	if isPast(s.last(session), now) {
		return Proof{}, "the session has lasted for as long as any session may"
	}
	return stand(r, session, now)
}

// idle reports whether a session was not used for too long.
func (s *APISessions) idle(session *model.APISession, now time.Time) bool {
	return now.After(s.LastActivity(session).Add(s.Timeout))
}

// alive returns what a session rests on, if it stands and was used lately.
func (s *APISessions) alive(r kind.Reader, session *model.APISession, now time.Time) (Proof, Flaw) {
	if s.idle(session, now) {
		return Proof{}, Unused
	}
	return s.stands(r, session, now)
}

// Flaw says why a session is good for nothing, or not yet for everything. That
// a JWT may have to come with every request does not count.
func (s *APISessions) Flaw(r kind.Reader, session *model.APISession) Flaw {
	p, flaw := s.alive(r, session, s.Now())
	if flaw == "" && p.lacksCode(session) {
		return Partial
	}
	return flaw
}

// Barred says why an identity cannot authenticate, whatever it shows.
func (s *APISessions) Barred(r kind.Reader, identityID string) Flaw {
	_, flaw := admit(r, identityID, s.Now())
	return flaw
}

// Usable reports whether routers may let in who holds a session: it stands and
// has shown what a session remembers. A JWT that has to come with every
// request is asked for where sessions to dial and host are given out.
func (s *APISessions) Usable(r kind.Reader, session *model.APISession) bool {
	p, flaw := s.stands(r, session, s.Now())
	return flaw == "" && !p.lacksCode(session)
}

// Stood reports the same of the moment when a session was last used.
func (s *APISessions) Stood(r kind.Reader, session *model.APISession) bool {
	p, flaw := s.stands(r, session, s.LastActivity(session))
	return flaw == "" && !p.lacksCode(session)
}

// lacksCode reports whether a session has yet to show a one-time or recovery
// code.
func (p Proof) lacksCode(session *model.APISession) bool {
	return (session.IsMFARequired || p.policy.Secondary.RequireTOTP) && !session.IsMFAComplete
}

// Keep counts as use of the session with a token, as a router tells it; ok is
// false if there is no such session.
func (s *APISessions) Keep(r kind.Reader, token string) bool {
	session, ok := s.Recall(r, token)
	now := s.Now()
	if !ok || s.idle(session, now) || !s.Usable(r, session) {
		return false
	}
	s.touch(session.ID, now)
	return true
}
