package edge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// How long a dial may take: until the controller has made a circuit, and until
// a host has said that it takes it.
const (
	dialTime   = 30 * time.Second
	answerTime = 5 * time.Second
)

// carried are the headers of a dial that both ends tell each other.
var carried = []int32{message.HeaderPublicKey, message.HeaderCallerID, message.HeaderAppData, message.HeaderMarker}

// connect makes a circuit for a client that dials.
func (c *client) connect(f *wire.Frame) {
	id, refusal := c.claim(f)
	if refusal != nil {
		c.refuse(f, refusal)
		return
	}
	instance, peerData := f.Headers.Text(message.HeaderInstance), c.peerData(f.Headers)
	said := len(instance)
	for _, data := range peerData {
		said += len(data)
	}
	if refusal := c.tooMuch(f, said, maxSaid); refusal != nil {
		c.refuse(f, refusal)
		return
	}
	ctx, cancel := context.WithTimeout(c.ch.Context(), dialTime)
	defer cancel()
	conn := &conn{client: c, id: id, session: message.Digest(string(f.Body)), dialing: cancel}
	if refusal := c.keep(conn); refusal != nil {
		c.refuse(f, refusal)
		return
	}
	dialed, err := c.dial(ctx, &message.CreateCircuit{
		SessionToken: string(f.Body), APISessionToken: *c.token.Load(), Fingerprints: c.fingerprints,
		InstanceID: instance, PeerData: peerData,
	})
	if err != nil {
		c.drop(conn)
		c.refuse(f, conn.why(err))
		return
	}
	conn.circuit, conn.address = dialed.CircuitID, dialed.Address
	conn.owner, _ = c.door.Table.Owner(conn.circuit)
	flow := f.Headers.Bool(message.HeaderClientFlow)
	conn.open(flow)
	conn.mu.Lock()
	gone := conn.gone
	conn.dialing = nil
	conn.mu.Unlock()
	if gone || c.ch.Context().Err() != nil { // it was closed while it was dialled
		conn.abort(errors.New("the connection was closed"))
		return
	}
	// The answer goes before anything else of the connection.
	_ = c.ch.Reply(f, &wire.Frame{Type: message.TypeConnected, Headers: c.connected(f, conn, dialed, flow)})
	if conn.end != nil {
		conn.end.Start()
	}
}

// dial asks the controller for a circuit. A client with several sockets may say what it
// dials before what it has reported first: one that is refused by its device is asked for
// once more with a report that comes right after.
func (c *client) dial(ctx context.Context, m *message.CreateCircuit) (*message.CircuitCreated, error) {
	said := c.settle(ctx)
	dialed, err := c.door.Controller.Dial(ctx, m)
	refused, ok := errors.AsType[*message.Refusal](err)
	if !ok || refused.Code != message.CodePostureFailed || !c.reportsAfter(ctx, said) {
		return dialed, err
	}
	c.settle(ctx)
	return c.door.Controller.Dial(ctx, m)
}

// keep makes a connection the client's, under the number that it has chosen, or
// says why it cannot be.
func (c *client) keep(conn *conn) *message.Refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
		return errGone
	case c.conns[conn.id] != nil || c.binds[conn.id] != nil:
		return errTaken
	case !take(&c.of.conns, maxConns):
		return errManyConns
	}
	c.conns[conn.id] = conn
	c.door.uses(c, conn.session, 1)
	return nil
}

// peerData is what the host is told of a dial.
func (c *client) peerData(h wire.Headers) map[uint32][]byte {
	data := map[uint32][]byte{message.PeerDialerID: []byte(c.entry.IdentityID)}
	for _, key := range carried {
		if v, ok := h[key]; ok {
			data[uint32(key)] = v
		}
	}
	if v, ok := h[message.HeaderSticky]; ok {
		data[message.PeerSticky] = v
	}
	return data
}

// connected is the answer to a dial that went well. Of what the controller
// says, only what is for clients goes on: numbers below are the channel's own.
func (c *client) connected(f *wire.Frame, conn *conn, dialed *message.CircuitCreated, flow bool) wire.Headers {
	h := wire.Headers{}
	for key, value := range dialed.PeerData {
		switch {
		case key == message.PeerSticky:
			h[message.HeaderSticky] = value
		case key >= 1000 && key < 1100:
			h[int32(key)] = value
		}
	}
	h.SetUint32(message.HeaderConn, conn.id)
	h.SetText(message.HeaderClientCircuit, conn.circuit)
	if f.Headers.Bool(message.HeaderRouterNumbers) {
		h.SetBool(message.HeaderRouterNumbers, true)
	}
	if flow {
		c.door.flowHeaders(h, conn)
	}
	return h
}

// flowHeaders tell a client what it needs to know to be the end of a stream.
func (d *Door) flowHeaders(h wire.Headers, conn *conn) {
	h.SetBool(message.HeaderClientFlow, true)
	h.SetText(message.HeaderControllerID, conn.owner)
	h.SetText(message.HeaderStreamAddress, conn.address)
}

// oldTerminator is how older controllers begin the address of a terminator.
const oldTerminator = "hosted:"

// Egress has a circuit of a controller end at a client that hosts.
func (d *Door) Egress(ctx context.Context, owner, circuit string, e *message.Egress) error {
	b, ok := d.hosts.get(strings.TrimPrefix(e.Destination, oldTerminator))
	if !ok {
		return &message.RouteFailure{Code: message.RouteInvalidTerminator, Text: "nobody hosts under this address here"}
	}
	c := b.owner()
	conn := &conn{client: c, session: b.session, owner: owner, circuit: circuit, address: e.Address, hosts: true, dialer: string(e.PeerData[message.PeerDialerID])}
	// It is whole before it is the client's, which may be gone at any moment and
	// takes along what it has.
	conn.open(b.flow && b.numbers)
	if !c.number(conn) {
		conn.mu.Lock()
		conn.gone = true // the client has never heard of it
		conn.mu.Unlock()
		full := &message.RouteFailure{Code: message.RouteNoRoom, Text: "the host has too many connections"}
		conn.abort(full)
		return full
	}
	if err := c.invite(ctx, b, conn, e.PeerData); err != nil {
		conn.abort(err)
		return err
	}
	return nil
}

// invite asks a host to take a connection, which is ready already: what it sends
// may follow its answer at once.
func (c *client) invite(ctx context.Context, b *bind, conn *conn, peerData map[uint32][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := c.ch.Request(ctx, &wire.Frame{Type: message.TypeDial, Headers: c.dialHeaders(b, conn, peerData), Body: []byte(b.token)})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &message.RouteFailure{Code: message.RouteTimeout, Text: "the host did not answer in time"}
	case err != nil:
		return &message.RouteFailure{Code: message.RouteRefused, Text: "the host is gone"}
	case answer.Type != message.TypeDialSuccess:
		failure := &message.RouteFailure{Code: message.RouteRejected, Text: fmt.Sprintf("the host refused: %.200s", answer.Body)}
		if answer.Headers.Bool(message.HeaderHostFailed) {
			failure.Code = message.RouteRefused
		}
		return failure
	case b.numbers:
		return nil
	}
	return c.renumber(conn, answer)
}

func (c *client) dialHeaders(b *bind, conn *conn, peerData map[uint32][]byte) wire.Headers {
	h := wire.Headers{}
	h.SetUint32(message.HeaderConn, b.conn)
	h.SetText(message.HeaderClientCircuit, conn.circuit)
	h.SetText(message.HeaderCallerID, "")
	for _, key := range carried {
		if v, ok := peerData[uint32(key)]; ok {
			h[key] = v
		}
	}
	for from, to := range map[uint32]int32{message.PeerDialerID: message.HeaderDialerID, message.PeerDialerName: message.HeaderDialerName} {
		if v, ok := peerData[from]; ok {
			h[to] = v
		}
	}
	if b.numbers {
		h.SetUint32(message.HeaderRouterNumbers, conn.id)
	}
	if conn.end == nil {
		c.door.flowHeaders(h, conn)
	}
	return h
}

// renumber gives a connection the number that an old client has chosen for it,
// and tells it to begin.
func (c *client) renumber(conn *conn, answer *wire.Frame) error {
	if len(answer.Body) != 4 {
		return &message.RouteFailure{Text: "the host did not say which connection it takes"}
	}
	id := binary.LittleEndian.Uint32(answer.Body)
	c.mu.Lock()
	taken := c.conns[id] != nil || c.binds[id] != nil
	if !taken {
		delete(c.conns, conn.id)
		conn.id = id
		c.conns[id] = conn
	}
	c.mu.Unlock()
	if taken {
		return &message.RouteFailure{Text: "the host took a connection that it has already"}
	}
	h := wire.Headers{}
	h.SetUint32(message.HeaderConn, id)
	_ = c.ch.Reply(answer, &wire.Frame{Type: message.TypeConnected, Headers: h})
	return nil
}
