package api

import (
	"cmp"
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
	if err == nil {
		who := Caller(c).Identity()
		s.Recorder.Note(audit.Fact{Event: audit.LoggedIn, By: c.Author(), Target: audit.To(model.Identities.Def, who)})
		return
	}
	reason, ok := Refusal(err)
	if !ok {
		return
	}
	whom := s.whom(c, in)
	if fault.Is(err, fault.CodeAuth) {
		reason = s.whyNot(c, whom)
	}
	if why, ok := errors.AsType[*authn.Unwelcome](err); ok {
		reason = why.Reason
	}
	s.Recorder.Note(audit.Fact{Event: audit.LoginRefused, By: c.Author(), Target: whom, Reason: methodParam.Of(c) + ": " + reason})
}

// whom is whose credential somebody tried to show. A user name that nobody has is
// not told: it may be a password, typed where the name belongs.
func (s *Service) whom(c *rest.Call, in authenticateIn) (whom audit.Target) {
	var a *model.Authenticator
	var known bool
	switch methodParam.Of(c) {
	case byPassword:
		a, known = model.Authenticators.Find(c.Snap, "username", in.Username)
	case byCert:
		if shown := c.Certificates(); len(shown) > 0 {
			whom = audit.Target{Kind: "certificate", ID: pki.Fingerprint(shown[0]), Name: shown[0].Subject.CommonName}
			a, known = model.Authenticators.Find(c.Snap, "fingerprint", whom.ID)
		}
	}
	if !known {
		return whom
	}
	if i, ok := model.Identities.Get(c.Snap, a.IdentityID); ok {
		return audit.To(model.Identities.Def, i)
	}
	return whom
}

// whyNot is what whoever tried is not told.
func (s *Service) whyNot(c *rest.Call, whom audit.Target) string {
	i, known := model.Identities.Get(c.Snap, whom.ID)
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
	whom := audit.To(model.Identities.Def, Caller(c).Identity())
	if err == nil {
		s.Recorder.Note(audit.Fact{Event: audit.LoggedIn, By: c.Author(), Target: whom, Reason: "the second factor was shown"})
	} else if reason, ok := Refusal(err); ok {
		s.Recorder.Note(audit.Fact{Event: audit.LoginRefused, By: c.Author(), Target: whom, Reason: "code: " + reason})
	}
	return err
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
