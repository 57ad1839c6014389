package forward

import (
	"netkeep.internal/internal/wire/stream"
)

// forwarder is what a router calls itself in the answer to who asks for the
// way.
const forwarder = "forwarder"

// Control passes on a question for the way of a circuit, or the answer to one.
// It answers itself if the question has come as far as it wanted to, or can go
// no further.
func (t *Table) Control(from string, c *stream.Control) {
	to, ok := t.next([]byte(c.Circuit), from)
	if c.Type == stream.TraceRequest {
		c.Hops = max(c.Hops, 1) - 1
		if !ok {
			c.Error = "the circuit leads nowhere from here"
		}
		if c.Hops == 0 || !ok {
			to, ok = t.at(from), true
			c.Answer(forwarder, t.opt.ID)
		}
	}
	switch {
	case !ok:
	case to.control != nil:
		to.control(c)
	case to.via != nil:
		to.via.Packet(c.Packet(), false)
	}
}
