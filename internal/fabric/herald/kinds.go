package herald

import (
	"time"

	"netkeep.internal/internal/lang/kind"
)

// Kinds of events of which there are no records, with what the Detail of each is.
var (
	// Usage is what circuits have carried: a Carried.
	Usage = &kind.Def{Name: "usage", Path: "usage"}
	// Clients is identities that come to routers and go, with their ids. The verbs are
	// online, offline, and unknown if the router is lost that has named them.
	Clients = &kind.Def{Name: "client", Path: "clients"}
	// Connections is who has connected to whom: a Connection.
	Connections = &kind.Def{Name: "connection", Path: "connections"}
	// Dials is what became of attempts to lead a circuit to a host: a Dial.
	Dials = &kind.Def{Name: "dial", Path: "dials"}
	// Figures is what a router has measured: a Measured.
	Figures = &kind.Def{Name: "figure", Path: "figures"}
	// Traces is frames that somebody has sent or got: a message.Trace.
	Traces = &kind.Def{Name: "trace", Path: "traces"}
	// Logins is attempts to authenticate: a Login.
	Logins = &kind.Def{Name: "login", Path: "logins"}
)

// Carried is the Detail of an event of Usage.
type Carried struct {
	RouterID string
	Start    int64             // s since 1970
	Length   uint64            // s
	Bytes    map[string]uint64 // by direction, such as ingress.rx
	Tags     map[string]string // of the circuit
}

// Connection is the Detail of an event of Connections.
type Connection struct {
	From, To Peer
	At       time.Time // when it was made
}

// Peer is one end of a connection.
type Peer struct{ Kind, ID, Address string }

// What a Peer is.
const (
	Identity   = "identity"
	Router     = "router"
	Controller = "controller"
)

// Dial is the Detail of an event of Dials, whose verb is one of those below. There is no
// terminator where it did not come to one.
type Dial struct{ ServiceID, TerminatorID string }

// What became of it.
const (
	DialMade          = "made"
	DialFailed        = "failed"        // the router of the host says so
	DialTimedOut      = "timed-out"     // a router has not answered
	DialElse          = "else"          // anything else
	HostTimedOut      = "host-slow"     // why the router says so
	HostRefused       = "host-refused"  // the same
	HostUnknown       = "host-unknown"  // the router knows nothing of the host
	HostMisconfigured = "host-unusable" // the address of the host is of no use to the router
)

// Measured is the Detail of an event of Figures.
type Measured struct {
	RouterID string
	At       time.Time
	Figures  []Figure
}

// Figure is something that was measured.
type Figure struct {
	Name   string
	Type   string // intValue, floatValue, meter, histogram or timer
	Tags   map[string]string
	Values map[string]any // numbers by name; value for the one of those that have one
}

// Login is the Detail of an event of Logins. What is not known of who tried is empty.
type Login struct {
	Method, IdentityID, AuthenticatorID, SignerID, PolicyID, Address string
	// Reason is why it was refused; empty if it was not.
	Reason string
}
