package message

// OwnRevision is what the revision of a router of our own begins with in its
// hello; its own version and a slash follow, since the version there is that of
// the public release whose words it uses.
const OwnRevision = "netkeep-"

// Listener is where a router can be reached by others.
type Listener struct {
	Address      string   `pb:"1"`
	Protocol     string   `pb:"2"`
	CostTags     []string `pb:"3"`
	Groups       []string `pb:"4"`
	LocalBinding string   `pb:"5"`
}

// Listeners is where a router can be reached by other routers; it travels in
// its hello.
type Listeners struct {
	Listeners []Listener `pb:"1"`
}

// RouterMetadata is what a router of the first generation can do; it travels in
// its hello.
type RouterMetadata struct {
	Capabilities []RouterAbility `pb:"1"`
}

// RouterAbility is something that not all routers can do.
type RouterAbility uint32

// MakesLinks is said by routers that make links by themselves.
const MakesLinks RouterAbility = 1

// PeerState is what a router needs to know of another.
type PeerState struct {
	ID        string     `pb:"1"`
	Version   string     `pb:"2"`
	State     PeerHealth `pb:"3"`
	Listeners []Listener `pb:"4"`
}

// PeerHealth says whether a router is there.
type PeerHealth uint32

// The states.
const (
	PeerHealthy PeerHealth = iota
	PeerUnhealthy
	PeerRemoved
)

// PeerStates is TypePeerStates.
type PeerStates struct {
	Changes []PeerState `pb:"1"`
}

// Link is a connection between two routers, as the one that dialled tells it.
type Link struct {
	ID          string    `pb:"1"`
	Destination string    `pb:"2"`
	Protocol    string    `pb:"3"`
	CostTags    []string  `pb:"4"`
	DialAddress string    `pb:"5"`
	Iteration   uint32    `pb:"6"`
	Conns       LinkConns `pb:"7"`
}

// LinkConns are the connections that a link is made of.
type LinkConns struct {
	Iteration uint32     `pb:"1"`
	Conns     []LinkConn `pb:"2"`
}

// LinkConn is one of them.
type LinkConn struct {
	Type   string `pb:"1"`
	Local  string `pb:"2"`
	Remote string `pb:"3"`
}

// Links is TypeRouterLinks.
type Links struct {
	Links []Link `pb:"1"`
	// All says that the router has no others.
	All bool `pb:"2"`
}

// LinkState is TypeLinkState.
type LinkState struct {
	ID        string    `pb:"1"`
	Iteration uint32    `pb:"2"`
	Conns     LinkConns `pb:"3"`
}

// VerifyRouter is TypeVerifyRouter: does the certificate belong to the router?
type VerifyRouter struct {
	RouterID     string   `pb:"1"`
	Fingerprints []string `pb:"2"`
}

// Fault is TypeFault: something ended that was there.
type Fault struct {
	Subject   FaultSubject `pb:"1"`
	ID        string       `pb:"2"` // of the circuit or link; of several circuits, with blanks between them
	Iteration uint32       `pb:"3"`
}

// FaultSubject is what ended.
type FaultSubject uint32

// The subjects.
const (
	FaultIngress FaultSubject = iota
	FaultEgress
	FaultLink
	FaultForward
	FaultForwardUnknown
	FaultDuplicateLink
)

// Interfaces is TypeInterfaces.
type Interfaces struct {
	Interfaces []Interface `pb:"1"`
}

// Interface is a network interface of a router's machine.
type Interface struct {
	Name            string   `pb:"1"`
	HardwareAddress string   `pb:"2"`
	MTU             int64    `pb:"3"`
	Index           int64    `pb:"4"`
	Flags           uint64   `pb:"5"`
	Addresses       []string `pb:"6"`
}

// InspectRequest is TypeInspectRequest.
type InspectRequest struct {
	Names []string `pb:"1"`
}

// InspectResponse is TypeInspectResponse.
type InspectResponse struct {
	Success bool           `pb:"1"`
	Errors  []string       `pb:"2"`
	Values  []InspectValue `pb:"3"`
}

// InspectValue is what a router says under one name.
type InspectValue struct {
	Name  string `pb:"1"`
	Value string `pb:"2"`
}
