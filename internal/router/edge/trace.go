package edge

import (
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/internal/wire/stream"
)

// hopType is what this end of a circuit calls itself to who asks for the way.
const hopType = "xgress/edge"

// maxHopText is how much of what a client says of itself goes on.
const maxHopText = 256

// maxQuestions is how many questions for the way of one connection may be
// unanswered; with more, those before count as lost.
const maxQuestions = 64

// questions are those without an answer, by number; under conn.mu. Nobody gets
// an answer who has not asked: what a peer says could otherwise pass for the
// answer to something else.
type questions map[uint32]bool

func (c *conn) note(q *questions, number uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *q == nil || len(*q) >= maxQuestions {
		*q = questions{}
	}
	(*q)[number] = true
}

func (c *conn) settle(q *questions, number uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := (*q)[number]
	delete(*q, number)
	return was
}

// trace is a client that asks for the way of a connection. The first place is
// here.
func (c *client) trace(f *wire.Frame) {
	hops, _ := f.Headers.Uint32(message.HeaderTraceHops)
	m := &stream.Control{Type: stream.TraceRequest, Hops: max(hops, 1) - 1, User: uint32(f.Seq)}
	m.Time, _ = f.Headers.Uint64(message.HeaderTraceTime)
	conn := c.carried(f)
	if conn == nil {
		m.Error = "there is no such connection here"
	}
	if conn != nil && m.Hops > 0 {
		conn.note(&conn.asked, m.User)
		m.Circuit = conn.circuit
		c.door.Table.Control(conn.address, m)
		return
	}
	m.Answer(hopType, c.door.ID)
	id, _ := f.Headers.Uint32(message.HeaderConn)
	c.ch.Offer(answered(id, m))
}

// traced is a client that answers the other end of a connection, which has asked
// for the way.
func (c *client) traced(f *wire.Frame) {
	conn := c.carried(f)
	number, _ := f.Headers.Uint32(message.HeaderTraceSource)
	if conn == nil || !conn.settle(&conn.owed, number) {
		return
	}
	text := func(key int32) string {
		v := f.Headers.Text(key)
		return v[:min(len(v), maxHopText)]
	}
	m := &stream.Control{Circuit: conn.circuit, User: number, Error: text(message.HeaderTraceError)}
	m.Hops, _ = f.Headers.Uint32(message.HeaderTraceHops)
	m.Time, _ = f.Headers.Uint64(message.HeaderTraceTime)
	m.Answer(text(message.HeaderTraceHopType), text(message.HeaderTraceHopID))
	c.door.Table.Control(conn.address, m)
}

// carried is the connection that a frame names, if its circuit is there.
func (c *client) carried(f *wire.Frame) *conn {
	id, _ := f.Headers.Uint32(message.HeaderConn)
	c.mu.Lock()
	conn := c.conns[id]
	c.mu.Unlock()
	if conn == nil {
		return nil
	}
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if conn.dialing != nil || conn.over {
		return nil
	}
	return conn
}

// Control takes a question of the other end for the way, or the answer to one
// of the client's. Clients are asked in a message of its own, also those that
// are the end of the stream: SDKs understand no other. One that takes no more is
// not asked.
func (c *conn) Control(m *stream.Control) {
	switch m.Type {
	case stream.TraceResponse:
		if c.settle(&c.asked, m.User) {
			c.client.ch.Offer(answered(c.id, m))
		}
	case stream.TraceRequest:
		if m.Hops = max(m.Hops, 1) - 1; m.Hops == 0 {
			m.Answer(hopType, c.client.door.ID)
			c.client.door.Table.Control(c.address, m)
			return
		}
		c.note(&c.owed, m.User)
		block := wire.Block(nil).Uint32(message.HeaderConn, c.id).Uint32(message.HeaderTraceHops, m.Hops)
		block = block.Uint64(message.HeaderTraceTime, m.Time).Uint32(message.HeaderTraceSource, m.User)
		c.client.ch.Offer(&wire.Packet{Type: message.TypeTraceRoute, Block: block})
	}
}

// answered is the answer to a client that asked for the way.
func answered(conn uint32, m *stream.Control) *wire.Packet {
	block := wire.Block(nil).Uint32(message.HeaderReplyFor, m.User).Uint32(message.HeaderConn, conn)
	block = block.Uint32(message.HeaderTraceHops, m.Hops).Uint64(message.HeaderTraceTime, m.Time)
	block = block.Text(message.HeaderTraceHopType, m.HopType).Text(message.HeaderTraceHopID, m.HopID)
	if m.Error != "" {
		block = block.Text(message.HeaderTraceError, m.Error)
	}
	return &wire.Packet{Type: message.TypeTraced, Block: block}
}
