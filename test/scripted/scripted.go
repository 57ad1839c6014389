// Package scripted is a router that does what a script says, for tests and
// measurements: it speaks to a controller as routers do and carries nothing. It
// shows what the controller does, not that real routers agree.
package scripted

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// Options of a Router.
type Options struct {
	Address string // of the controller
	// From is the address that it connects from; any if nil.
	From net.Addr
	// Dial, if set, makes the connections to the controller that TLS is spoken
	// over.
	Dial    func(ctx context.Context) (net.Conn, error)
	TLS     *tls.Config
	ID      string
	Version string // five fields; that of a router of the first generation if empty
	// Grouped makes it a router of the second generation.
	Grouped bool
	// Edge is where it says that clients reach it: host and port; nowhere if
	// empty.
	Edge string
	// Listener is where it says that other routers reach it, such as
	// tls:127.0.0.1:6262; nowhere if empty.
	Listener string
	// Headers are added to its hello, or take the place of what it would say.
	Headers wire.Headers
	// Route decides what it answers when it is told to make a circuit: how it
	// ends and what the host says. It succeeds with no word if it is nil.
	Route func(*message.Route) (headers wire.Headers, err error)
	// Pipes decides what it answers when it is to tell of frames: what it says, and
	// whether it heeds. It does not answer if it is nil.
	Pipes func(*message.TogglePipes) (said string, ok bool)
	// Aside has Route run beside all else, as real routers do: they hear what
	// comes next meanwhile.
	Aside bool
	// Seen, if set, is called with every frame that arrives.
	Seen func(*wire.Frame)
	// Circuits are those that it carries already, and Links those that it has:
	// it tells of those with an address that it has dialled.
	Circuits map[string]*message.Route
	Links    map[string]message.Link
	// Owners are the controllers by whose word it carries circuits, by their ids;
	// it does not say of others.
	Owners map[string]string
	// Gone are the addresses of the ends that those circuits have lost. It carries a
	// circuit until it is told that it is over, as real routers do.
	Gone map[string]bool
	// Flowing are the terminators of clients that hold the flow of what is dialled
	// there: if there are any it goes on with an end that such a client let go of, as
	// routers of 1.6.0 do.
	Flowing []string
	// Model is what it knows already.
	Model Model
	// Then, if set, is called as soon as it is connected.
	Then func(*Router)
	// Digests has it ask for digests in place of tokens.
	Digests bool
	// Mute leaves the first word of the controller unanswered.
	Mute bool
	Now  func() time.Time
}

// Router is a connected scripted router.
type Router struct {
	opt Options
	ch  *channel.Channel
	// Welcome is what the controller said to its hello.
	Welcome wire.Headers

	mu       sync.Mutex
	sessions map[string]message.APISession // by id
	partial  map[string]message.APISession // of a sync under way
	circuits map[string]*message.Route
	gone     map[string]bool
	links    map[string]message.Link
	peers    map[string]message.PeerState
	synced   int // how many full syncs have ended
	model    Model
	fault    error // what was wrong with what it was told of the model
	changed  chan struct{}
}

// hello is what the router says first.
func (o *Options) hello() channel.Hello {
	h := wire.Headers{}
	version := o.Version
	if version == "" {
		version = "v1.6.20|abc|2026-08-20 19:41:33|linux|amd64"
	}
	h.SetText(message.HeaderVersion, version)
	if o.Grouped {
		h.SetBool(message.HeaderGrouped, true)
		h.SetBool(message.HeaderGroupFirst, true)
		h.SetText(message.HeaderChannelType, "ctrl.default")
		h[message.HeaderCapabilities] = []byte{message.NewHeaders}
	}
	if o.Listener != "" {
		at := message.HeaderOldListeners
		if o.Grouped {
			at = message.HeaderListeners
		}
		h[at] = message.Marshal(&message.Listeners{Listeners: []message.Listener{{Address: o.Listener, Protocol: "tls"}}})
	}
	maps.Copy(h, o.Headers)
	return channel.Hello{ID: o.ID, Headers: h}
}

// Connect dials the controller and says hello.
func Connect(ctx context.Context, opt Options) (*Router, error) {
	conn, err := dial(ctx, opt)
	if err != nil {
		return nil, err
	}
	r := &Router{
		opt: opt, sessions: map[string]message.APISession{}, circuits: map[string]*message.Route{}, gone: map[string]bool{}, links: map[string]message.Link{},
		peers: map[string]message.PeerState{}, model: opt.Model, changed: make(chan struct{}),
	}
	maps.Copy(r.circuits, opt.Circuits)
	maps.Copy(r.gone, opt.Gone)
	maps.Copy(r.links, opt.Links)
	if r.Welcome, err = channel.Greet(conn, opt.Now().Add(10*time.Second), opt.hello()); err != nil {
		_ = conn.Close()
		return nil, err
	}
	r.ch = channel.New(r.Welcome.Text(message.HeaderConnectionID), channel.Options{Handle: r.hear, Now: opt.Now})
	r.ch.Attach(conn)
	if opt.Then != nil {
		opt.Then(r)
	}
	return r, r.tellLinks()
}

// tellLinks tells of the links that it has made, as routers do when they
// connect.
func (r *Router) tellLinks() error {
	var made message.Links
	for _, l := range r.opt.Links {
		if l.DialAddress != "" {
			made.Links = append(made.Links, l)
		}
	}
	if len(made.Links) == 0 {
		return nil
	}
	return r.Send(&wire.Frame{Type: message.TypeRouterLinks, Body: message.Marshal(&made)})
}

func dial(ctx context.Context, opt Options) (net.Conn, error) {
	cfg := opt.TLS.Clone()
	if len(cfg.NextProtos) == 0 {
		cfg.NextProtos = []string{message.ALPN}
	}
	if opt.Dial != nil {
		conn, err := opt.Dial(ctx)
		if err != nil {
			return nil, err
		}
		return tls.Client(conn, cfg), nil
	}
	return (&tls.Dialer{NetDialer: &net.Dialer{LocalAddr: opt.From}, Config: cfg}).DialContext(ctx, "tcp", opt.Address)
}

// Widen adds a socket to a router of the second generation.
func (r *Router) Widen(ctx context.Context, secret []byte) error {
	conn, err := dial(ctx, r.opt)
	if err != nil {
		return err
	}
	h := wire.Headers{message.HeaderGroupSecret: secret}
	h.SetBool(message.HeaderGrouped, true)
	h.SetText(message.HeaderConnectionID, r.ch.ID)
	h.SetText(message.HeaderChannelType, "ctrl.high")
	if _, err := channel.Greet(conn, r.opt.Now().Add(10*time.Second), channel.Hello{ID: r.opt.ID, Headers: h}); err != nil {
		_ = conn.Close()
		return err
	}
	r.ch.Attach(conn)
	return nil
}

// Close ends the connection.
func (r *Router) Close() { r.ch.Close(nil) }

// Done is closed when the connection is over.
func (r *Router) Done() <-chan struct{} { return r.ch.Done() }

// Send sends a frame.
func (r *Router) Send(f *wire.Frame) error { return r.ch.Send(f) }

// Request sends a frame and waits for its reply.
func (r *Router) Request(ctx context.Context, f *wire.Frame) (*wire.Frame, error) {
	return r.ch.Request(ctx, f)
}

// Has is what the router carries, for when it connects again.
func (r *Router) Has() (circuits map[string]*message.Route, links map[string]message.Link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.circuits), maps.Clone(r.links)
}

// Heard has every frame that arrives from now on handed to seen.
func (r *Router) Heard(seen func(*wire.Frame)) { r.change(func() { r.opt.Seen = seen }) }

// hear does what a router does with a frame.
func (r *Router) hear(c *channel.Channel, f *wire.Frame) {
	r.mu.Lock()
	seen := r.opt.Seen
	r.mu.Unlock()
	if seen != nil {
		seen(f)
	}
	switch f.Type {
	case message.TypeServerHello:
		if !r.opt.Mute {
			h := wire.Headers{}
			h.SetBool(message.HeaderDigests, r.opt.Digests)
			_ = c.Reply(f, &wire.Frame{Type: message.TypeClientHello, Headers: h, Body: message.Marshal(r.clientHello())})
		}
	case message.TypeAPISessionsAdded:
		r.added(f)
	case message.TypeAPISessionsUpdated:
		if m, err := message.Unmarshal[message.APISessionsUpdated](f.Body); err == nil {
			r.change(func() { keep(r.sessions, m.Sessions) })
		}
	case message.TypeAPISessionsRemoved:
		if m, err := message.Unmarshal[message.Removed](f.Body); err == nil {
			r.change(func() { r.forget(m) })
		}
	case message.TypeDataState, message.TypeDataChanges:
		r.change(func() { r.fault = errors.Join(r.fault, r.model.Hear(f)) })
	case message.TypeCompareDataModel:
		r.compare(c, f)
	case message.TypeRoute:
		if r.opt.Aside {
			go r.route(c, f)
		} else {
			r.route(c, f)
		}
	case message.TypeUnroute:
		if m, err := message.Unmarshal[message.Unroute](f.Body); err == nil {
			r.change(func() { delete(r.circuits, m.CircuitID) })
		}
	case message.TypeTogglePipes:
		if m, err := message.Unmarshal[message.TogglePipes](f.Body); err == nil && r.opt.Pipes != nil {
			said, ok := r.opt.Pipes(m)
			_ = c.Result(f, ok, said)
		}
	case message.TypeInspectRequest:
		r.inspect(c, f)
	case message.TypePeerStates:
		if m, err := message.Unmarshal[message.PeerStates](f.Body); err == nil {
			r.change(func() { r.meet(m) })
		}
	case message.TypeFault:
		if m, err := message.Unmarshal[message.Fault](f.Body); err == nil && m.Subject == message.FaultLink {
			r.change(func() { delete(r.links, m.ID) })
		}
	case message.TypeValidateTerminators:
		r.validate(c, f)
	}
}

func (r *Router) clientHello() *message.ClientHello {
	if r.opt.Edge == "" {
		return &message.ClientHello{Version: "v1.6.20"}
	}
	host, port, _ := net.SplitHostPort(r.opt.Edge) // who says nonsense is a script too
	number, _ := strconv.ParseInt(port, 10, 32)
	at := message.Address{Value: "tls:" + r.opt.Edge, Protocol: "tls", Hostname: host, Port: int32(number)}
	return &message.ClientHello{Version: "v1.6.20", Hostname: at.Hostname, Listeners: []message.EdgeListener{{Address: at, Advertise: at}}}
}

func keep(into map[string]message.APISession, sessions []message.APISession) {
	for _, s := range sessions {
		into[s.ID] = s
	}
}

func (r *Router) added(f *wire.Frame) {
	m, err := message.Unmarshal[message.APISessionsAdded](f.Body)
	if err != nil {
		return
	}
	var state message.SyncState
	if m.Full && json.Unmarshal(f.Headers[message.HeaderSyncState], &state) != nil {
		return
	}
	r.change(func() {
		if !m.Full {
			keep(r.sessions, m.Sessions)
			return
		}
		if state.Sequence == 0 {
			r.partial = map[string]message.APISession{}
		}
		if keep(r.partial, m.Sessions); state.IsLast {
			r.sessions, r.partial = r.partial, nil
			r.synced++
		}
	})
}

func (r *Router) forget(m *message.Removed) {
	for _, id := range m.IDs {
		delete(r.sessions, id)
	}
	for id, s := range r.sessions {
		for _, token := range m.Tokens {
			if s.Token == token {
				delete(r.sessions, id)
			}
		}
	}
}

func (r *Router) route(c *channel.Channel, f *wire.Frame) {
	m, err := message.Unmarshal[message.Route](f.Body)
	if err != nil {
		return
	}
	h := wire.Headers{}
	if r.opt.Route != nil {
		var said wire.Headers
		said, err = r.opt.Route(m)
		maps.Copy(h, said)
	}
	if err == nil {
		err = r.reaches(m)
	}
	h.SetUint32(message.HeaderRouteAttempt, m.Attempt)
	if err != nil {
		h.SetText(message.HeaderRouteError, err.Error())
	} else {
		h.SetBool(message.HeaderRouteSuccess, true)
		r.change(func() { r.circuits[m.CircuitID] = and(r.circuits[m.CircuitID], m) })
	}
	_ = c.Reply(f, &wire.Frame{Type: message.TypeRouteResult, Headers: h, Body: []byte(m.CircuitID)})
}

// reaches fails if a circuit is to go to an end that is gone. Whether that of a
// dialer is there is not looked at, unless it is called an end: it comes later.
func (r *Router) reaches(m *message.Route) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range m.Forwards {
		if f.Type == message.ToEnd && r.gone[f.To] && !r.flows(f.To) {
			return fmt.Errorf("there is no end %s", f.To)
		}
	}
	return nil
}

// flows reports whether a client holds the flow of what comes to an end.
func (r *Router) flows(end string) bool {
	return len(r.opt.Flowing) > 0 && strings.HasPrefix(end, "out.")
}

// and is what a router does for a circuit that it is told of again: what it was told
// before goes on, unless the new word is about both ways.
func and(was, m *message.Route) *message.Route {
	if was == nil || len(m.Forwards) > 1 {
		return m
	}
	both := *was
	both.Forwards = slices.Concat(m.Forwards, slices.DeleteFunc(slices.Clone(was.Forwards), func(f message.Forward) bool {
		return len(m.Forwards) > 0 && f.From == m.Forwards[0].From
	}))
	return &both
}

// meet takes note of other routers.
func (r *Router) meet(m *message.PeerStates) {
	for _, p := range m.Changes {
		r.peers[p.ID] = p
	}
}

// Link tells the controller of a link that it has made, as a router does.
func (r *Router) Link(l message.Link) error {
	r.change(func() { r.links[l.ID] = l })
	return r.Send(&wire.Frame{Type: message.TypeRouterLinks, Body: message.Marshal(&message.Links{Links: []message.Link{l}})})
}

// Fault tells the controller that something ended.
func (r *Router) Fault(m message.Fault) error {
	return r.Send(&wire.Frame{Type: message.TypeFault, Body: message.Marshal(&m)})
}

// inspect tells which circuits it carries, which of their ends clients hold, and which
// links it has.
func (r *Router) inspect(c *channel.Channel, f *wire.Frame) {
	type circuit struct {
		Owner  string            `json:"ctrlId"`
		Routes map[string]string `json:"routes"`
	}
	circuits, ends, hosts, links := map[string]circuit{}, map[string]M{}, []M{}, []M{}
	r.mu.Lock()
	for id, route := range r.circuits {
		circuits[id] = circuit{r.opt.Owners[id], map[string]string{}}
		for _, forward := range route.Forwards {
			circuits[id].Routes[forward.From] = forward.To
			if r.flows(forward.From) && !r.gone[forward.From] {
				ends[id+"/"+forward.From] = M{"circuitId": id, "address": forward.From}
			}
		}
	}
	for _, id := range r.opt.Flowing {
		hosts = append(hosts, M{"id": id, "useSdkXgress": true})
	}
	for _, l := range r.links {
		links = append(links, M{"id": l.ID, "dest": l.Destination})
	}
	r.mu.Unlock()
	answer := &message.InspectResponse{Success: true}
	for name, what := range map[string]any{
		"router-circuits": M{"circuits": circuits}, "router-edge-circuits": M{"circuits": ends}, "sdk-terminators": M{"entries": hosts}, "links": M{"links": links},
	} {
		text, err := json.Marshal(what)
		if err != nil {
			return
		}
		answer.Values = append(answer.Values, message.InspectValue{Name: name, Value: string(text)})
	}
	_ = c.Reply(f, &wire.Frame{Type: message.TypeInspectResponse, Body: message.Marshal(answer)})
}

// M is a JSON object.
type M = map[string]any

// validate says that every terminator is still there.
func (r *Router) validate(c *channel.Channel, f *wire.Frame) {
	m, err := message.Unmarshal[message.ValidateTerminators](f.Body)
	if err != nil {
		return
	}
	answer := &message.TerminatorsValidated{States: map[string]message.TerminatorState{}}
	for _, t := range m.Terminators {
		answer.States[t.ID] = message.TerminatorState{Valid: true, Marker: t.Marker}
	}
	_ = c.Reply(f, &wire.Frame{Type: message.TypeTerminatorsValidated, Body: message.Marshal(answer)})
}

// change alters what the router knows and wakes those who wait for it.
func (r *Router) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Known is what a router knows.
type Known struct {
	Sessions map[string]message.APISession // by id
	Circuits map[string]*message.Route
	Links    map[string]message.Link
	Peers    map[string]message.PeerState
	Synced   int
	Model    *Model
}

// Await waits until what the router knows is as wanted.
func (r *Router) Await(ctx context.Context, wanted func(Known) bool) error {
	for {
		r.mu.Lock()
		ok := wanted(Known{r.sessions, r.circuits, r.links, r.peers, r.synced, &r.model})
		changed, fault := r.changed, r.fault
		r.mu.Unlock()
		if fault != nil {
			return fault
		}
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-r.ch.Done():
			return fmt.Errorf("the connection is over: %w", r.ch.Err())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Host asks for a terminator in the name of a client.
func (r *Router) Host(ctx context.Context, m message.CreateTerminator) (*message.TerminatorCreated, error) {
	reply, err := r.Request(ctx, &wire.Frame{Type: message.TypeCreateTerminator, Body: message.Marshal(&m)})
	if err != nil {
		return nil, err
	}
	return message.Unmarshal[message.TerminatorCreated](reply.Body)
}

// Dial asks for a circuit in the name of a client, and returns its id and what
// else the answer says.
func (r *Router) Dial(ctx context.Context, sessionToken, apiToken string, peerData map[uint32][]byte) (string, wire.Headers, error) {
	reply, err := r.Request(ctx, (&message.CreateCircuit{SessionToken: sessionToken, APISessionToken: apiToken, PeerData: peerData}).Frame())
	if err != nil {
		return "", nil, err
	}
	switch reply.Type {
	case message.TypeCircuitCreated:
		return reply.Headers.Text(message.HeaderCircuitID), reply.Headers, nil
	case message.TypeError:
		return "", nil, message.RefusalIn(reply)
	}
	return "", nil, errors.New("the answer is none")
}

// Keep has the router have a link that another has made.
func (r *Router) Keep(l message.Link) { r.change(func() { r.links[l.ID] = l }) }

// Lose and Drop have it lose a link, and a circuit, without a word.
func (r *Router) Lose(linkID string) { r.change(func() { delete(r.links, linkID) }) }

func (r *Router) Drop(circuitID string) { r.change(func() { delete(r.circuits, circuitID) }) }

// End has an end of a circuit be gone, without a word.
func (r *Router) End(address string) { r.change(func() { r.gone[address] = true }) }
