// Package permit decides whether a router may do what it asks for in the name
// of a client: host a service or dial it, with a session that the client holds.
// Its refusals carry the code that the router understands. It must not import
// rest or api, nor any package that talks to routers.
package permit

import (
	"context"
	"errors"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/wire/message"
)

// Refuse returns a refusal.
func Refuse(code message.ErrorCode, text string) error { return message.Refuse(code, text) }

// AsRefusal returns the refusal that an error is, if it is one.
func AsRefusal(err error) (*message.Refusal, bool) { return errors.AsType[*message.Refusal](err) }

// Register is what is known of the permissions that clients hold.
type Register interface {
	// Blind reports whether others may have changed more than is known here.
	Blind() bool
	// Timely is a snapshot in which nothing counts whose time is over by the clock.
	Timely(snap *state.Snapshot) *state.Snapshot
	// Recognise returns the session with a token.
	Recognise(snap *state.Snapshot, token string) (*model.Session, bool)
	// Holds reports whether a session belongs to whose API session has a token.
	Holds(snap *state.Snapshot, apiToken string, s *model.Session) bool
	// Client returns the API session with a token, if it may still be used.
	Client(snap *state.Snapshot, apiToken string) (*model.APISession, bool)
	// Live reports whether a session may still be used.
	Live(snap *state.Snapshot, s *model.Session) bool
	// Lacking reports whether nothing stands against a session but that its device does not
	// pass, which may have been judged by a router.
	Lacking(snap *state.Snapshot, s *model.Session, judged bool) bool
	// Refused takes note of a session with which somebody was not let in whose device does
	// not pass.
	Refused(snap *state.Snapshot, s *model.Session)
}

// Request is what a router asks for.
type Request struct {
	RouterID     string
	SessionToken string
	APIToken     string // of the client; not every router says it
	Type         string // model.Dial or model.Bind
	// Judged is whether the router judges devices itself, of clients with access tokens:
	// they report to it, and nobody else hears of it.
	Judged bool
}

var errBlind = message.Busy("the controller has lost its store and does not know whether the session is still good")

// Client returns the API session of a client that a router speaks for, or a
// refusal. The client must be one that the router may have.
func Client(snap *state.Snapshot, sessions Register, routerID, apiToken string) (*model.APISession, error) {
	if sessions.Blind() {
		return nil, errBlind
	}
	snap = sessions.Timely(snap)
	api, ok := sessions.Client(snap, apiToken)
	if !ok {
		return nil, Refuse(message.CodeInvalidAPISession, "there is no API session with this token, or it cannot be used")
	}
	ord, known := snap.Ordinal(model.EdgeRouters.Def, routerID)
	if !known || !access.EdgeRouters(snap, api.IdentityID).Contains(ord) {
		return nil, Refuse(message.CodeRouterNotAllowed, "no policy lets the identity use this router")
	}
	return api, nil
}

// Session returns the session that permits a request, or a refusal. It looks
// at everything that the session rests on as it is now: a router is never
// trusted to have noticed that something is gone.
func Session(snap *state.Snapshot, sessions Register, req Request) (*model.Session, error) {
	if sessions.Blind() {
		return nil, errBlind
	}
	snap = sessions.Timely(snap)
	s, ok := sessions.Recognise(snap, req.SessionToken)
	switch {
	case !ok:
		return nil, Refuse(message.CodeInvalidSession, "there is no session with this token")
	case req.APIToken != "" && !sessions.Holds(snap, req.APIToken, s):
		return nil, Refuse(message.CodeInvalidAPISession, "the session belongs to somebody else's API session")
	case s.Type != req.Type:
		return nil, Refuse(message.CodeWrongSessionType, "the session is not one to "+req.Type)
	case s.Waits && sessions.Lacking(snap, s, req.Judged):
		return nil, Refuse(message.CodePostureFailed, "the device does not pass the posture checks of any policy that gives this service")
	case !sessions.Live(snap, s):
		return nil, Refuse(message.CodeInvalidSession, "what the session rests on is gone")
	}
	ord, known := snap.Ordinal(model.EdgeRouters.Def, req.RouterID)
	if !known || !access.CommonRouters(snap, s.IdentityID, s.ServiceID).Contains(ord) {
		return nil, Refuse(message.CodeRouterNotAllowed, "no policy lets the identity use the service through this router")
	}
	return s, nil
}

var errUnsure = message.Busy("the controller cannot find out at present whether the session is good")

// doubtful reports whether another controller may know better.
func doubtful(code message.ErrorCode) bool {
	return code == message.CodeInvalidSession || code == message.CodeInvalidAPISession || code == message.CodePostureFailed
}

// Certain is Session for what routers must not be refused by mistake: a session that
// is not known may have been made at another controller a moment ago, and a device may
// have reported there. look waits until
// all is known that the store has; nil says that nobody else writes to it.
func Certain(ctx context.Context, st *state.State, look func(context.Context) (*state.Snapshot, error), sessions Register, req Request) (*model.Session, error) {
	snap := st.Snapshot()
	s, err := Session(snap, sessions, req)
	if refused, ok := AsRefusal(err); look != nil && ok && doubtful(refused.Code) {
		if snap, err = look(ctx); err != nil {
			return nil, errUnsure
		}
		s, err = Session(snap, sessions, req)
	}
	if refused, ok := AsRefusal(err); ok && refused.Code == message.CodePostureFailed {
		if waiting, ok := sessions.Recognise(snap, req.SessionToken); ok {
			sessions.Refused(snap, waiting)
		}
	}
	return s, err
}
