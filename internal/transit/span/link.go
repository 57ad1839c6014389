package span

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"netkeep/internal/line/channel"
	"netkeep/internal/line/message"
	"netkeep/internal/line/wire"
)

// Link is a connection to another router. All methods may be called at any time.
type Link struct {
	id        string
	key       string // links with the same one do the same
	peer      string
	version   string // of the peer, as far as it is known
	protocol  string
	address   string // that was dialled
	iteration uint32 // how often it was
	dialled   bool   // by this router

	// data carries everything, but for acknowledgements if there is a
	// connection of their own for them.
	data, acks *channel.Channel
	conn       message.LinkConn
	links      *Links
	since      time.Time
	state      atomic.Int32
	latency    latency

	// Of Links, under its mutex.
	rejected int         // how many that do the same it was preferred to
	leaving  bool        // another has taken its place
	closing  *time.Timer // when it has to go
}

// The states of a link, in their order.
const (
	linkNew int32 = iota
	linkOpen
	linkClosed
)

// Bounds and times of a link.
const (
	// silence is how long a peer may go without a sign of life. Vendors' wait
	// as long.
	silence = 60 * time.Second
	// soft is how much may wait to be sent before packets are refused. More
	// would only make them old: their senders repeat them.
	soft = 1 << 20
)

// open gives a link a connection.
func (k *Link) open() *channel.Channel {
	return channel.New(k.id, channel.Options{
		Packet: func(_ *channel.Channel, p *wire.Packet) bool { return k.packet(p) },
		Handle: func(*channel.Channel, *wire.Frame) {}, // nothing else is said over links
		Closed: func(_ *channel.Channel, reason error) { k.close(reason) },
		Echoed: k.echoed, Soft: soft, Silence: silence, Now: k.links.opt.Now,
	})
}

// packet hands on what is for circuits. Until the link is one of the router's,
// nothing is: it could have the id of another's.
func (k *Link) packet(p *wire.Packet) bool {
	switch p.Type {
	case message.TypePayload, message.TypeAck, message.TypeStreamControl:
		if k.state.Load() == linkOpen {
			k.links.opt.Arrived(k.id, p)
		}
		return true
	}
	return false
}

// beat asks the peer for a sign of life at once, so that the latency is known
// early. Later the connection does so by itself.
func (k *Link) beat() {
	f := &wire.Frame{Type: message.TypeHeartbeat, Headers: wire.Headers{}}
	f.Headers.SetUint64(message.HeaderHeartbeat, uint64(k.links.opt.Now().UnixNano()))
	_ = k.data.Send(f)
}

// close ends the link.
func (k *Link) close(reason error) {
	was := k.state.Swap(linkClosed)
	if was == linkClosed {
		return
	}
	// Sockets may take seconds to close, and another link may be needed now.
	k.links.closed(k, was == linkOpen, reason)
	for _, c := range []*channel.Channel{k.data, k.acks} {
		if c != nil {
			c.Close(reason)
		}
	}
}

// ID is the link's id, which both ends know.
func (k *Link) ID() string { return k.id }

// Peer is the router at its other end.
func (k *Link) Peer() string { return k.peer }

// Offer sends a packet, unless more waits already than is good: then it is
// refused, and its sender repeats it later. It never waits.
func (k *Link) Offer(p *wire.Packet) bool { return k.channel(p).Offer(p) }

// OfferWhenRoom is Offer, except that it waits for room.
func (k *Link) OfferWhenRoom(ctx context.Context, p *wire.Packet) error {
	return k.channel(p).OfferWhenRoom(ctx, p)
}

func (k *Link) channel(p *wire.Packet) *channel.Channel {
	if p.Type == message.TypeAck && k.acks != nil {
		return k.acks
	}
	return k.data
}

// told is the link as controllers are told of it.
func (k *Link) told() message.Link {
	return message.Link{
		ID: k.id, Destination: k.peer, Protocol: k.protocol, DialAddress: k.address, Iteration: k.iteration,
		Conns: message.LinkConns{Iteration: 1, Conns: []message.LinkConn{k.conn}},
	}
}

// connOf is what controllers are told of a connection.
func connOf(conn net.Conn) message.LinkConn {
	at := func(a net.Addr) string { return a.Network() + ":" + a.String() }
	return message.LinkConn{Type: "single", Local: at(conn.LocalAddr()), Remote: at(conn.RemoteAddr())}
}
