package message

import "netkeep.internal/internal/wire"

// CreateCircuit is TypeCreateCircuit: a client dials. It has headers alone.
type CreateCircuit struct {
	SessionToken    string
	APISessionToken string
	Fingerprints    []string // of the certificates that the client showed
	InstanceID      string   // of the host that it wants
	PeerData        map[uint32][]byte
}

// Frame is the dial as a router sends it.
func (m *CreateCircuit) Frame() *wire.Frame {
	h := wire.Headers{}
	h.SetText(HeaderSessionToken, m.SessionToken)
	h.SetText(HeaderAPISessionToken, m.APISessionToken)
	h.SetTexts(HeaderFingerprints, m.Fingerprints)
	h.SetText(HeaderInstanceID, m.InstanceID)
	h.SetData(HeaderPeerData, m.PeerData)
	return &wire.Frame{Type: TypeCreateCircuit, Headers: h}
}

// CircuitCreated is TypeCircuitCreated: a circuit that was made. It has headers
// alone.
type CircuitCreated struct {
	CircuitID string
	Address   string // of the end that begins at the router
	PeerData  map[uint32][]byte
	Tags      map[string]string
}

// CircuitIn is the circuit in a frame.
func CircuitIn(f *wire.Frame) *CircuitCreated {
	m := &CircuitCreated{CircuitID: f.Headers.Text(HeaderCircuitID), Address: f.Headers.Text(HeaderCircuitAddress)}
	m.Tags, _ = f.Headers.TextMap(HeaderCircuitTags)
	m.PeerData, _ = f.Headers.Data(HeaderPeerData)
	return m
}

// Route is TypeRoute: a router's part of a circuit.
type Route struct {
	CircuitID string            `pb:"1"`
	Attempt   uint32            `pb:"2"`
	Egress    *Egress           `pb:"3"` // for the router where the circuit ends
	Forwards  []Forward         `pb:"4"`
	Timeout   uint64            `pb:"6"` // ns
	Tags      map[string]string `pb:"7"`
}

// Egress is how a circuit leaves the network.
type Egress struct {
	Binding     string            `pb:"1"`
	Address     string            `pb:"2"` // of this end of the circuit
	Destination string            `pb:"3"` // of the terminator
	PeerData    map[uint32][]byte `pb:"4"`
}

// Forward says where what comes from an address goes.
type Forward struct {
	From string          `pb:"1"`
	To   string          `pb:"2"`
	Type DestinationType `pb:"3"`
}

// DestinationType is what an address is.
type DestinationType uint32

// The types.
const (
	ToStart DestinationType = iota
	ToEnd
	ToLink
)

// Unroute is TypeUnroute: a circuit is over. Now says not to wait for what is
// on its way.
type Unroute struct {
	CircuitID string `pb:"1"`
	Now       bool   `pb:"2"`
}

// CircuitConfirmation is TypeCircuitConfirmation: circuits on which nothing
// happens; are they still?
type CircuitConfirmation struct {
	CircuitIDs []string         `pb:"1"`
	Idle       map[string]int64 `pb:"2"` // ns
}

// Precedence is in which order hosts are chosen.
type Precedence uint32

// The precedences.
const (
	PrecedenceDefault Precedence = iota
	PrecedenceRequired
	PrecedenceFailed
)

// PrecedenceOf is the one that people call by a word.
func PrecedenceOf(word string) Precedence {
	switch word {
	case "required":
		return PrecedenceRequired
	case "failed":
		return PrecedenceFailed
	}
	return PrecedenceDefault
}

// Terminator is where traffic leaves the network.
type Terminator struct {
	ID      string `pb:"1"`
	Binding string `pb:"2"`
	Address string `pb:"3"`
	Marker  uint64 `pb:"4"`
}

// ValidateTerminators is TypeValidateTerminators: which of these are still?
type ValidateTerminators struct {
	Terminators []Terminator `pb:"1"`
	Fix         bool         `pb:"2"`
	PostCreate  bool         `pb:"3"`
}

// TerminatorsValidated is TypeTerminatorsValidated.
type TerminatorsValidated struct {
	States map[string]TerminatorState `pb:"1"`
}

// TerminatorState is what a router knows of a terminator.
type TerminatorState struct {
	Valid  bool   `pb:"1"`
	Reason uint32 `pb:"2"`
	Detail string `pb:"3"`
	Marker uint64 `pb:"4"`
}

// RemoveTerminators is TypeRemoveTerminators.
type RemoveTerminators struct {
	IDs []string `pb:"1"`
}

// CreateTerminator is TypeCreateTerminator: a client hosts.
type CreateTerminator struct {
	Address         string            `pb:"1"`
	SessionToken    string            `pb:"2"`
	Fingerprints    []string          `pb:"3"`
	PeerData        map[uint32][]byte `pb:"4"`
	Cost            uint32            `pb:"5"`
	Precedence      Precedence        `pb:"6"`
	InstanceID      string            `pb:"7"`
	InstanceSecret  []byte            `pb:"8"`
	APISessionToken string            `pb:"9"`
}

// TerminatorCreated is TypeTerminatorCreated.
type TerminatorCreated struct {
	ID        string           `pb:"1"`
	Result    TerminatorResult `pb:"2"`
	Message   string           `pb:"3"`
	ErrorCode ErrorCode        `pb:"4"`
	Retry     RetryHint        `pb:"5"`
}

// Refusal is why there is none. Controllers of the first generation give no code:
// then the result is all that is known.
func (m *TerminatorCreated) Refusal() *Refusal {
	r := &Refusal{Code: m.ErrorCode, Retry: m.Retry, Text: m.Message}
	switch {
	case r.Code != 0:
	case m.Result == TerminatorInvalidSession:
		r.Code, r.Retry = CodeInvalidSession, RetryStartOver
	case m.Result == TerminatorConflict:
		r.Code, r.Retry = CodeInvalidTerminator, RetryStartOver
	}
	return r
}

// TerminatorResult is how hosting began.
type TerminatorResult uint32

// The results.
const (
	TerminatorOK TerminatorResult = iota
	TerminatorConflict
	TerminatorFailed
	TerminatorBusy
	TerminatorInvalidSession
)

// UpdateTerminator is TypeUpdateTerminator.
type UpdateTerminator struct {
	SessionToken     string     `pb:"1"`
	Fingerprints     []string   `pb:"2"`
	TerminatorID     string     `pb:"3"`
	Cost             uint32     `pb:"4"`
	Precedence       Precedence `pb:"5"`
	UpdatePrecedence bool       `pb:"6"`
	UpdateCost       bool       `pb:"7"`
	APISessionToken  string     `pb:"8"`
}

// RemoveTerminator is TypeRemoveTerminator.
type RemoveTerminator struct {
	SessionToken    string   `pb:"1"`
	Fingerprints    []string `pb:"2"`
	TerminatorID    string   `pb:"3"`
	APISessionToken string   `pb:"4"`
}
