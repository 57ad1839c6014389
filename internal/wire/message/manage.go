package message

// Types of frames between a controller and tools that look at a network over a
// websocket.
const (
	TypeStreamEvents        int32 = 10040
	TypeEvent               int32 = 10041
	TypeTogglePipeTraces    int32 = 10044
	TypeToggleCircuitTraces int32 = 10045
	TypeStreamTraces        int32 = 10046
	TypeTrace               int32 = 10047

	TypeCheckTerminators       int32 = 10100
	TypeCheckingTerminators    int32 = 10101
	TypeCheckedTerminator      int32 = 10102
	TypeCheckLinks             int32 = 10103
	TypeCheckingLinks          int32 = 10104
	TypeCheckedLinks           int32 = 10105
	TypeCheckSDKTerminators    int32 = 10106
	TypeCheckingSDKTerminators int32 = 10107
	TypeCheckedSDKTerminators  int32 = 10108
	TypeCheckDataModel         int32 = 10109
	TypeCheckingDataModel      int32 = 10110
	TypeCheckedDataModel       int32 = 10111
	TypeCheckConnections       int32 = 10112
	TypeCheckingConnections    int32 = 10113
	TypeCheckedConnections     int32 = 10114
	TypeCheckTunnels           int32 = 10115
	TypeCheckingTunnels        int32 = 10116
	TypeCheckedTunnels         int32 = 10117
	TypeCheckCircuits          int32 = 10118
	TypeCheckingCircuits       int32 = 10119
	TypeCheckedCircuits        int32 = 10120
	TypeCheckDialers           int32 = 10122
	TypeCheckingDialers        int32 = 10123
)

// Check is TypeCheckTerminators and all other frames that ask for a check: of which
// terminators or routers, and whether to mend what is wrong.
type Check struct {
	Filter string `pb:"1"`
	Fix    bool   `pb:"2"`
}

// CheckDataModel is TypeCheckDataModel, which has its fields in another order.
type CheckDataModel struct {
	Filter     string `pb:"1"`
	Controller bool   `pb:"2"` // whether what the controller knows itself is to be looked at too
	Fix        bool   `pb:"3"`
}

// Checking is the answer: how many results follow, or why none do.
type Checking struct {
	Success bool   `pb:"1"`
	Message string `pb:"2"`
	Count   uint64 `pb:"3"`
}

// What is known of a terminator.
const (
	TerminatorValid      uint32 = 0
	TerminatorUnknown    uint32 = 1
	TerminatorNoBinding  uint32 = 2
	TerminatorNobody     uint32 = 3
	TerminatorBadState   uint32 = 4
	LinkStateUnknown     uint32 = 0
	LinkStateEstablished uint32 = 1
)

// CheckedTerminator is TypeCheckedTerminator.
type CheckedTerminator struct {
	ID          string `pb:"1"`
	ServiceID   string `pb:"2"`
	ServiceName string `pb:"3"`
	RouterID    string `pb:"4"`
	RouterName  string `pb:"5"`
	Binding     string `pb:"6"`
	Address     string `pb:"7"`
	HostID      string `pb:"8"`
	Created     string `pb:"9"`
	State       uint32 `pb:"10"`
	Fixed       bool   `pb:"11"`
	Detail      string `pb:"12"`
}

// CheckedLinks is TypeCheckedLinks.
type CheckedLinks struct {
	RouterID   string        `pb:"1"`
	RouterName string        `pb:"2"`
	Success    bool          `pb:"3"`
	Message    string        `pb:"4"`
	Links      []CheckedLink `pb:"5"`
}

// CheckedLink is one of them.
type CheckedLink struct {
	ID            string   `pb:"1"`
	AtController  uint32   `pb:"2"`
	AtRouter      uint32   `pb:"3"`
	DestConnected bool     `pb:"4"`
	Valid         bool     `pb:"5"`
	Dest          string   `pb:"6"`
	Dialed        bool     `pb:"7"`
	Messages      []string `pb:"8"`
}

// CheckedHosts is TypeCheckedSDKTerminators and TypeCheckedTunnels.
type CheckedHosts struct {
	RouterID   string        `pb:"1"`
	RouterName string        `pb:"2"`
	Success    bool          `pb:"3"`
	Message    string        `pb:"4"`
	Hosts      []CheckedHost `pb:"5"`
}

// CheckedHost is one of them.
type CheckedHost struct {
	TerminatorID string `pb:"1"`
	AtController uint32 `pb:"2"`
	AtRouter     string `pb:"3"`
	Valid        bool   `pb:"4"`
}

// CheckedComponent is TypeCheckedConnections and TypeCheckedDataModel.
type CheckedComponent struct {
	Type    string   `pb:"1"`
	ID      string   `pb:"2"`
	Name    string   `pb:"3"`
	Success bool     `pb:"4"`
	Errors  []string `pb:"5"`
}

// CheckedCircuits is TypeCheckedCircuits.
type CheckedCircuits struct {
	RouterID   string                    `pb:"1"`
	RouterName string                    `pb:"2"`
	Success    bool                      `pb:"3"`
	Message    string                    `pb:"4"`
	Circuits   map[string]CheckedCircuit `pb:"5"`
}

// CheckedCircuit is one of them.
type CheckedCircuit struct {
	ID              string            `pb:"1"`
	NotAtController bool              `pb:"2"`
	NotForwarded    bool              `pb:"3"`
	NotAtEdge       bool              `pb:"4"`
	NotAtSDK        bool              `pb:"5"`
	WhereItGoes     map[string]string `pb:"6"`
}
