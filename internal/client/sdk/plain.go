package sdk

import (
	"context"
	"io"
	"sync"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// maxHeld is how many bytes may wait for a program to read them, in a
// connection whose flow the router holds. A router has no other way to learn
// that a connection is slow than that nothing is read from it at all, so that
// a program that does not read stops all others at the same router.
const maxHeld = 4 << 20

// plain is a connection whose flow the router holds.
type plain struct {
	conn *Conn
	head wire.Block // of all packets

	mu   sync.Mutex
	came []incoming
	held int
	room chan struct{} // closed when there is room; nil if nobody waits
	over bool
}

func newPlain(c *Conn) *plain {
	return &plain{conn: c, head: wire.Block(nil).Uint32(message.HeaderConn, c.number)}
}

func (p *plain) pack(m outgoing) *wire.Packet {
	head := p.head
	if m.flags != 0 {
		head = append(wire.Block(nil), head...).Uint32(message.HeaderDataFlags, m.flags)
	}
	return &wire.Packet{Type: message.TypeData, Block: head, Body: m.data}
}

func (p *plain) offer(m outgoing) bool { return p.conn.router.ch.Offer(p.pack(m)) }

func (p *plain) write(ctx context.Context, m outgoing) error {
	return p.conn.router.ch.OfferWhenRoom(ctx, p.pack(m))
}

func (p *plain) next() (incoming, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.came) == 0 {
		return incoming{}, false
	}
	m := p.came[0]
	p.came[0] = incoming{}
	if p.came = p.came[1:]; len(p.came) == 0 {
		p.came = nil
	}
	if p.held -= len(m.data); p.room != nil && p.held <= maxHeld/2 {
		close(p.room)
		p.room = nil
	}
	return m, true
}

// take queues what has arrived, and holds the router's socket up while too much
// waits.
func (p *plain) take(packet *wire.Packet) {
	if packet.Type != message.TypeData {
		return
	}
	flags, _ := packet.Uint32(message.HeaderDataFlags)
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return
	}
	p.came = append(p.came, incoming{data: packet.Body, fin: flags&message.DataFIN != 0})
	p.held += len(packet.Body)
	var full chan struct{}
	if p.held > maxHeld {
		p.room = make(chan struct{})
		full = p.room
	}
	p.mu.Unlock()
	p.conn.wake()
	if full == nil {
		return
	}
	r := p.conn.router
	r.stuck.Add(1)
	defer r.stuck.Add(-1)
	select {
	case <-full:
	case <-r.ch.Done():
	}
}

func (p *plain) closed(why error) {
	p.conn.router.remove(p.conn.number)
	if why == nil {
		why = io.EOF
	}
	p.conn.finish(why)
}

func (p *plain) close() {
	p.mu.Lock()
	p.over = true
	p.came, p.held = nil, 0
	if p.room != nil {
		close(p.room)
		p.room = nil
	}
	p.mu.Unlock()
	r := p.conn.router
	if gone, _ := p.conn.state(); gone == nil {
		_ = r.ch.Send(about(message.TypeClosed, p.conn.number, nil))
	}
	r.remove(p.conn.number)
}

func (p *plain) cut(error) {}
