package link

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"net"
	"slices"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// Of links that have several connections: what loses a packet on its way holds
// up only those circuits that share its connection.
const (
	dataStrand = "link.default"
	ackStrand  = "link.ack"
	// maxStrands is how many connections a link may have.
	maxStrands = 16
	// ackStrands is how many of those that this router dials are for
	// acknowledgements alone.
	ackStrands = 1
	// strandWait is when the second is dialled: by then it is settled which of
	// two links stays. It is tried again ever more rarely, up to maxStrandWait.
	strandWait    = 3 * time.Second
	maxStrandWait = time.Minute
)

var errNoBundle = errors.New("the connection belongs to no link that is known here")

// strand is one connection of a link.
type strand struct {
	*channel.Channel
	conn message.LinkConn
}

// strands are the connections of a link: those that carry data, and those for
// acknowledgements alone, if there are any. They are replaced, never changed.
type strands struct {
	data, acks []strand
	changes    uint32 // how many there were
}

// strandOf is the connection for a packet, nil if there is none: the same for
// all of a circuit, so that they stay in their order.
func strandOf(of []strand, p *wire.Packet) *channel.Channel {
	switch len(of) {
	case 0:
		return nil
	case 1:
		return of[0].Channel
	}
	return of[maphash.Bytes(seed, circuitOf(p))%uint64(len(of))].Channel
}

var seed = maphash.MakeSeed()

// bundle is what the further connections of a link are known by. A link without
// one ends with any of its connections.
type bundle struct {
	id          string
	secret      []byte
	fingerprint string        // of the certificate of who dialled
	thin        chan struct{} // has an element when a connection was lost
	over        chan struct{} // closed with the link
}

func newBundle(id, fingerprint string, secret []byte) *bundle {
	return &bundle{id, secret, fingerprint, make(chan struct{}, 1), make(chan struct{})}
}

// bundleKey is how a bundle is found; peers choose ids.
type bundleKey struct{ fingerprint, id string }

func (b *bundle) key() bundleKey { return bundleKey{b.fingerprint, b.id} }

func (k *Link) parts() strands {
	if s := k.strands.Load(); s != nil {
		return *s
	}
	return strands{}
}

// join gives the link one more connection, and returns it, nil if it is over or
// has too many. It has no socket yet.
func (k *Link) join(conn message.LinkConn) *channel.Channel {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.parts()
	if k.state.Load() == linkClosed || len(s.data)+len(s.acks) >= maxStrands {
		return nil
	}
	t := strand{k.open(), conn}
	if conn.Type == ackStrand {
		s.acks = append(slices.Clone(s.acks), t)
	} else {
		s.data = append(slices.Clone(s.data), t)
	}
	s.changes++
	k.strands.Store(&s)
	return t.Channel
}

// lose takes a connection out that has ended. The link ends with the last one
// that carries data.
func (k *Link) lose(c *channel.Channel, reason error) {
	if k.bundle == nil {
		k.close(reason)
		return
	}
	gone := func(t strand) bool { return t.Channel == c }
	k.mu.Lock()
	s := k.parts()
	s.data, s.acks = slices.DeleteFunc(slices.Clone(s.data), gone), slices.DeleteFunc(slices.Clone(s.acks), gone)
	s.changes++
	k.strands.Store(&s)
	k.mu.Unlock()
	if len(s.data) == 0 {
		k.close(reason)
		return
	}
	k.links.restranded(k)
	select {
	case k.bundle.thin <- struct{}{}:
	default: // it is known already
	}
}

// missing is the type of connection that a link which was dialled should have
// and has not; empty if it has all.
func (k *Link) missing(data int) string {
	switch s := k.parts(); {
	case len(s.data) < data:
		return dataStrand
	case len(s.acks) < ackStrands:
		return ackStrand
	}
	return ""
}

// pulse asks the peer for a sign of life, again and again. With several
// connections the answer may come over any: none of them can tell by itself.
func (k *Link) pulse() {
	if k.links.opt.Now().Sub(k.heard()) > silence {
		k.close(channel.ErrSilent)
		return
	}
	k.beat()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state.Load() != linkClosed {
		k.pulsing = time.AfterFunc(channel.Beat, k.pulse)
	}
}

// extend makes a socket a further connection of a link, and returns it. The
// peer has shown its certificate: it must be the one that the link came with.
func (l *Links) extend(conn *tls.Conn, h *channel.Hello, g greeting, fingerprint string) (*channel.Channel, error) {
	l.mu.RLock()
	k := l.bundles[bundleKey{fingerprint, g.conn}]
	l.mu.RUnlock()
	if k == nil || k.id != g.linkID || k.peer != g.routerID || subtle.ConstantTimeCompare(k.bundle.secret, []byte(g.secret)) != 1 {
		return nil, errNoBundle
	}
	c := k.join(connOf(conn, g.strand))
	if c == nil {
		return nil, errTooMany
	}
	if err := h.Welcome(conn, l.opt.Now().Add(helloWait), l.welcome(g, k)); err != nil {
		c.Close(err)
		return nil, err
	}
	return c, nil
}

// braid dials the further connections of a link, and those that are lost, until
// it is over.
func (l *Links) braid(k *Link, binding string) {
	wait := strandWait
	for {
		select {
		case <-time.After(wait):
		case <-k.bundle.over:
			return
		}
		typ := k.missing(l.opt.Strands)
		if typ == "" {
			select {
			case <-k.bundle.thin:
			case <-k.bundle.over:
				return
			}
			wait = strandWait
			continue
		}
		if err := l.dialStrand(k, binding, typ); err != nil {
			wait = min(2*max(wait, strandWait), maxStrandWait)
			l.opt.Log.Debug("a further connection of a link cannot be made", "link", k.id, "router", k.peer, "error", err)
		} else {
			wait = 0
		}
	}
}

// dialStrand dials a further connection of a link.
func (l *Links) dialStrand(k *Link, binding, typ string) error {
	select {
	case l.dialling <- struct{}{}:
		defer func() { <-l.dialling }()
	case <-l.over.Done():
		return errOver
	}
	h := k.hello(l.opt.ID, binding)
	h.Headers.SetText(message.HeaderLinkConn, k.bundle.id)
	h.Headers.SetBool(message.HeaderGrouped, true)
	h.Headers.SetText(message.HeaderChannelType, typ)
	h.Headers[message.HeaderGroupSecret] = k.bundle.secret
	conn, _, err := l.greet(k, h)
	if err != nil {
		return err
	}
	c := k.join(connOf(conn, typ))
	if c == nil {
		_ = conn.Close()
		return errEnded
	}
	l.tune(conn)
	c.Attach(conn)
	l.restranded(k)
	return nil
}

// greet connects to the router that a link leads to and says hello.
func (l *Links) greet(k *Link, h channel.Hello) (net.Conn, wire.Headers, error) {
	ctx, cancel := context.WithTimeout(l.over, dialWait)
	defer cancel()
	deadline := l.opt.Now().Add(dialWait)
	conn, err := l.opt.Dial(ctx, k.address, k.peer)
	if err != nil {
		return nil, nil, err
	}
	defer context.AfterFunc(l.over, func() { _ = conn.Close() })()
	answer, err := channel.Greet(conn, deadline, h)
	if id := answer.Text(message.HeaderListenerID); err == nil && id != "" && id != k.peer {
		err = fmt.Errorf("another router has that address: %q", clip(id))
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, answer, nil
}

// takesStrands reports whether a router of a version may be asked for several
// connections: older ones do not know what that is.
func takesStrands(version string) bool {
	var v [3]int
	if n, _ := fmt.Sscanf(version, "v%d.%d.%d", &v[0], &v[1], &v[2]); n != 3 {
		return false
	}
	return v == [3]int{} || slices.Compare(v[:], []int{1, 6, 6}) >= 0 // no version is what those built by hand have
}
