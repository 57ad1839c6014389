package circuit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"netkeep/internal/data/state"
	"netkeep/internal/fabric/control"
	"netkeep/internal/fabric/message"
	"netkeep/internal/fabric/permit"
	"netkeep/internal/fabric/terminator"
	"netkeep/internal/fabric/wire"
	"netkeep/internal/model"
)

// Options of Circuits.
type Options struct {
	State    *state.State
	Sessions permit.Register
	Routers  *control.Routers
	// Invalid is told of terminators whose router knows nothing of them.
	Invalid func(ctx context.Context, r *control.Router, said *wire.Frame, terminatorID string)
	Now     func() time.Time
	Log     *slog.Logger
}

// Circuits makes circuits and ends them.
type Circuits struct {
	Options
	table *table
	owed  owed
}

// How long one dial may take in all, and how many terminators it may try.
const (
	dialWait    = 10 * time.Second
	maxAttempts = 3
)

// New returns circuits of which there are none.
func New(opt Options) *Circuits { return &Circuits{Options: opt, table: newTable()} }

// Len is how many circuits there are.
func (c *Circuits) Len() int { return c.table.len() }

// Register has routers ask for circuits and tell of their ends.
func (c *Circuits) Register() {
	c.Routers.Handle(message.TypeCreateCircuit, c.onCreate)
	c.Routers.Handle(message.TypeRouteResult, c.onLateResult)
	control.On(c.Routers, message.TypeFault, c.onFault)
	control.On(c.Routers, message.TypeCircuitConfirmation, c.onConfirmation)
	c.Routers.Joined(c.onJoined)
}

// Request is a dial, as a router asks for it.
type Request struct {
	permit.Request
	// Instance is the one host among several that is wanted; empty if it does
	// not matter.
	Instance string
	PeerData map[uint32][]byte
}

func (c *Circuits) onCreate(r *control.Router, f *wire.Frame) {
	peerData, ok := f.Headers.Data(message.HeaderPeerData)
	if !ok {
		r.Refuse(f, message.CodeInternal, "the peer data cannot be read")
		return
	}
	req := Request{
		Request: permit.Request{
			RouterID: r.ID, Type: model.Dial,
			SessionToken: f.Headers.Text(message.HeaderSessionToken), APIToken: f.Headers.Text(message.HeaderAPISessionToken),
		},
		Instance: f.Headers.Text(message.HeaderInstanceID), PeerData: peerData,
	}
	started := r.Go(func(ctx context.Context) {
		circuit, answer, err := c.Dial(ctx, r, req)
		if err != nil {
			refused, ok := permit.AsRefusal(err)
			if !ok {
				refused = &permit.Refusal{Code: message.CodeInternal, Text: err.Error()}
			}
			c.Log.Debug("no circuit", "router", r.ID, "code", refused.Code, "error", err)
			r.Refuse(f, refused.Code, refused.Text)
			return
		}
		h := wire.Headers{}
		h.SetText(message.HeaderCircuitID, circuit.ID)
		h.SetText(message.HeaderCircuitAddress, answer.Ingress)
		h.SetData(message.HeaderPeerData, answer.PeerData)
		h.SetTextMap(message.HeaderCircuitTags, circuit.Tags())
		r.Reply(f, &wire.Frame{Type: message.TypeCircuitCreated, Headers: h})
	})
	if !started {
		r.Refuse(f, message.CodeInternal, "the router asks for too much at once; try again")
	}
}

// Tags are what routers count traffic by.
func (c *Circuit) Tags() map[string]string {
	return map[string]string{"serviceId": c.ServiceID, "clientId": c.IdentityID, "hostId": c.HostID}
}

// Answer is what a dialer needs to know of its circuit.
type Answer struct {
	Ingress  string // the address of its end
	PeerData map[uint32][]byte
}

// Dial makes a circuit from a router to where a service is hosted: it tries
// terminators until one works.
func (c *Circuits) Dial(ctx context.Context, r *control.Router, req Request) (*Circuit, *Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	tried := map[string]bool{}
	var last error
	for attempt := range maxAttempts {
		// Everything is looked at again: it may have changed meanwhile.
		snap := c.State.Snapshot()
		s, err := permit.Session(snap, c.Sessions, req.Request)
		if err != nil {
			return nil, nil, err
		}
		service, ok := model.Services.Get(snap, s.ServiceID)
		if !ok {
			return nil, nil, permit.Refuse(message.CodeInvalidService, "there is no such service")
		}
		if _, has := req.PeerData[message.PeerPublicKey]; service.EncryptionRequired && !has {
			return nil, nil, permit.Refuse(message.CodeEncryptionMissing, "the service wants encryption from end to end, and the dialer offers none")
		}
		t, ok := c.choose(snap, service, r, req, tried)
		if !ok {
			break
		}
		tried[t.ID] = true
		circuit, answer, err := c.route(ctx, r, s, t.Terminator, service, req, uint32(attempt))
		if err == nil {
			return circuit, answer, nil
		}
		if last = err; ctx.Err() != nil {
			break
		}
	}
	if last == nil {
		last = permit.Refuse(message.CodeInvalidTerminator, "nobody hosts the service at present")
	}
	return nil, nil, last
}

// choose returns the terminator to try next.
func (c *Circuits) choose(snap *state.Snapshot, service *model.Service, r *control.Router, req Request, tried map[string]bool) (terminator.Candidate, bool) {
	among := terminator.Offered(snap, c.Sessions, service, r.ID, req.Instance)
	among = slices.DeleteFunc(among, func(t terminator.Candidate) bool { return tried[t.ID] })
	return terminator.Choose(service.TerminatorStrategy, among, string(req.PeerData[message.PeerSticky]))
}

// route has routers make a circuit that ends at a terminator.
func (c *Circuits) route(ctx context.Context, r *control.Router, s *model.Session, t *model.Terminator, service *model.Service, req Request, attempt uint32) (*Circuit, *Answer, error) {
	ingress, egress := newID(), newID()
	circuit := &Circuit{
		ID: circuitID(s.ID, t.SessionID), SessionID: s.ID, HostSessionID: t.SessionID, TerminatorID: t.ID,
		ServiceID: service.ID, IdentityID: s.IdentityID, HostID: t.HostID, Path: []string{r.ID}, Made: c.Now(),
	}
	deadline, _ := ctx.Deadline()
	route := &message.Route{
		CircuitID: circuit.ID, Attempt: attempt, Timeout: uint64(max(0, deadline.Sub(c.Now()))), Tags: circuit.Tags(),
		Egress: &message.Egress{Binding: t.Binding, Address: egress, Destination: t.Address, PeerData: req.PeerData},
		Forwards: []message.Forward{
			{From: ingress, To: egress, Type: message.ToEnd},
			{From: egress, To: ingress, Type: message.ToStart},
		},
	}
	// Before the router is told: from then on it may say that the circuit is
	// over, and somebody may take away what it rests on.
	c.table.add(circuit)
	peerData, err := c.instruct(ctx, r, t, route)
	if err == nil && !c.holds(circuit) {
		err = permit.Refuse(message.CodeInvalidSession, "what the session rests on is gone")
	}
	if err != nil {
		c.end(circuit.ID, true)
		return nil, nil, err
	}
	return circuit, &Answer{ingress, answerData(t, peerData)}, nil
}

// holds reports whether a circuit that was just made is still wanted.
func (c *Circuits) holds(circuit *Circuit) bool {
	if _, ok := c.table.get(circuit.ID); !ok {
		return false
	}
	_, ok := model.Sessions.Get(c.State.Snapshot(), circuit.SessionID)
	return ok
}

// instruct tells a router its part of a circuit and returns what the other end
// says.
func (c *Circuits) instruct(ctx context.Context, r *control.Router, t *model.Terminator, route *message.Route) (map[uint32][]byte, error) {
	reply, err := r.Request(ctx, control.Message(message.TypeRoute, route))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, permit.Refuse(message.CodeInternal, "the router did not make the circuit in time")
	case err != nil:
		return nil, err
	}
	if _, ok := reply.Headers[message.HeaderRouteSuccess]; ok && reply.Type == message.TypeRouteResult {
		return resultData(reply.Headers), nil
	}
	code, _ := reply.Headers.Byte(message.HeaderRouteErrorCode)
	if own := t.Binding == terminator.BindingEdge || t.Binding == terminator.BindingTunnel; own && message.RouteError(code) == message.RouteInvalidTerminator {
		c.Invalid(ctx, r, reply, t.ID)
	}
	return nil, permit.Refuse(message.CodeInternal, fmt.Sprintf("the host could not be reached: %.200s", reply.Headers.Text(message.HeaderRouteError)))
}

// resultData is what the other end says, out of the headers of a result. The
// channel's own headers are none of it.
func resultData(h wire.Headers) map[uint32][]byte {
	data := map[uint32][]byte{}
	for key, value := range h {
		if key >= 1000 && (key < 1100 || key > 1104) {
			data[uint32(key)] = value
		}
	}
	return data
}

// answerData is what a dialer is told: what is known of the terminator, and
// over it what the host said just now. Addresses of others are no business of
// a dialer.
func answerData(t *model.Terminator, said map[uint32][]byte) map[uint32][]byte {
	data := map[uint32][]byte{}
	for _, d := range t.PeerData {
		data[uint32(d.Key)] = d.Value
	}
	for key, value := range said {
		data[key] = value
	}
	for _, key := range []uint32{message.PeerLocal, message.PeerRemote, message.PeerDialerLocal, message.PeerDialerRemote} {
		delete(data, key)
	}
	data[message.PeerSticky] = []byte(t.ID)
	return data
}
