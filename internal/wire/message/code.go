package message

import "fmt"

// ErrorCode is why a request about sessions is refused. It travels as a number,
// in HeaderErrorCode, from a controller to a router and from there to a client.
type ErrorCode uint32

// The codes, by the numbers that all who speak to routers know. 12 is of API
// sessions of a kind that there is not here.
const (
	CodeInternal            ErrorCode = 1
	CodeInvalidAPISession   ErrorCode = 2
	CodeInvalidSession      ErrorCode = 3
	CodeWrongSessionType    ErrorCode = 4
	CodeRouterNotAllowed    ErrorCode = 5
	CodeInvalidService      ErrorCode = 6
	CodeTunnelingNotEnabled ErrorCode = 7
	CodeInvalidTerminator   ErrorCode = 8
	CodeInvalidPrecedence   ErrorCode = 9
	CodeInvalidCost         ErrorCode = 10
	CodeEncryptionMissing   ErrorCode = 11
	CodeInvalidAPIType      ErrorCode = 12
	CodeInvalidInstance     ErrorCode = 13
	CodeAccessDenied        ErrorCode = 14
	CodePostureFailed       ErrorCode = 15
)

// RetryHint is what to do about a refusal.
type RetryHint uint32

// The hints.
const (
	RetryDefault   RetryHint = iota // whoever was refused knows best
	RetryTooBusy                    // the same again, later
	RetryStartOver                  // again, with another session
	RetryNever                      // not again
)

// codes is all that there is to know of a code: what people and programs call
// it, what to do about it unless somebody says otherwise, and a sentence for
// those who are told no other.
var codes = [...]struct {
	name  string
	retry RetryHint
	says  string
}{
	CodeInternal:            {"INTERNAL", RetryDefault, "something went wrong on the way"},
	CodeInvalidAPISession:   {"INVALID_API_SESSION", RetryStartOver, "the login is over"},
	CodeInvalidSession:      {"INVALID_SESSION", RetryStartOver, "the session to use the service is over"},
	CodeWrongSessionType:    {"WRONG_SESSION_TYPE", RetryStartOver, "the session is for something else"},
	CodeRouterNotAllowed:    {"ROUTER_NOT_ALLOWED", RetryStartOver, "no policy lets the identity use the service through this router"},
	CodeInvalidService:      {"INVALID_SERVICE", RetryNever, "there is no such service"},
	CodeTunnelingNotEnabled: {"TUNNELING_NOT_ENABLED", RetryNever, "the router may not be a client"},
	CodeInvalidTerminator:   {"INVALID_TERMINATOR", RetryDefault, "nobody hosts the service at present"},
	CodeInvalidPrecedence:   {"INVALID_PRECEDENCE", RetryNever, "there is no such precedence"},
	CodeInvalidCost:         {"INVALID_COST", RetryNever, "a host cannot cost this"},
	CodeEncryptionMissing:   {"ENCRYPTION_MISSING", RetryDefault, "the service wants encryption from end to end, and one end offers none"},
	CodeInvalidAPIType:      {"INVALID_API_SESSION_TYPE", RetryStartOver, "the login is of another kind than this needs"},
	CodeInvalidInstance:     {"INVALID_INSTANCE", RetryNever, "another host has this name"},
	CodeAccessDenied:        {"ACCESS_DENIED", RetryDefault, "no policy lets the identity use the service"},
	CodePostureFailed:       {"POSTURE_FAILED", RetryDefault, "the device does not pass the posture checks of the service"},
}

func (c ErrorCode) known() bool { return c > 0 && int(c) < len(codes) }

// String is what the code is called. Nobody relies on the names of codes that
// are not known here.
func (c ErrorCode) String() string {
	if !c.known() {
		return fmt.Sprintf("CODE_%d", uint32(c))
	}
	return codes[c].name
}

// Retry is what to do about the code unless somebody says otherwise.
func (c ErrorCode) Retry() RetryHint {
	if !c.known() {
		return RetryDefault
	}
	return codes[c].retry
}

// Sentence says what the code means.
func (c ErrorCode) Sentence() string {
	if !c.known() {
		return "without a reason"
	}
	return codes[c].says
}

// invalidSession is what clients of others look for, letter by letter: only then
// do they ask for another session. It is said, and never looked for here.
const invalidSession = "Invalid Session"

// Say is a refusal in words: those that somebody chose, unless clients know the
// code by a text of its own.
func (c ErrorCode) Say(text string) string {
	if c == CodeInvalidSession {
		return invalidSession
	}
	return text
}

// RouteError is why a router could not do its part of a circuit.
type RouteError byte

// The reasons. The first is none of the others.
const (
	RouteFailed            RouteError = 0
	RouteInvalidTerminator RouteError = 1
	RouteMisconfigured     RouteError = 2
	RouteTimeout           RouteError = 3
	RouteRefused           RouteError = 4
	RouteRejected          RouteError = 5 // by the host, who could have taken it
	RouteNoName            RouteError = 6
	RoutePortNotAllowed    RouteError = 7
	RouteInvalidLink       RouteError = 8
	RouteNoRoom            RouteError = 9
)

// routes is what the reasons are called, and what a dialer is to do about them.
var routes = [...]struct {
	name  string
	retry RetryHint
}{
	RouteFailed:            {"HOST_FAILED", RetryDefault},
	RouteInvalidTerminator: {"HOST_UNKNOWN", RetryDefault},
	RouteMisconfigured:     {"HOST_MISCONFIGURED", RetryDefault},
	RouteTimeout:           {"HOST_TIMED_OUT", RetryDefault},
	RouteRefused:           {"HOST_UNREACHABLE", RetryDefault},
	RouteRejected:          {"HOST_REJECTED", RetryDefault},
	RouteNoName:            {"HOST_NAME_UNKNOWN", RetryDefault},
	RoutePortNotAllowed:    {"HOST_PORT_NOT_ALLOWED", RetryDefault},
	RouteInvalidLink:       {"NO_LINK", RetryTooBusy},
	RouteNoRoom:            {"HOST_FULL", RetryTooBusy},
}

func (e RouteError) known() RouteError {
	if int(e) < len(routes) {
		return e
	}
	return RouteFailed
}

// String is what the reason is called.
func (e RouteError) String() string { return routes[e.known()].name }

// Retry is what a dialer is to do about the reason.
func (e RouteError) Retry() RetryHint { return routes[e.known()].retry }

// RouteFailure is why a router could not do its part of a circuit, with words
// for whoever dialled.
type RouteFailure struct {
	Code RouteError
	Text string
}

func (f *RouteFailure) Error() string { return f.Text }
