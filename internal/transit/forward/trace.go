package forward

import (
	"netkeep/internal/line/stream"
	"netkeep/internal/line/wire"
)

// forwarder is what a router calls itself in the answer to who asks for the
// way.
const forwarder = "forwarder"

// control passes on a question for the way of a circuit, or answers it if it
// has come as far as it wanted to.
func (t *Table) control(from string, p *wire.Packet) {
	c, err := stream.ParseControl(p)
	if err != nil {
		return
	}
	to, _ := t.next([]byte(c.Circuit), from)
	if c.Type == stream.TraceRequest {
		if c.Hops > 0 {
			c.Hops--
		}
		if c.Hops == 0 || to.via == nil {
			c.Type, c.HopType, c.HopID = stream.TraceResponse, forwarder, t.opt.ID
			t.answer(from, c)
			return
		}
	}
	if to.via != nil {
		to.via.Packet(c.Packet(), false)
	}
}

// answer sends a control message back to where it came from.
func (t *Table) answer(place string, c *stream.Control) {
	t.mu.RLock()
	p := t.at(place)
	t.mu.RUnlock()
	if p.via != nil {
		p.via.Packet(c.Packet(), false)
	}
}
