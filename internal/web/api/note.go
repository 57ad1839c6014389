package api

import (
	"cmp"
	"crypto/x509"
	"errors"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/web/rest"
)

// Refusal is why somebody was refused something, for the audit log; ok is false if
// that was for no reason of theirs, or since what they sent made no sense.
func Refusal(err error) (reason string, ok bool) {
	switch fault.CodeOf(err) {
	case fault.CodeInvalid, fault.CodeBody:
		return "", false
	}
	return denial(err)
}

// denial is Refusal where who lacks a right is told that a value is not acceptable.
func denial(err error) (reason string, ok bool) {
	switch fault.CodeOf(err) {
	case fault.CodeUnavailable, fault.CodeTimeout, fault.CodeUnhandled:
		return "", false
	}
	f, _ := errors.AsType[*fault.Error](err) // or it had no code but that of no other
	return cmp.Or(f.Reason, string(f.Code)), true
}

// noteLogin has the audit log tell of an attempt to authenticate.
func (s *Service) noteLogin(c *rest.Call, in authenticateIn, err error) {
	a := Attempt{By: c.Author(), Snap: c.Snap, Method: methodParam.Of(c), Username: in.Username, Certificates: c.Certificates()}
	if err == nil {
		a.Who, a.Session = Caller(c).Identity(), Caller(c).Session()
	}
	s.NoteAttempt(a, err)
}

// Attempt is one to authenticate, whichever way it came.
type Attempt struct {
	By   state.Author
	Snap *state.Snapshot
	// Method is password, cert or ext-jwt, with what was shown for it.
	Method, Username string
	Certificates     []*x509.Certificate
	// Who it turned out to be, if it succeeded, and the session that was opened, if one was.
	Who     *model.Identity
	Session *model.APISession
}

// NoteAttempt has the audit log tell of it, and those who look.
func (s *Service) NoteAttempt(a Attempt, err error) {
	if err == nil {
		s.Recorder.Note(audit.Fact{Event: audit.LoggedIn, By: a.By, Target: audit.To(model.Identities.Def, a.Who)})
		s.tellAttempt(a, "")
		return
	}
	reason, ok := Refusal(err)
	if !ok {
		return
	}
	whom := a.whom()
	if fault.Is(err, fault.CodeAuth) {
		reason = s.whyNot(a.Snap, whom)
	}
	if why, ok := errors.AsType[*authn.Unwelcome](err); ok {
		reason = why.Reason
	}
	s.Recorder.Note(audit.Fact{Event: audit.LoginRefused, By: a.By, Target: whom, Reason: a.Method + ": " + reason})
	s.tellAttempt(a, reason)
}

// whom is whose credential somebody tried to show. A user name that nobody has is
// not told: it may be a password, typed where the name belongs.
func (a Attempt) whom() (whom audit.Target) {
	if certs := a.Certificates; a.Method == byCert && len(certs) > 0 {
		whom = audit.Target{Kind: "certificate", ID: pki.Fingerprint(certs[0]), Name: certs[0].Subject.CommonName}
	}
	shown := a.shown()
	if shown == nil {
		return whom
	}
	if i, ok := model.Identities.Get(a.Snap, shown.IdentityID); ok {
		return audit.To(model.Identities.Def, i)
	}
	return whom
}

// shown is the authenticator that was meant; nil if there is none.
func (a Attempt) shown() *model.Authenticator {
	switch a.Method {
	case byPassword:
		if shown, known := model.Authenticators.Find(a.Snap, "username", a.Username); known {
			return shown
		}
	case byCert:
		if certs := a.Certificates; len(certs) > 0 {
			if shown, known := model.Authenticators.Find(a.Snap, "fingerprint", pki.Fingerprint(certs[0])); known {
				return shown
			}
		}
	}
	return nil
}

// whyNot is what whoever tried is not told.
func (s *Service) whyNot(snap *state.Snapshot, whom audit.Target) string {
	i, known := model.Identities.Get(snap, whom.ID)
	switch {
	case !known:
		return "nobody is known by what was shown"
	case i.Disabled(s.Sessions.Now()):
		return "the identity is disabled"
	}
	return "what was shown is wrong, or may not be used"
}

// noteCode has it tell that a second factor was shown, or not.
func (s *Service) noteCode(c *rest.Call, err error) error {
	s.NoteFactor(c.Author(), Caller(c).Identity(), err)
	return err
}

// NoteFactor has it tell that somebody showed a second factor, or did not.
func (s *Service) NoteFactor(by state.Author, who *model.Identity, err error) {
	whom := audit.To(model.Identities.Def, who)
	if err == nil {
		s.Recorder.Note(audit.Fact{Event: audit.LoggedIn, By: by, Target: whom, Reason: "the second factor was shown"})
	} else if reason, ok := Refusal(err); ok {
		s.Recorder.Note(audit.Fact{Event: audit.LoginRefused, By: by, Target: whom, Reason: "code: " + reason})
	}
}

// NoteSnapshot has it tell of a snapshot that was taken, or that failed. One that is
// not due yet was not tried.
func (s *Service) NoteSnapshot(by state.Author, name string, err error) {
	f := audit.Fact{Event: audit.SnapshotMade, By: by, Target: audit.Target{Kind: "snapshot", ID: name, Name: name}}
	if err != nil {
		f.Event, f.Reason = audit.SnapshotFailed, err.Error()
	}
	if !fault.Is(err, fault.CodeRateLimited) {
		s.Recorder.Note(f)
	}
}

// NoteMember has it tell of what was done about a controller of the network.
func (s *Service) NoteMember(c *rest.Call, event *audit.Event, id string, err error) error {
	if err == nil {
		s.Recorder.Note(audit.Fact{Event: event, By: c.Author(), Target: audit.Target{Kind: model.Controllers.Def.Name, ID: id, Name: id}})
	}
	return err
}

// NoteSession has it tell that somebody may not dial or host a service.
func NoteSession(r *audit.Recorder, snap *state.Snapshot, by state.Author, service, typ string, err error) {
	reason, ok := denial(err)
	if err == nil || !ok {
		return
	}
	what := audit.Target{Kind: model.Services.Def.Name, ID: service}
	if rec, known := model.Services.Get(snap, service); known {
		what.Name = rec.Name
	}
	r.Note(audit.Fact{Event: audit.SessionRefused, By: by, Target: what, Reason: typ + ": " + reason})
}

// noteToken has it tell of a token that was refused. One that was good when the
// request began has ended since, which is nobody's attempt.
func (s *Service) noteToken(c *rest.Call, err error) {
	if c.Open() || c.Caller != nil {
		return
	}
	if reason, ok := Refusal(err); ok {
		s.Recorder.Note(audit.Fact{Event: audit.TokenRefused, By: c.Author(), Reason: reason})
	}
}
