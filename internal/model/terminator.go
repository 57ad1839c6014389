package model

import (
	"encoding/binary"
	"strings"

	"netkeep.internal/internal/lang/kind"
)

// Terminator is where traffic of a service leaves the network.
type Terminator struct {
	kind.Meta

	ServiceID      string `json:"service" kind:"required,fixed,repeated,ref=service:cascade,as=service,out=serviceId" doc:"Id of the service whose traffic leaves the network here; it stays as it was created."`
	RouterID       string `json:"router" kind:"required,ref=router:cascade,as=router,out=routerId" doc:"Id of the router at which it leaves."`
	Binding        string `json:"binding" kind:"required,usual=transport" doc:"How the router reaches the address, such as transport, udp or edge; what the address implies if empty."`
	Address        string `json:"address" kind:"required" doc:"Where the router sends the traffic, such as tcp:10.0.0.7:5432."`
	Identity       string `json:"identity" kind:"fixed,alias=instanceId" doc:"Name of one host among several, for clients that want to reach just this one; empty if they do not care."`
	IdentitySecret []byte `json:"identitySecret" kind:"fixed,secret" doc:"What all terminators of that one host have in common, so that nobody else can take its name; it is never shown."`
	HostID         string `json:"hostId" kind:"server,hidden" doc:"Id of the identity that hosts the service here."`
	SessionID      string `json:"sessionId" kind:"server,hidden,index,nofilter" doc:"Id of the session that the service is hosted with; empty if nobody has to hold one."`
	// HostKey is what terminators with one key for one service are found by.
	HostKey    string `json:"hostKey" kind:"server,hidden,index,nofilter" doc:"Id of the service and, in hexadecimal, the public key with which the host encrypts from end to end; empty if it has none."`
	Cost       int    `json:"cost" kind:"range=0..65535" doc:"What it costs to use the terminator, compared with others of the service; 0 if not given."`
	Precedence string `json:"precedence" kind:"enum=default|required|failed,default=default" doc:"When the terminator is used: required ones come first, then those with default, and failed ones last."`
	// PeerData is what the host tells those who dial it.
	PeerData []PeerDatum `json:"peerData" kind:"server,hidden,nofilter" doc:"What the host tells those who dial it."`
}

// PeerDatum is one of the things that the ends of a circuit tell each other.
type PeerDatum struct {
	Key   int    `json:"key" kind:"server" doc:"What it is."`
	Value []byte `json:"value" kind:"server" doc:"Its bytes."`
}

// In which order terminators are chosen.
const (
	PrecedenceDefault  = "default"
	PrecedenceRequired = "required"
	PrecedenceFailed   = "failed"
)

// Terminators is the kind.
var Terminators = kind.Define(kind.Spec[Terminator]{
	Name:    "terminator",
	Path:    "terminators",
	Doc:     "Create a terminator: where traffic of a service leaves the network.",
	Verbs:   kind.CRUD,
	Columns: []string{"id", "service", "router", "binding", "address", "cost", "precedence", "identity"},
})

// Fill names the binding that an address implies.
func (t *Terminator) Fill() {
	switch {
	case t.Binding != "":
	case strings.HasPrefix(t.Address, "udp:"):
		t.Binding = "udp"
	default:
		t.Binding = "transport"
	}
}

// Ranked has the terminators of a service side by side, in it those with one
// name, of these those of one precedence, then by router and cost: so the
// cheapest ones at each router are found without a look at all of them.
func (t *Terminator) Ranked() (group, place string) {
	group = TerminatorsOf(t.ServiceID, t.Identity, t.Precedence) + t.RouterID + "\x00"
	return group, CostPlace(t.Cost)
}

// TerminatorsOf is how the groups begin of terminators that are of a service and
// have a name and a precedence. The id of a router and a zero follow.
func TerminatorsOf(serviceID, name, precedence string) string {
	return TerminatorsNamed(serviceID, name) + precedence + "\x00"
}

// TerminatorsNamed is how the groups begin of those that are of a service and
// have a name.
func TerminatorsNamed(serviceID, name string) string {
	// Nothing that a name can be is taken for a part of something else.
	length := binary.BigEndian.AppendUint32(nil, uint32(len(name)))
	return serviceID + "\x00" + string(length) + name
}

// CostPlace is the place of a terminator in its group.
func CostPlace(cost int) string { return string(binary.BigEndian.AppendUint16(nil, uint16(cost))) }

// Told returns what the host tells of one thing, nil if nothing.
func (t *Terminator) Told(key uint32) []byte {
	for _, d := range t.PeerData {
		if d.Key == int(key) {
			return d.Value
		}
	}
	return nil
}
