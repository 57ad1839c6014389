package message

// Routers of the first generation that are clients themselves: each acts as the
// identity that has its id, and asks for everything by the name of the service.

// Types of frames of routers that are clients themselves.
const (
	TypeCreateTunnelSession     int32 = 20400
	TypeTunnelSessionCreated    int32 = 20401
	TypeCreateTunnelCircuit     int32 = 20402
	TypeTunnelCircuitCreated    int32 = 20403
	TypeListTunnelServices      int32 = 20404 // its body is the version that the router has
	TypeTunnelServices          int32 = 20405
	TypeCreateTunnelTerminator  int32 = 20406
	TypeTunnelTerminatorCreated int32 = 20407
	TypeUpdateTunnelTerminator  int32 = 20408
	TypeTunnelTerminatorUpdated int32 = 20409
	TypeRemoveTunnelTerminator  int32 = 20410 // its body is the id
	TypeTunnelTerminatorRemoved int32 = 20411
	TypeTunnelHealthEvent       int32 = 20412
)

// CreateTunnelSession is TypeCreateTunnelSession: a router begins to be a client.
type CreateTunnelSession struct {
	Env         TunnelEnv `pb:"1"`
	SDK         TunnelSDK `pb:"2"`
	ConfigTypes []string  `pb:"3"` // names, or all
}

// TunnelEnv is what a router says of its machine.
type TunnelEnv struct {
	Arch      string `pb:"1"`
	OS        string `pb:"2"`
	OSRelease string `pb:"3"`
	OSVersion string `pb:"4"`
	Hostname  string `pb:"5"`
	Domain    string `pb:"6"`
}

// TunnelSDK is what a router says of the client in it.
type TunnelSDK struct {
	AppID      string `pb:"1"`
	AppVersion string `pb:"2"`
	Branch     string `pb:"3"`
	Revision   string `pb:"4"`
	Type       string `pb:"5"`
	Version    string `pb:"6"`
}

// TunnelSession is TypeTunnelSessionCreated: the API session of a router, and
// what it should know of its own identity.
type TunnelSession struct {
	ID                string                `pb:"1"`
	Token             string                `pb:"2"`
	RefreshSeconds    uint32                `pb:"3"`
	IdentityID        string                `pb:"4"`
	IdentityName      string                `pb:"5"`
	DefaultPrecedence Precedence            `pb:"6"`
	DefaultCost       uint32                `pb:"7"`
	AppData           string                `pb:"8"` // JSON; empty if there is none
	Precedences       map[string]Precedence `pb:"9"` // by service
	Costs             map[string]uint32     `pb:"10"`
}

// TunnelPermit is a session to dial or host, as a router knows it.
type TunnelPermit struct {
	ID    string `pb:"1"`
	Token string `pb:"2"`
}

// CreateTunnelCircuit is TypeCreateTunnelCircuit: a router dials.
type CreateTunnelCircuit struct {
	SessionID   string            `pb:"1"` // that it had last
	ServiceName string            `pb:"2"`
	InstanceID  string            `pb:"3"`
	PeerData    map[uint32][]byte `pb:"4"`
}

// TunnelCircuit is TypeTunnelCircuitCreated.
type TunnelCircuit struct {
	APISession *TunnelSession    `pb:"1"` // if the router has not been told of it
	Session    *TunnelPermit     `pb:"2"` // always: routers do not ask whether it is there
	CircuitID  string            `pb:"3"`
	Address    string            `pb:"4"`
	PeerData   map[uint32][]byte `pb:"5"`
	Tags       map[string]string `pb:"6"`
}

// TunnelServices is TypeTunnelServices: what a router may dial and host.
type TunnelServices struct {
	// Version comes back with the next question.
	Version  []byte          `pb:"1"`
	Services []TunnelService `pb:"2"`
}

// TunnelService is one of them.
type TunnelService struct {
	ID          string   `pb:"1"`
	Name        string   `pb:"2"`
	Permissions []string `pb:"3"`
	Encryption  bool     `pb:"4"`
	Config      []byte   `pb:"5"` // JSON object: config types by name
	Tags        []byte   `pb:"6"` // JSON object
}

// CreateTunnelTerminator is TypeCreateTunnelTerminator: a router hosts.
type CreateTunnelTerminator struct {
	ServiceName    string            `pb:"1"`
	SessionID      string            `pb:"2"` // that it had last
	Address        string            `pb:"3"`
	PeerData       map[uint32][]byte `pb:"4"`
	Cost           uint32            `pb:"5"`
	Precedence     Precedence        `pb:"6"`
	InstanceID     string            `pb:"7"`
	InstanceSecret []byte            `pb:"8"`
	Started        int64             `pb:"9"` // comes back with the answer
}

// TunnelTerminator is TypeTunnelTerminatorCreated.
type TunnelTerminator struct {
	APISession *TunnelSession `pb:"1"` // if the router has not been told of it
	Session    *TunnelPermit  `pb:"2"` // always
	ID         string         `pb:"3"`
	Started    int64          `pb:"4"`
}

// UpdateTunnelTerminator is TypeUpdateTunnelTerminator.
type UpdateTunnelTerminator struct {
	TerminatorID     string     `pb:"1"`
	Cost             uint32     `pb:"2"`
	Precedence       Precedence `pb:"3"`
	UpdatePrecedence bool       `pb:"4"`
	UpdateCost       bool       `pb:"5"`
}

// Routers of the second generation that are clients themselves know beforehand
// what they may use, and nothing of sessions.

// Types of frames of such routers.
const (
	TypeDialAsClient   int32 = 20220
	TypeDialedAsClient int32 = 20221
	TypeHostAsClient   int32 = 20413
	TypeHostedAsClient int32 = 20414
)

// DialAsClient is TypeDialAsClient.
type DialAsClient struct {
	ServiceName string            `pb:"1"`
	InstanceID  string            `pb:"2"`
	PeerData    map[uint32][]byte `pb:"3"`
}

// DialedAsClient is TypeDialedAsClient.
type DialedAsClient struct {
	CircuitID string            `pb:"1"`
	Address   string            `pb:"2"`
	PeerData  map[uint32][]byte `pb:"3"`
	Tags      map[string]string `pb:"4"`
}

// HostAsClient is TypeHostAsClient.
type HostAsClient struct {
	ServiceID      string            `pb:"1"`
	Address        string            `pb:"2"`
	PeerData       map[uint32][]byte `pb:"3"`
	Cost           uint32            `pb:"4"`
	Precedence     Precedence        `pb:"5"`
	InstanceID     string            `pb:"6"`
	InstanceSecret []byte            `pb:"7"`
	Started        int64             `pb:"8"` // comes back with the answer
}

// HostedAsClient is TypeHostedAsClient.
type HostedAsClient struct {
	ID        string           `pb:"1"`
	Started   int64            `pb:"2"`
	Result    TerminatorResult `pb:"3"`
	Message   string           `pb:"4"`
	ErrorCode ErrorCode        `pb:"5"`
	Retry     RetryHint        `pb:"6"`
}
