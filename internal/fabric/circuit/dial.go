package circuit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/fabric/path"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Options of Circuits.
type Options struct {
	State    *state.State
	Sessions permit.Register
	Routers  *control.Routers
	// Graph is where paths are found.
	Graph *path.Graph
	// LinkFault is told of links that are gone, and LinkKnown reports whether
	// there is one.
	LinkFault func(r *control.Router, m *message.Fault)
	LinkKnown func(id string) bool
	// Hosts chooses where circuits end, and is told how that went.
	Hosts *terminator.Hosts
	// Dialled is told of every dial: why it failed, in one of a few words, empty
	// if it did not, and how long it took. Ended is told of circuits that are
	// over.
	Dialled func(reason string, took time.Duration)
	Ended   func(*Circuit)
	// Recorder takes note of circuits that were made and that were not, and Each says
	// that every one has an entry of its own.
	Recorder *audit.Recorder
	Each     bool
	// Herald tells of circuits to those who look.
	Herald *herald.Herald
	// Controller is the id of this one.
	Controller string
	// Online reports whether a router is connected to any controller, and Look waits
	// until this one knows all that the store has; nil where there is no other.
	Online func(routerID string) bool
	Look   func(ctx context.Context) (*state.Snapshot, error)
	Now    func() time.Time
	Log    *slog.Logger
}

// Circuits makes circuits and ends them.
type Circuits struct {
	Options
	table  *table
	epoch  string // what the ids of those begin with that were made here
	known  asked
	owed   owed
	moves  moves
	strays strays
	moved  atomic.Uint64

	foreign foreign
}

// How long one dial may take in all, and how many terminators it may try.
const (
	dialWait    = 10 * time.Second
	maxAttempts = 3
)

// New returns circuits of which there are none.
func New(opt Options) *Circuits {
	c := &Circuits{Options: opt, table: newTable(), epoch: newEpoch(), foreign: foreign{since: opt.Now()}}
	c.moves.init()
	return c
}

// Moved is how many circuits got another path.
func (c *Circuits) Moved() uint64 { return c.moved.Load() }

// All returns the circuits in the order of their ids.
func (c *Circuits) All() []*Circuit {
	all := c.table.all()
	slices.SortFunc(all, func(a, b *Circuit) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Get returns the circuit with an id.
func (c *Circuits) Get(id string) (*Circuit, bool) { return c.table.get(id) }

// End ends a circuit; it reports false if there is none with the id. now says
// not to wait for what is on its way.
func (c *Circuits) End(id string, now bool) bool { return c.end(id, now) }

// Len is how many circuits there are.
func (c *Circuits) Len() int { return c.table.len() }

// Register has routers ask for circuits and tell of their ends.
func (c *Circuits) Register() {
	c.Routers.Handle(message.TypeCreateCircuit, c.onCreate)
	c.Routers.Handle(message.TypeRouteResult, c.onLateResult)
	control.On(c.Routers, message.TypeFault, c.onFault)
	control.On(c.Routers, message.TypeCircuitConfirmation, c.onConfirmation)
	c.Routers.Joined(c.onJoined)
	c.Routers.Left(c.onLeft)
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
		r.Refuse(f, message.Refuse(message.CodeInternal, "the peer data cannot be read"))
		return
	}
	req := Request{
		Request: permit.Request{
			RouterID: r.ID, Type: model.Dial, Judged: r.Judges(),
			SessionToken: f.Headers.Text(message.HeaderSessionToken), APIToken: f.Headers.Text(message.HeaderAPISessionToken),
		},
		Instance: f.Headers.Text(message.HeaderInstanceID), PeerData: peerData,
	}
	started := r.ForDial(f, func(ctx context.Context) {
		circuit, answer, err := c.Dial(ctx, r, req)
		if err != nil {
			refused, ok := permit.AsRefusal(err)
			if !ok {
				refused = message.Refuse(message.CodeInternal, err.Error())
			}
			c.Log.Debug("no circuit", "router", r.ID, "code", refused.Name(), "error", err)
			r.Refuse(f, refused)
			return
		}
		h := wire.Headers{}
		h.SetText(message.HeaderCircuitID, circuit.ID)
		h.SetText(message.HeaderCircuitAddress, answer.Ingress)
		h.SetData(message.HeaderPeerData, answer.PeerData)
		h.SetTextMap(message.HeaderCircuitTags, circuit.Marks())
		r.Reply(f, &wire.Frame{Type: message.TypeCircuitCreated, Headers: h})
	})
	if !started {
		r.Refuse(f, control.Busy)
	}
}

// Answer is what a dialer needs to know of its circuit.
type Answer struct {
	Ingress  string // the address of its end
	PeerData map[uint32][]byte
}

// errNone says that there is nowhere to lead a circuit.
var errNone = message.Refuse(message.CodeInvalidTerminator, "nobody hosts the service at present")

// dial makes a circuit from a router to where a service is hosted: it tries
// terminators until one works.
func (c *Circuits) dial(ctx context.Context, r *control.Router, req Request) (*Circuit, *Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	s, err := permit.Certain(ctx, c.State, c.Look, c.Sessions, req.Request)
	if err != nil {
		return nil, nil, err
	}
	give, ok := r.Share(s.IdentityID)
	if !ok {
		return nil, nil, message.Busy("the identity dials too much at once through this router; try again")
	}
	defer give()
	// Those of one identity that are too many do not wait: they would take the
	// places of others.
	ctx, done := r.Think(ctx)
	defer done()
	tried, late := map[string]bool{}, c.Now().Add(settleTime)
	var last error
	for attempt := uint32(0); attempt < maxAttempts; {
		circuit, answer, again, err := c.try(ctx, r, req, tried, attempt)
		switch {
		case err == nil:
			return circuit, answer, nil
		case c.unsettled(err) && c.Now().Before(late) && settle(ctx):
			continue
		case errors.Is(err, errNone) && last != nil:
			return nil, nil, last
		case !again || ctx.Err() != nil:
			return nil, nil, err
		}
		last = err
		attempt++
	}
	return nil, nil, last
}

// try makes a circuit that ends at a terminator which was not tried. again says
// that another may do.
func (c *Circuits) try(ctx context.Context, r *control.Router, req Request, tried map[string]bool, attempt uint32) (_ *Circuit, _ *Answer, again bool, err error) {
	// Everything is looked at again: it may have changed meanwhile.
	snap := c.Sessions.Timely(c.State.Snapshot())
	s, err := permit.Session(snap, c.Sessions, req.Request)
	if err != nil {
		return nil, nil, false, err
	}
	service, ok := model.Services.Get(snap, s.ServiceID)
	if !ok {
		return nil, nil, false, permit.Refuse(message.CodeInvalidService, "there is no such service")
	}
	if _, has := req.PeerData[message.PeerPublicKey]; service.EncryptionRequired && !has {
		return nil, nil, false, permit.Refuse(message.CodeEncryptionMissing, "the service wants encryption from end to end, and the dialer offers none")
	}
	want := terminator.Want{
		Service: service, Host: req.Instance, Sticky: string(req.PeerData[message.PeerSticky]), Tried: tried,
		Path: func(routerID string) (int64, bool) { return c.Graph.Cost(r.ID, routerID) },
	}
	t, ok := c.Hosts.Choose(snap, want)
	switch {
	case !ok && c.unheard(snap, r, want):
		return nil, nil, false, errUnheard
	case !ok:
		c.counted(service.ID, nil, errNone)
		return nil, nil, false, errNone
	case attempt == 0 && model.Leaving(snap, r.ID) && c.elsewhere(snap, s, want):
		// Which has clients of all kinds ask anew where to go.
		return nil, nil, false, permit.Refuse(message.CodeInvalidSession, "the router is about to stop, and another serves")
	}
	circuit, answer, err := c.route(ctx, r, s, t.Terminator, service, req, attempt)
	if !c.unsettled(err) { // else a router has yet to come
		tried[t.ID] = true
		c.counted(service.ID, t.Terminator, err)
	}
	return circuit, answer, true, err
}

// elsewhere reports whether the session could be used through a router that is not
// about to stop.
func (c *Circuits) elsewhere(snap *state.Snapshot, s *model.Session, want terminator.Want) bool {
	for rec := range snap.Within(model.EdgeRouters.Def, access.CommonRouters(snap, s.IdentityID, s.ServiceID)) {
		id := rec.Base().ID
		if _, online := c.Routers.Get(id); !online || model.Leaving(snap, id) {
			continue
		}
		want.Path = func(routerID string) (int64, bool) { return c.Graph.Cost(id, routerID) }
		if t, ok := c.Hosts.Choose(snap, want); ok && !model.Leaving(snap, t.RouterID) {
			return true
		}
	}
	return false
}

// route has routers make a circuit that ends at a terminator.
func (c *Circuits) route(ctx context.Context, r *control.Router, s *model.Session, t *model.Terminator, service *model.Service, req Request, attempt uint32) (*Circuit, *Answer, error) {
	p, ok := c.Graph.Between(r.ID, t.RouterID)
	if !ok {
		return nil, nil, permit.Refuse(message.CodeInvalidTerminator, "there is no path to where the service is hosted")
	}
	if !c.present(p.Routers) {
		return nil, nil, errAway
	}
	circuit := &Circuit{
		Circuit: c.record(circuitID(c.epoch, s.ID, t.SessionID), s), HostSessionID: t.SessionID,
		Ingress: ingressPrefix + newID(), Egress: egressPrefix + newID(),
	}
	circuit.TerminatorID, circuit.HostID = t.ID, t.HostID
	circuit.Path, circuit.Links, circuit.Cost = p.Routers, p.Links, p.Cost
	egress := &message.Egress{Binding: t.Binding, Address: circuit.Egress, Destination: t.Address, PeerData: c.dialerData(s, req.PeerData)}
	// Before the routers are told: from then on they may say that the circuit
	// is over, and somebody may take away what it rests on.
	c.table.add(circuit)
	said, err := c.instruct(ctx, circuit, egress, attempt)
	c.correct(circuit)
	told := answerData(t, said)
	switch {
	case err != nil:
	case !c.holds(circuit):
		err = permit.Refuse(message.CodeInvalidSession, "what the session rests on is gone")
	case service.EncryptionRequired && told[message.PeerPublicKey] == nil:
		err = permit.Refuse(message.CodeEncryptionMissing, "the service wants encryption from end to end, and the host offers none")
	}
	if err != nil {
		c.end(circuit.ID, true)
		c.blame(ctx, t, err)
		return nil, nil, err
	}
	c.Hosts.Succeeded(t)
	return circuit, &Answer{circuit.Ingress, told}, nil
}

// holds takes note that a circuit is made, and reports whether it is still
// wanted.
func (c *Circuits) holds(circuit *Circuit) bool {
	for made := false; !made; {
		old, ok := c.table.get(circuit.ID)
		if !ok {
			return false
		}
		next := *old
		next.Ready = c.Now()
		made = c.table.replace(old, &next) // it may be led elsewhere at this moment
	}
	snap := c.Sessions.Timely(c.State.Snapshot())
	s, ok := model.Sessions.Get(snap, circuit.SessionID)
	return ok && c.Sessions.Live(snap, s)
}

// blame has a terminator cost more whose router could not reach the host, and
// takes it out if the router knows nothing of it.
func (c *Circuits) blame(ctx context.Context, t *model.Terminator, err error) {
	failed, ok := errors.AsType[*failure](err)
	if !ok || failed.router.ID != t.RouterID || failed.code == message.RouteInvalidLink {
		return // it did not come to the host
	}
	if failed.code == message.RouteRejected {
		return // the host is there, and does not want this dialer
	}
	own := t.Binding == terminator.BindingEdge || t.Binding == terminator.BindingTunnel
	if own && failed.code == message.RouteInvalidTerminator {
		defer control.Rest(ctx)()
		c.Hosts.Invalid(ctx, failed.router, failed.said, t.ID)
		return
	}
	c.Hosts.Failed(t)
}

// failure is why a router did not do its part.
type failure struct {
	router *control.Router
	said   *wire.Frame // nil if it did not answer in time
	code   message.RouteError
}

func (f *failure) Error() string {
	if f.said == nil {
		return "a router did not make the circuit in time"
	}
	return fmt.Sprintf("the host could not be reached: %.200s", f.said.Headers.Text(message.HeaderRouteError))
}

// present reports whether routers are connected.
func (c *Circuits) present(routers []string) bool {
	return !slices.ContainsFunc(routers, func(id string) bool {
		_, connected := c.Routers.Get(id)
		return !connected
	})
}

// errAway says that a router cannot be told its part of a circuit.
var errAway = message.Busy("a router on the path is away")

// result is what became of a router's part of a circuit.
type result struct {
	peerData map[uint32][]byte
	err      error
}

// ask tells a router its part of a circuit.
func (c *Circuits) ask(ctx context.Context, routerID string, route *message.Route) result {
	r, ok := c.Routers.Get(routerID)
	if !ok {
		return result{err: errAway}
	}
	return c.told(ctx, r, route)
}

// told is ask for a router that is there.
func (c *Circuits) told(ctx context.Context, r *control.Router, route *message.Route) result {
	reply, err := r.Request(ctx, control.Message(message.TypeRoute, route))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return result{err: &failure{router: r, code: message.RouteTimeout}}
	case ctx.Err() != nil:
		return result{err: err}
	case err != nil:
		return result{err: errAway}
	}
	if _, ok := reply.Headers[message.HeaderRouteSuccess]; ok && reply.Type == message.TypeRouteResult {
		return result{peerData: resultData(reply.Headers)}
	}
	code, _ := reply.Headers.Byte(message.HeaderRouteErrorCode)
	return result{err: &failure{router: r, said: reply, code: message.RouteError(code)}}
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

// dialerData is what a host is told: what the dialer's router says, except who
// dialled. That is whoever the session belongs to, and nobody's to choose.
func (c *Circuits) dialerData(s *model.Session, said map[uint32][]byte) map[uint32][]byte {
	data := maps.Clone(said)
	if data == nil {
		data = map[uint32][]byte{}
	}
	data[message.PeerDialerID] = []byte(s.IdentityID)
	delete(data, message.PeerDialerName)
	if dialer, ok := model.Identities.Get(c.State.Snapshot(), s.IdentityID); ok {
		data[message.PeerDialerName] = []byte(dialer.Name)
	}
	return data
}

// answerData is what a dialer is told: what is known of the terminator, and
// over it what the host said just now, except that its router cannot give it
// another key at will. Addresses of others are no business of a dialer.
func answerData(t *model.Terminator, said map[uint32][]byte) map[uint32][]byte {
	data := map[uint32][]byte{}
	for _, d := range t.PeerData {
		data[uint32(d.Key)] = d.Value
	}
	for key, value := range said {
		if _, known := data[key]; !known || key != message.PeerPublicKey {
			data[key] = value
		}
	}
	for _, key := range []uint32{message.PeerLocal, message.PeerRemote, message.PeerDialerLocal, message.PeerDialerRemote} {
		delete(data, key)
	}
	data[message.PeerSticky] = []byte(t.ID)
	return data
}
