package link

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
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

	links   *Links
	since   time.Time
	state   atomic.Int32
	latency latency
	beats   channel.Beats           // that it was asked for, on any of its connections
	strands atomic.Pointer[strands] // what it is made of
	bundle  *bundle                 // nil if that does not change

	mu      sync.Mutex // of who changes strands
	pulsing *time.Timer

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
	// maxFrame is how much one message may be. Programs that write much at once
	// make one of it, and so do the public SDK and router. Of a peer, only one
	// that is large is read at a time; one that is too large is lost, and with
	// it the circuit it is for.
	maxFrame = 256 << 20
	// soft is how much may wait to be sent before packets are refused: what one
	// stream has on its way. More would only make them old.
	soft = 4 << 20
)

// open returns a connection for a link. Who has several is asked for signs of
// life by pulse.
func (k *Link) open() *channel.Channel {
	beat := channel.Beat
	if k.bundle != nil {
		beat = -1
	}
	return channel.New(k.id, channel.Options{
		Packet: func(_ *channel.Channel, p *wire.Packet) bool { return k.packet(p) }, Pooled: true,
		Handle: func(*channel.Channel, *wire.Frame) {}, // nothing else is said over links
		Closed: k.lose,
		Bounds: wire.Bounds{Headers: channel.MaxHeaders, Body: maxFrame}, Large: k.large, Skipped: k.skipped, Lane: circuitOf,
		Echoed: k.echoed, Beats: &k.beats, Soft: soft, Beat: beat, Silence: silence, Now: k.links.opt.Now,
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

// circuitOf is what packets take turns by.
func circuitOf(p *wire.Packet) []byte {
	id, _ := p.Bytes(message.HeaderStreamCircuit)
	return id
}

// large waits until no other large frame of the peer is read.
func (k *Link) large() (done func()) {
	of, _ := k.links.large.LoadOrStore(k.peer, &sync.Mutex{})
	of.(*sync.Mutex).Lock()
	return of.(*sync.Mutex).Unlock
}

func (k *Link) skipped(e *wire.TooLarge) {
	k.links.opt.Log.Warn("a frame was lost that is too large", "link", k.id, "router", k.peer, "bytes", e.Body)
}

// begin asks the peer for a sign of life at once, so that the latency is known
// early. Later a single connection does so by itself.
func (k *Link) begin() {
	if k.bundle == nil {
		k.beat()
		return
	}
	k.pulse()
}

// beat asks the peer for a sign of life.
func (k *Link) beat() {
	if s := k.parts(); len(s.data) > 0 {
		s.data[0].Ask()
	}
}

// close ends the link.
func (k *Link) close(reason error) {
	was := k.state.Swap(linkClosed)
	if was == linkClosed {
		return
	}
	// Sockets may take seconds to close, and another link may be needed now.
	k.links.closed(k, was == linkOpen, reason)
	k.mu.Lock()
	s := k.parts()
	if k.pulsing != nil {
		k.pulsing.Stop()
	}
	k.mu.Unlock()
	if k.bundle != nil {
		close(k.bundle.over)
	}
	for _, c := range slices.Concat(s.data, s.acks) {
		c.Close(reason)
	}
}

// ID is the link's id, which both ends know.
func (k *Link) ID() string { return k.id }

// Peer is the router at its other end.
func (k *Link) Peer() string { return k.peer }

// Offer sends a packet, unless more waits already than is good: then it is
// refused, and its sender repeats it later. It never waits. Acknowledgements go
// before data: who waits for them would send the data again.
func (k *Link) Offer(p *wire.Packet) bool {
	s := k.parts()
	if p.Type == message.TypeAck {
		if c := strandOf(s.acks, p); c != nil {
			return c.Offer(p)
		}
		c := strandOf(s.data, p)
		return c != nil && c.OfferFirst(p)
	}
	c := strandOf(s.data, p)
	return c != nil && c.Offer(p)
}

// OfferWhenRoom is Offer, except that data waits for room.
func (k *Link) OfferWhenRoom(ctx context.Context, p *wire.Packet) error {
	if p.Type != message.TypeAck {
		if c := strandOf(k.parts().data, p); c != nil {
			return c.OfferWhenRoom(ctx, p)
		}
		return errEnded
	}
	if !k.Offer(p) {
		return errNoRoom
	}
	return nil
}

var errNoRoom = errors.New("span: too many acknowledgements wait")

// told is the link as controllers are told of it.
func (k *Link) told() message.Link {
	return message.Link{
		ID: k.id, Destination: k.peer, Protocol: k.protocol, DialAddress: k.address, Iteration: k.iteration,
		Conns: k.conns(),
	}
}

// conns are the link's connections as controllers are told of them.
func (k *Link) conns() message.LinkConns {
	s := k.parts()
	told := message.LinkConns{Iteration: s.changes}
	for _, t := range slices.Concat(s.data, s.acks) {
		told.Conns = append(told.Conns, t.conn)
	}
	return told
}

// singleStrand is the type of a connection that is the only one.
const singleStrand = "single"

// connOf is what controllers are told of a connection.
func connOf(conn net.Conn, typ string) message.LinkConn {
	at := func(a net.Addr) string { return a.Network() + ":" + a.String() }
	return message.LinkConn{Type: typ, Local: at(conn.LocalAddr()), Remote: at(conn.RemoteAddr())}
}
