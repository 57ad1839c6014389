package sdk

import (
	"errors"
	"fmt"

	"netkeep.internal/internal/wire/message"
)

// What errors of this package may be.
var (
	ErrNoService   = errors.New("there is no such service")
	ErrDenied      = errors.New("the service may not be used")
	ErrNoRouter    = errors.New("no edge router can be reached")
	ErrNoHost      = errors.New("nobody hosts the service")
	ErrUnreachable = errors.New("who hosts the service cannot be reached")
	ErrRefused     = errors.New("the connection was refused")
	ErrSession     = errors.New("the session to use the service is over")
	ErrBusy        = errors.New("the network has too much to do at present")
	ErrFactor      = errors.New("a second factor is needed")

	errPosture  = fmt.Errorf("%w: a posture check fails", ErrDenied)
	errUnserved = fmt.Errorf("%w: no policy gives the identity one for the service", ErrNoRouter)
)

// problem is a kind of error with the sentence that says it, and the refusal
// that it comes from if there was one.
type problem struct {
	kind    error
	text    string
	refused *message.Refusal
}

func (p *problem) Error() string { return p.text }

func (p *problem) Unwrap() []error {
	if p.refused == nil {
		return []error{p.kind}
	}
	return []error{p.kind, p.refused}
}

// final reports whether to try again would not help, by what is known.
func (p *problem) final() bool { return p.refused == nil || p.refused.Retry == message.RetryNever }

func say(kind error, format string, args ...any) error {
	return &problem{kind: kind, text: fmt.Sprintf(format, args...)}
}

// kinds is what codes of refusals mean to who dials or hosts. Others are
// [ErrRefused], and so is a refusal without a code, whatever its text.
var kinds = map[message.ErrorCode]error{
	message.CodeInvalidAPISession:   ErrSession,
	message.CodeInvalidSession:      ErrSession,
	message.CodeWrongSessionType:    ErrSession,
	message.CodeInvalidAPIType:      ErrSession,
	message.CodeRouterNotAllowed:    ErrDenied,
	message.CodeTunnelingNotEnabled: ErrDenied,
	message.CodeAccessDenied:        ErrDenied,
	message.CodePostureFailed:       errPosture,
	message.CodeInvalidService:      ErrNoService,
}

// unreached is what the reasons of routers mean to who dials.
var unreached = map[message.RouteError]error{
	message.RouteFailed:            ErrUnreachable,
	message.RouteInvalidTerminator: ErrNoHost,
	message.RouteTimeout:           ErrUnreachable,
	message.RouteRefused:           ErrUnreachable,
	message.RouteNoName:            ErrUnreachable,
}

// kindOf is what a refusal means.
func kindOf(r *message.Refusal) error {
	kind := kinds[r.Code]
	switch {
	case r.Retry == message.RetryTooBusy:
		kind = ErrBusy
	case r.Hosted:
		kind = unreached[r.Route]
	}
	if kind == nil {
		return ErrRefused
	}
	return kind
}

// notConnected says why there is no connection to a service, or to the one host of it
// that was wanted.
func notConnected(service, instance string, r *message.Refusal) error {
	kind, text := kindOf(r), fmt.Sprintf("the service %s was not connected: %s", service, r.Named())
	if r.Code == message.CodeInvalidTerminator {
		if instance != "" {
			service += fmt.Sprintf(" as %q", instance)
		}
		kind, text = ErrNoHost, fmt.Sprintf("nobody hosts the service %s at present; start what hosts it, or look at: netkeep list terminators", service)
	}
	return &problem{kind, text, r}
}

// turnedDown says why a service is not hosted at a router, or not any more.
func turnedDown(r *message.Refusal) error {
	return &problem{kindOf(r), r.Named(), r}
}

// cutOff says why a connection was ended that was there; nil if that is as it
// should be, for which there is no code.
func (c *Conn) cutOff(r *message.Refusal) error {
	if r.Code == 0 {
		return nil
	}
	return &problem{kindOf(r), fmt.Sprintf("the connection to %s was ended: %s", c.about.Service, r.Named()), r}
}

// worthAnother reports whether a refusal may be one of the session alone, as far
// as routers say: those of others do not.
func worthAnother(err error) bool {
	r, ok := errors.AsType[*message.Refusal](err)
	return !ok || r.Code == 0 || r.Retry == message.RetryStartOver
}

// CodeOf is the name of why somebody in the network refused; empty if nobody
// did, or gave no code.
func CodeOf(err error) string {
	r, ok := errors.AsType[*message.Refusal](err)
	if !ok {
		return ""
	}
	return r.Name()
}
