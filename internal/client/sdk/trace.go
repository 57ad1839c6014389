package sdk

import (
	"context"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Hop is a place that a connection goes over.
type Hop struct {
	// Type is what is there, and ID who: a router, or nobody who says.
	Type, ID string
	// Error is why the way ends there, if it should not.
	Error string
	// Took is how long it took to ask and be answered.
	Took time.Duration
}

const (
	// maxHops is how long a way may be: the longest that makes sense is far
	// shorter.
	maxHops = 64
	// hopType is what we call ourselves.
	hopType = "sdk/netkeep"
)

// Trace asks for the way that the connection takes, place by place, up to the
// other end.
func (c *Conn) Trace(ctx context.Context) ([]Hop, error) {
	var way []Hop
	for far := range uint32(maxHops) {
		ask := about(message.TypeTraceRoute, c.number, nil)
		ask.Headers.SetUint32(message.HeaderTraceHops, far+1)
		began := c.router.client.opt.Now()
		ask.Headers.SetUint64(message.HeaderTraceTime, uint64(began.UnixMilli()))
		said, err := c.router.ch.Request(ctx, ask)
		if err != nil {
			return way, say(ErrRefused, "place %d on the way of the connection to %s says nothing: %v", far+1, c.about.Service, err)
		}
		if left, _ := said.Headers.Uint32(message.HeaderTraceHops); left > 0 {
			break // it is the other end once more
		}
		way = append(way, Hop{
			Type: said.Headers.Text(message.HeaderTraceHopType), ID: said.Headers.Text(message.HeaderTraceHopID),
			Error: said.Headers.Text(message.HeaderTraceError), Took: c.router.client.opt.Now().Sub(began),
		})
		if way[far].Error != "" {
			break
		}
	}
	return way, nil
}

// traced answers the other end, which asks for the way: this is where it ends.
func (c *Conn) traced(f *wire.Frame) {
	left, _ := f.Headers.Uint32(message.HeaderTraceHops)
	block := wire.Block(nil).Uint32(message.HeaderConn, c.number).Uint32(message.HeaderTraceHops, max(left, 1)-1)
	block = block.Text(message.HeaderTraceHopType, hopType).Text(message.HeaderTraceHopID, "")
	for _, key := range []int32{message.HeaderTraceTime, message.HeaderTraceSource, message.FirstReflected} {
		if v, ok := f.Headers[key]; ok {
			block = block.Bytes(key, v)
		}
	}
	// Who asks too often is not answered.
	c.router.ch.Offer(&wire.Packet{Type: message.TypeTraced, Block: block})
}
