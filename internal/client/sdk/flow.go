package sdk

import (
	"context"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/internal/wire/stream"
)

// flow is a connection whose flow we hold: we are an end of the stream, and
// routers only pass on what it says. So a connection that nobody reads from
// stops nobody else.
type flow struct {
	conn    *Conn
	end     *stream.End
	hosts   bool // it is the end of who hosts
	aborted atomic.Bool
}

// carry decides who holds the flow of a connection, by what the router says of
// it. Routers that know nothing of it hold it themselves.
func (c *Conn) carry(said wire.Headers, terminator bool) error {
	if !said.Bool(message.HeaderClientFlow) {
		return nil
	}
	if c.about.Circuit == "" {
		return say(ErrRefused, "the router %s does not say which circuit a connection has", c.router.name)
	}
	f := &flow{conn: c, hosts: terminator}
	f.end = stream.New(stream.Options{
		Circuit: c.about.Circuit, Terminator: terminator, Pool: c.router.pool,
		Send: f.send, Ack: f.ack, Ready: c.wake, Over: f.over, Now: c.router.client.opt.Now,
	})
	c.carriedBy(f)
	f.end.Start()
	return nil
}

// All connections over one router together have windows on their way, and each at least
// leastWindow: what is sent is held until it has arrived, and what has come until it is
// read.
const (
	windows     = 16 << 20
	leastWindow = 128 << 10
)

// roomWait is how long a payload waits for room towards the router before it is
// left to be sent again.
const roomWait = time.Second

// send hands a payload to the router.
func (f *flow) send(p *stream.Payload, wait bool) bool {
	packet := p.Packet()
	packet.Block = wire.Block(packet.Block).Uint32(message.HeaderConn, f.conn.number)
	ch := f.conn.router.ch
	if ch.Offer(packet) {
		return true
	}
	if !wait {
		return false
	}
	ctx, cancel := context.WithTimeout(ch.Context(), roomWait)
	defer cancel()
	return ch.OfferWhenRoom(ctx, packet) == nil
}

// ack hands an acknowledgement to the router. It does not wait behind data: who
// sent what it is for would take that for lost.
func (f *flow) ack(a *stream.Ack) { f.conn.router.ch.OfferFirst(a.Packet()) }

// endLater is how much later who hosts ends a circuit than who has dialled. A router
// of others tells the controller that made a circuit of it once for each end, and
// nobody while that one is away, and then carries the circuit for ever: by the second
// time somebody is in its place.
const endLater = 10 * time.Second

// over forgets the connection, and ends its circuit unless that is done.
func (f *flow) over(reason error) {
	r := f.conn.router
	r.remove(f.conn.number)
	if f.aborted.Load() {
		return
	}
	end := func() {
		_ = r.ch.Send(about(message.TypeCircuitEnded, f.conn.number, []byte(f.conn.about.Circuit)))
	}
	if f.hosts && reason == nil { // the other end knows it too
		time.AfterFunc(endLater, end)
		return
	}
	end()
}

func (f *flow) offer(m outgoing) bool {
	return f.end.TryWrite(stream.Message{Data: m.data, Flags: m.flags})
}

func (f *flow) write(ctx context.Context, m outgoing) error {
	return f.end.Write(ctx, stream.Message{Data: m.data, Flags: m.flags})
}

func (f *flow) next() (incoming, bool) {
	m, ok := f.end.Next()
	if !ok {
		return incoming{}, false
	}
	return incoming{data: m.Data, fin: m.End && m.Err == nil || m.Flags&message.DataFIN != 0, err: m.Err}, true
}

func (f *flow) take(p *wire.Packet) {
	switch p.Type {
	case message.TypePayload:
		if payload, err := stream.ParsePayload(p); err == nil {
			f.end.Payload(payload)
		}
	case message.TypeAck:
		if ack, err := stream.ParseAck(p); err == nil {
			f.end.Acked(ack)
		}
	}
}

func (f *flow) closed(why error) {
	if why == nil {
		why = errEnded
	}
	f.cut(why)
}

func (f *flow) close() {
	f.end.CloseRead()
	_ = f.end.CloseWrite()
}

func (f *flow) cut(err error) {
	f.aborted.Store(true)
	f.end.Abort(err)
}
