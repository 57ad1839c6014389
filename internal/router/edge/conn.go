package edge

import (
	"context"
	"errors"
	"sync"

	"netkeep.internal/internal/router/forward"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/internal/wire/stream"
)

// conn is a client's connection through the network. Either the end of its
// stream is here and the client gets messages, or the client is the end itself
// and gets the frames of the stream as they are.
type conn struct {
	client  *client
	id      uint32
	session string // that it was made with: the digest of its token
	circuit string
	owner   string      // the controller that the circuit belongs to
	address string      // of this end of the circuit
	end     *stream.End // nil if the client is the end itself
	hosts   bool        // the client hosts; else it has dialled
	dialer  string      // who dialled a client that hosts, if that is known
	count   func(in bool, bytes int)
	counted func()

	mu      sync.Mutex
	pumping bool
	again   bool
	next    *wire.Packet // for the client, that found no room
	fin     bool         // the client was told that nothing follows
	gone    bool         // the client does not want anything any more
	over    bool
	reason  error              // why; while it is dialled, why it need not be any more
	dialing context.CancelFunc // while the controller is asked
	asked   questions          // of the client, for the way of the circuit
	owed    questions          // of the other end, to the client
}

// subject is what the controller calls this end.
func (c *conn) subject() message.FaultSubject {
	if c.hosts {
		return message.FaultEgress
	}
	return message.FaultIngress
}

// open makes the end of the circuit known. With flow, the client is the end.
func (c *conn) open(flow bool) {
	d := c.client.door
	count, counted := d.Meter(c.circuit, c.hosts)
	c.mu.Lock()
	c.count, c.counted = count, counted
	c.mu.Unlock()
	if flow {
		c.client.mu.Lock()
		c.client.flows[c.side()][c.circuit] = c
		c.client.mu.Unlock()
		d.Table.AddClient(c.address, c)
		return
	}
	window := c.client.of.window()
	end := stream.New(stream.Options{
		Circuit:    c.circuit,
		Terminator: c.hosts,
		Send:       func(p *stream.Payload, wait bool) bool { return d.Table.Payload(c.address, p, wait) },
		Ack:        func(a *stream.Ack) { d.Table.Ack(c.address, a) },
		Ready:      c.pump,
		Done:       c.ended,
		Over:       c.forgotten,
		Window:     window,
		Buffer:     window,
		Purse:      c.client.of,
		Now:        d.Now,
	})
	c.mu.Lock()
	c.end = end
	c.mu.Unlock()
	d.Table.AddEnd(c.address, end, c.Control)
}

// fromClient takes what the client sends. It waits while the circuit takes no
// more, and the client with it: that is all that holds it back.
func (c *conn) fromClient(p *wire.Packet) {
	// Whoever sends before it is connected may do so while it is being.
	c.mu.Lock()
	end := c.end
	c.mu.Unlock()
	if end == nil {
		return // a client that is the end itself says so once more that it is done
	}
	m := stream.Message{Data: p.Body, Memory: p.Memory}
	m.Flags, _ = p.Uint32(message.HeaderDataFlags)
	m.UUID, _ = p.Bytes(message.FirstReflected)
	c.count(true, len(p.Body))
	_ = end.Write(c.client.ch.Context(), m) // it is over then, and its end says so
}

// pump hands the client what has arrived for it, as long as there is room. It
// is called whenever there may be something, by anybody, and works in one place
// at a time.
func (c *conn) pump() {
	c.mu.Lock()
	if c.pumping {
		c.again = true
		c.mu.Unlock()
		return
	}
	c.pumping = true
	for {
		c.again = false
		c.mu.Unlock()
		waits := !c.drain()
		c.mu.Lock()
		if waits || !c.again {
			// One that waits stays busy until there is room: nobody else gets in.
			c.pumping = waits
			c.mu.Unlock()
			return
		}
	}
}

// resume is pump for a connection that has waited for room.
func (c *conn) resume() {
	c.mu.Lock()
	c.pumping = false
	c.mu.Unlock()
	c.pump()
}

// drain offers messages to the client until there are none, and reports false
// if there was no room.
func (c *conn) drain() bool {
	for {
		if c.next == nil {
			m, ok := c.end.Next()
			if !ok {
				c.tellEnd()
				return true
			}
			if c.next = c.toClient(m); c.next == nil {
				continue
			}
		}
		if !c.client.offer(c, c.next) {
			return false
		}
		c.next = nil
	}
}

// toClient is a message as the client gets it; nil if it does not concern it.
func (c *conn) toClient(m stream.Message) *wire.Packet {
	c.mu.Lock()
	gone, fin := c.gone || m.Err != nil, c.fin
	c.fin = c.fin || m.Err == nil && (m.End || m.Flags&message.DataFIN != 0)
	c.mu.Unlock()
	flags := m.Flags
	if m.End {
		// A peer that is the end of the stream itself says so in the stream, where
		// clients of routers do not look.
		flags |= message.DataFIN
	}
	if gone || m.End && fin && len(m.Data) == 0 {
		return nil
	}
	c.count(false, len(m.Data))
	block := make(wire.Block, 0, 48)
	block = block.Uint32(message.HeaderConn, c.id)
	if flags != 0 {
		block = block.Uint32(message.HeaderDataFlags, flags)
	}
	if m.UUID != nil {
		block = block.Bytes(message.FirstReflected, m.UUID)
	}
	return &wire.Packet{Type: message.TypeData, Block: block, Body: m.Data, Memory: m.Memory}
}

// closedByClient lets what the client has sent arrive, and then ends.
func (c *conn) closedByClient() {
	c.mu.Lock()
	was := c.gone
	c.gone = true
	cancel := c.dialing
	c.mu.Unlock()
	switch {
	case was:
	case cancel != nil:
		cancel()
	case c.end == nil:
		c.ended(nil)
	default:
		_ = c.end.CloseWrite()
		c.end.CloseRead()
	}
}

// abort ends the connection at once, and tells the client why.
func (c *conn) abort(reason error) {
	c.mu.Lock()
	cancel := c.dialing
	if cancel != nil {
		c.reason = reason
	}
	c.mu.Unlock()
	switch {
	case cancel != nil:
		cancel()
	case c.end != nil:
		c.end.Abort(reason)
	default:
		c.ended(reason)
	}
}

// Unrouted is called when the circuit was taken away from a client that is its
// end.
func (c *conn) Unrouted() { c.ended(forward.ErrUnrouted) }

// forgotten is when the end of the stream may be forgotten. What came before was told
// already.
func (c *conn) forgotten(error) { c.client.door.Table.Remove(c.address) }

// why is why a dial came to nothing: what the controller said, unless it was
// given up here.
func (c *conn) why(said error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason != nil {
		return c.reason
	}
	return said
}

// errEnded is why a connection is over that was not cut off.
var errEnded = errors.New("the connection has ended")

// ended is the end of the connection, whoever wanted it. The controller hears of
// it, unless it knows, and the client after it has got what had arrived.
func (c *conn) ended(reason error) {
	c.mu.Lock()
	was := c.over
	c.over = true
	if c.reason = reason; reason == nil {
		c.reason = errEnded
	}
	c.mu.Unlock()
	if was {
		return
	}
	if !errors.Is(reason, forward.ErrUnrouted) {
		c.client.door.Controller.Fault(c.owner, message.Fault{Subject: c.subject(), ID: c.circuit})
	}
	if c.end != nil {
		c.pump()
		return
	}
	c.forgotten(nil)
	c.tellEnd()
}

// tellEnd tells a client that its connection has ended, if it has: once, and
// not if it wanted that.
func (c *conn) tellEnd() {
	c.mu.Lock()
	over, gone := c.over, c.gone
	if over {
		c.gone = true
	}
	c.mu.Unlock()
	if !over {
		return
	}
	c.client.drop(c)
	c.counted()
	if !gone {
		c.client.tellClosed(c.id, c.told())
	}
}

// told is why the connection has ended as the client is told. A stream whose end is
// here and that was cut off before it had come to its end goes with a code: who hears
// of none takes what came for all.
func (c *conn) told() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, refused := errors.AsType[*message.Refusal](c.reason)
	if c.end == nil || c.fin || refused || c.reason == errEnded {
		return c.reason
	}
	return message.Refuse(message.CodeInternal, c.reason.Error())
}

// flowing takes a frame of a stream from a client that is its end. It names the
// circuit, which has to be one of its own.
func (c *client) flowing(p *wire.Packet) {
	id, ok := stream.CircuitOf(p)
	if !ok {
		return
	}
	c.mu.Lock()
	// A client may have dialled what it hosts: then it is both ends.
	conn := c.flows[sideOf(p)][string(id)]
	c.mu.Unlock()
	if conn == nil {
		return
	}
	if p.Type == message.TypePayload {
		conn.count(true, len(p.Body))
	}
	p.Drop(message.HeaderConn) // it is this client's, and no other's
	c.door.Table.Packet(conn.address, p)
}

// Packet hands a client that is the end of a stream a frame of it. One that
// finds no room is sent again by the other end. Acknowledgements do not wait
// behind data: whoever sends would take it for lost.
func (c *conn) Packet(p *wire.Packet, _ bool) bool {
	block := make(wire.Block, 0, len(p.Block)+12)
	block = append(block, p.Block...)
	to := &wire.Packet{Type: p.Type, Block: block.Uint32(message.HeaderConn, c.id), Body: p.Body, Memory: p.Memory, Batch: p.Batch}
	if p.Type == message.TypeAck {
		return c.client.ch.OfferFirst(to)
	}
	size := len(p.Body)
	taken := c.client.ch.Offer(to)
	if taken && p.Type == message.TypePayload {
		c.count(false, size)
	}
	return taken
}

// laneOf has the payloads of clients that are ends of streams take turns, and
// with all else they go in order.
func laneOf(p *wire.Packet) []byte {
	if p.Type != message.TypePayload {
		return nil
	}
	circuit, _ := stream.CircuitOf(p)
	return circuit
}

// endFlow is a client that ends a stream which it is an end of.
func (c *client) endFlow(circuit string) {
	c.mu.Lock()
	ends := []*conn{c.flows[0][circuit], c.flows[1][circuit]}
	c.mu.Unlock()
	for _, conn := range ends {
		if conn != nil {
			conn.closedByClient()
		}
	}
}

// side is 0 for who dialled, and 1 for who hosts.
func (c *conn) side() int {
	if c.hosts {
		return 1
	}
	return 0
}

// sideOf is the side that a frame of a stream comes from.
func sideOf(p *wire.Packet) int {
	if flags, _ := p.Uint32(message.HeaderStreamFlags); flags&stream.FlagTerminator != 0 {
		return 1
	}
	return 0
}
