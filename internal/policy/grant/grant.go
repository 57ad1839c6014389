// Package grant gives out the permissions to dial and host services that
// clients take to edge routers, and takes them back when what they rest on is
// gone: the policy, the service, the API session, or what the client's device
// looks like. Who sees what is access's to say and what a device must look
// like is posture's. It must not import rest or api.
package grant

import (
	"context"
	"log/slog"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/posture"
)

// Grants gives out sessions.
type Grants struct {
	State *state.State
	// Usable reports whether an API session is good for dialing and hosting, as
	// authn.APISessions knows it.
	Usable func(r kind.Reader, api *model.APISession) bool
	// Recall returns the API session that a token is of, as it knows it too.
	Recall func(r kind.Reader, token string) (*model.APISession, bool)
	// RecallFormer is Recall for access tokens, whose time may be over.
	RecallFormer func(r kind.Reader, token string) (*model.APISession, bool)
	// CutOff, if set, reports whether this controller has not heard for too long
	// what others have changed.
	CutOff   func() bool
	Failures *posture.Failures
	// Failed, if set, hears of each check that a device failed when it asked for a
	// session: of what type the check is, and whether it refuses or only tells.
	Failed  func(typ, mode string)
	Changes *access.LastChange
	Tokens  *Tokens
	// Plain, if set, reports whether an identity's session for a service gets a
	// token that routers cannot read.
	Plain func(snap *state.Snapshot, identityID, serviceID string) bool
	// Mine, if set, reports whether it is this controller, of several, that removes
	// sessions which have lost what they rest on. Others step in when it does not.
	Mine func() bool
	// View, if set, is a snapshot as it is now by the clock.
	View func(*state.Snapshot) *state.Snapshot
	Now  func() time.Time
	Log  *slog.Logger

	lost lost
}

// Request is what a client asks for.
type Request struct {
	ServiceID string
	Type      string // model.Dial or model.Bind
	Tags      kind.Tags
}

// Blind reports whether more may have changed than is known here, so that
// nobody should be given anything.
func (s *Grants) Blind() bool { return s.CutOff != nil && s.CutOff() }

// Timely is a snapshot in which nothing counts whose time is over, also if the
// write that says so has yet to be made.
func (s *Grants) Timely(snap *state.Snapshot) *state.Snapshot {
	if s.View == nil {
		return snap
	}
	return s.View(snap)
}

// Recognise returns the session with a token.
func (s *Grants) Recognise(snap *state.Snapshot, token string) (*model.Session, bool) {
	return s.Tokens.Find(snap, token)
}

// Holds reports whether a session belongs to whose API session has a token. It
// may be another one of the same identity: a router of the first generation that
// two clients of an identity are connected to says the token of either. With a plain
// session, which such routers are shown, it says of an access token the first.
func (s *Grants) Holds(snap *state.Snapshot, apiToken string, session *model.Session) bool {
	api, ok := s.Recall(snap, apiToken)
	if !ok && session.Plain {
		api, ok = s.RecallFormer(snap, apiToken)
	}
	return ok && api.IdentityID == session.IdentityID
}

// Client returns the API session with a token, if it is good for dialing and
// hosting.
func (s *Grants) Client(snap *state.Snapshot, apiToken string) (*model.APISession, bool) {
	api, ok := s.Recall(snap, apiToken)
	return api, ok && s.Usable(snap, api)
}

// Create returns the caller's session of this type for a service: the one that
// its API session has already, or a new one.
func (s *Grants) Create(ctx context.Context, by state.Author, who *authn.Caller, req Request) (*model.Session, error) {
	var session *model.Session
	var told []posture.PolicyFailure
	err := s.State.UpdateSessions(ctx, by, func(tx *state.Tx) (err error) {
		session, told, err = s.create(tx, who.Session().ID, req)
		return err
	})
	switch snap := s.Timely(s.State.Snapshot()); {
	case fault.Is(err, fault.CodePosture) && unreported(snap, who.Session()):
		err := s.State.Delete(ctx, by, model.APISessions.Def, who.Session().ID)
		if err == nil || fault.Is(err, fault.CodeNotFound) {
			err = errEnded
		}
		return nil, err
	case fault.Is(err, fault.CodePosture):
		s.recordFailure(snap, who.Session(), req, false, s.Chain(snap, who.Session(), req.ServiceID, req.Type).failures())
	case err == nil && len(told) > 0:
		s.recordFailure(snap, who.Session(), req, true, told)
	}
	return session, err
}

// unreported reports whether a client reported its device to a controller that was before
// this one, and would not do so again as long as it is logged in.
func unreported(snap *state.Snapshot, api *model.APISession) bool {
	_, reports := model.Devices.Get(snap, api.ID)
	return api.Brought != "" && !reports
}

var errEnded = fault.New(fault.CodeUnauthorized, "the session has ended; authenticate again")

func (s *Grants) create(tx *state.Tx, apiSessionID string, req Request) (*model.Session, []posture.PolicyFailure, error) {
	api, ok := model.APISessions.Get(tx, apiSessionID)
	if !ok {
		return nil, nil, errEnded
	}
	chain := s.Chain(s.Timely(tx.Snapshot), api, req.ServiceID, req.Type)
	links := ToBegin
	if api.Bears() {
		links = ToWait
	}
	if err := chain.Refusal(links...); err != nil {
		return nil, nil, err
	}
	var told []posture.PolicyFailure
	waits := chain.Cleared() != nil
	if !waits { // else nobody has been let in yet
		told = chain.Told()
	}
	key := model.SessionKey(api.ID, req.Type, req.ServiceID)
	if there, ok := model.Sessions.Find(tx, "key", key); ok {
		if !waits || there.Waits {
			return there, told, nil
		}
		// It has lost what it rests on, and what was made with it ends.
		if err := model.Sessions.Delete(tx, there.ID); err != nil {
			return nil, nil, err
		}
	}
	session := &model.Session{
		Meta:         kind.Meta{Tags: req.Tags},
		APISessionID: api.ID, IdentityID: api.IdentityID, ServiceID: req.ServiceID, Type: req.Type, Key: key,
		Waits: waits, Plain: s.Plain != nil && s.Plain(tx.Snapshot, api.IdentityID, req.ServiceID), SignedBy: s.Tokens.Current(),
	}
	return session, told, model.Sessions.Create(tx, session)
}

// Live reports whether a session may still be used. One that may not is about
// to be removed.
func (s *Grants) Live(snap *state.Snapshot, session *model.Session) bool {
	return s.stands(s.Timely(snap), session)
}

// stands is Live by what is stored. A session that waits stands as long as its device has
// reported nothing here: whoever lets somebody dial or host with it asks Lacking as well.
func (s *Grants) stands(snap *state.Snapshot, session *model.Session) bool {
	chain, ok := s.of(snap, session)
	return ok && (chain.Cleared() == nil || session.Waits && s.trusted(snap, session, chain))
}

// trusted reports whether all that is known here lets a session's device pass, of which
// nothing was reported here.
func (s *Grants) trusted(snap *state.Snapshot, session *model.Session, chain *Chain) bool {
	_, reports := model.Devices.Get(snap, session.APISessionID)
	return !reports && chain.Supposed() == nil
}

// Lacking reports whether nothing stands against a session but that its device does not
// pass: by what is known here, or if a router has judged the device, by what only we know.
func (s *Grants) Lacking(snap *state.Snapshot, session *model.Session, judged bool) bool {
	snap = s.Timely(snap)
	chain, ok := s.of(snap, session)
	return ok && chain.Cleared() != nil && !(judged && s.trusted(snap, session, chain))
}

// Refused keeps what the device failed on of somebody who was not let dial or host with a
// session, as Create does where it gives none.
func (s *Grants) Refused(snap *state.Snapshot, session *model.Session) {
	snap = s.Timely(snap)
	if api, ok := model.APISessions.Get(snap, session.APISessionID); ok {
		req := Request{ServiceID: session.ServiceID, Type: session.Type}
		s.recordFailure(snap, api, req, false, s.Chain(snap, api, req.ServiceID, req.Type).failures())
	}
}

// of returns the chain of a session that has what it rests on, but for its device.
func (s *Grants) of(snap *state.Snapshot, session *model.Session) (*Chain, bool) {
	api, ok := model.APISessions.Get(snap, session.APISessionID)
	if !ok || !s.Usable(snap, api) {
		return nil, false
	}
	chain := s.Chain(snap, api, session.ServiceID, session.Type)
	return chain, chain.Granted() == nil
}

// Device evaluates what is known of the device that uses an API session.
func (s *Grants) Device(r kind.Reader, api *model.APISession) *posture.Evaluator {
	device, _ := model.Devices.Get(r, api.ID)
	session := posture.Session{ID: api.ID, MFAPassedAt: api.FactorShown(r), SDK: api.SDKInfo}
	return posture.NewEvaluator(posture.FactsOf(device), session, s.Now())
}

// recordFailure keeps what a request failed on, for admins to see.
func (s *Grants) recordFailure(snap *state.Snapshot, api *model.APISession, req Request, told bool, failures []posture.PolicyFailure) {
	failed := posture.FailedRequest{
		When: s.Now(), APISessionID: api.ID, ServiceID: req.ServiceID, SessionType: req.Type, ReportedOnly: told, PolicyFailures: failures,
	}
	if service, ok := model.Services.Get(snap, req.ServiceID); ok {
		failed.ServiceName = service.Name
	}
	s.Failures.Add(api.IdentityID, failed)
	if s.Failed != nil {
		failed.Each(s.Failed)
	}
}
