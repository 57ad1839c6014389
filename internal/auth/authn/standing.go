package authn

import (
	"strings"
	"time"

	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
)

// A session stands as long as everything holds that it rests on. This file is
// the one place that says what that is: at a login, at every request, and when
// something of it changes.

// stand returns whom a session is of and what it rests on, if that still holds.
func stand(r kind.Reader, session *model.APISession, now time.Time) (Proof, error) {
	p, err := admit(r, session.IdentityID, now)
	if err != nil {
		return Proof{}, err
	}
	if p.session = session; !p.holds(r, now) {
		return Proof{}, errDenied
	}
	return p, nil
}

// holds reports whether what was shown is still there, is still accepted by the
// identity's policy, still means this identity, and has not come to its end.
func (p Proof) holds(r kind.Reader, now time.Time) bool {
	s, rules := p.session, p.policy.Primary
	if p.ended(now) || s.ExternalID != "" && s.ExternalID != p.identity.ExternalID {
		return false
	}
	if id, byToken := strings.CutPrefix(s.AuthenticatorID, signerPrefix); byToken {
		signer, there := model.ExtJWTSigners.Get(r, id)
		return there && signer.Enabled && rules.ExtJWT.Accepts(id) && p.identity.NamedBy(id)
	}
	if s.AuthenticatorID == internalAuthenticator {
		return rules.Cert.Allowed && mayAuthenticate(r, s.CAID) && mayName(r, p.identity, s.CAID)
	}
	a, there := model.Authenticators.Get(r, s.AuthenticatorID)
	switch {
	case !there:
		return false
	case a.Method == model.MethodUPDB:
		return rules.UPDB.Allowed && s.PasswordRev == a.PasswordRev
	}
	return rules.Cert.Allowed && (s.CAID == "" || mayAuthenticate(r, s.CAID))
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
	return p.session.NotAfter
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
	return session.CreatedAt.Add(s.Lifetime)
}

// stands reports whether a session may be used as far as time and what it rests
// on say.
func (s *APISessions) stands(r kind.Reader, session *model.APISession, now time.Time) (Proof, bool) {
	if isPast(s.last(session), now) {
		return Proof{}, false
	}
	p, err := stand(r, session, now)
	return p, err == nil
}

// idle reports whether a session was not used for too long.
func (s *APISessions) idle(session *model.APISession, now time.Time) bool {
	return now.After(s.LastActivity(session).Add(s.Timeout))
}

// alive returns what a session rests on, if it stands and was used lately.
func (s *APISessions) alive(r kind.Reader, session *model.APISession, now time.Time) (Proof, bool) {
	if s.idle(session, now) {
		return Proof{}, false
	}
	return s.stands(r, session, now)
}

// Usable reports whether routers may let in who holds a session: it stands and
// has shown what a session remembers. A JWT that has to come with every
// request is asked for where sessions to dial and host are given out.
func (s *APISessions) Usable(r kind.Reader, session *model.APISession) bool {
	p, ok := s.stands(r, session, s.Now())
	return ok && (session.IsMFAComplete || !session.IsMFARequired && !p.policy.Secondary.RequireTOTP)
}

// Keep counts as use of the session with a token, as a router tells it; ok is
// false if there is no such session.
func (s *APISessions) Keep(r kind.Reader, token string) bool {
	session, ok := ByToken(r, token)
	now := s.Now()
	if !ok || s.idle(session, now) || !s.Usable(r, session) {
		return false
	}
	s.touch(session.ID, now)
	return true
}
