package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// Bounds of what is not yet a link.
const (
	helloWait  = 5 * time.Second // for the handshake, and for the hello
	verifyWait = 10 * time.Second
	partWait   = 30 * time.Second // for the second connection of a link that has two
	// maxPending is how many sockets may be on their way to be links, and
	// maxPendingEach how many with the same certificate: no single one of those
	// who are in the network can keep all others out.
	maxPending     = 1024
	maxPendingEach = 8
	maxHalves      = 256
	maxHalvesEach  = 8 // of a router
)

var (
	errBusy      = errors.New("too many links are being made")
	errUnknown   = errors.New("the certificate is not of this network")
	errNoPartner = errors.New("span: the second connection did not come")
)

// gate counts the sockets that are on their way to be links, under the mutex of
// Links.
type gate struct {
	all  int
	each map[string]int // by certificate
}

func (g *gate) init() { g.each = map[string]int{} }

func (l *Links) enter(fingerprint string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gate.all >= maxPending || l.gate.each[fingerprint] >= maxPendingEach || l.over.Err() != nil {
		return false
	}
	l.gate.all++
	l.gate.each[fingerprint]++
	return true
}

func (l *Links) leave(fingerprint string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gate.all--
	if l.gate.each[fingerprint]--; l.gate.each[fingerprint] == 0 {
		delete(l.gate.each, fingerprint)
	}
}

// Serve takes a socket that came in at one of the router's listeners and wants
// to be a link. It returns when the socket has ended. Once it is a link, ctx
// has no say any more.
func (l *Links) Serve(ctx context.Context, conn *tls.Conn, at message.Listener) {
	serve, err := l.admit(ctx, conn, at)
	if err != nil {
		_ = conn.Close()
		if l.opt.Complain == nil || l.opt.Complain(conn) {
			l.opt.Log.Warn("a link was refused", "remote", conn.RemoteAddr().String(), "error", err)
		}
		return
	}
	l.tune(conn)
	if l.opt.Admitted != nil {
		l.opt.Admitted(conn)
	}
	serve.Serve(conn)
}

// admit makes a socket a link, or part of one.
func (l *Links) admit(ctx context.Context, conn *tls.Conn, at message.Listener) (*channel.Channel, error) {
	fingerprint, err := l.identify(ctx, conn)
	if err != nil {
		return nil, err
	}
	if !l.enter(fingerprint) {
		return nil, errBusy
	}
	defer l.leave(fingerprint)
	defer context.AfterFunc(l.over, func() { _ = conn.Close() })()
	h, err := channel.ReadHello(conn, l.opt.Now().Add(helloWait))
	if err != nil {
		return nil, err
	}
	g, err := readGreeting(h, l.opt.ID)
	if err == nil && g.further() {
		c, err := l.extend(conn, h, g, fingerprint)
		if err != nil {
			_ = channel.Refuse(conn, l.opt.Now().Add(helloWait), "the connection is refused: "+err.Error())
		}
		return c, err
	}
	if err == nil {
		err = l.verify(ctx, g.routerID, fingerprint)
	}
	var k *Link
	var c *channel.Channel
	if err == nil {
		k, c, err = l.accept(g, fingerprint, at, conn)
	}
	if err != nil {
		_ = channel.Refuse(conn, l.opt.Now().Add(helloWait), "the link is refused: "+err.Error())
		return nil, fmt.Errorf("router %.64q: %w", g.routerID, err)
	}
	// It is a link before the peer knows: what the peer has a controller send
	// over it may come at once.
	if err := h.Welcome(conn, l.opt.Now().Add(helloWait), l.welcome(g, k)); err != nil {
		k.close(err)
		return nil, err
	}
	if g.split != splitAcks {
		k.begin()
	}
	return c, nil
}

// identify returns the fingerprint of the certificate whose key the peer has
// proved to hold: the leaf's, and no other's.
func (l *Links) identify(ctx context.Context, conn *tls.Conn) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return "", fmt.Errorf("handshake: %w", err)
	}
	now := l.opt.Now()
	leaf, err := l.opt.Roots().VerifyLeaf(conn.ConnectionState().PeerCertificates, pki.VerifyOptions{Now: now})
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnknown, err)
	}
	if leaf.Expired(now) || leaf.NotYetValid(now) {
		return "", fmt.Errorf("%w: it has run out or is not valid yet", errUnknown)
	}
	return pki.Fingerprint(leaf.Certificate()), nil
}

// verify asks a controller whether the peer is the router that it says.
func (l *Links) verify(ctx context.Context, routerID, fingerprint string) error {
	ctx, cancel := context.WithTimeout(ctx, verifyWait)
	defer cancel()
	if err := l.opt.Verify(ctx, routerID, fingerprint); err != nil {
		return fmt.Errorf("the router cannot be verified: %w", err)
	}
	return nil
}

// welcome is the answer to a hello. Who wants several connections is told what
// to show with the others.
func (l *Links) welcome(g greeting, k *Link) wire.Headers {
	h := wire.Headers{}
	h.SetText(message.HeaderConnectionID, g.conn)
	h.SetText(message.HeaderListenerID, l.opt.ID)
	if k.bundle != nil {
		h.SetBool(message.HeaderGrouped, true)
		h.SetText(message.HeaderChannelType, g.strand)
		h[message.HeaderGroupSecret] = k.bundle.secret
	}
	return h
}

// accept makes a link of a greeting, or half of one, and returns the connection
// that the socket is for.
func (l *Links) accept(g greeting, fingerprint string, at message.Listener, conn *tls.Conn) (k *Link, c *channel.Channel, err error) {
	k = &Link{
		id: g.linkID, key: keyOf(g.binding, at.Protocol, g.routerID, at.LocalBinding), peer: g.routerID, protocol: at.Protocol, address: at.Address,
		iteration: g.iteration, links: l, since: l.opt.Now(),
	}
	if g.split != splitNone {
		var complete bool
		if k, complete, err = l.pair(k, g, fingerprint); err != nil {
			return nil, nil, err
		}
		if c = k.parts().data[0].Channel; g.split == splitAcks {
			c = k.parts().acks[0].Channel
		}
		if !complete {
			return k, c, nil
		}
	} else {
		if g.several && g.first && g.conn != "" {
			k.bundle = newBundle(g.conn, fingerprint, channel.NewSecret())
		}
		c = k.join(connOf(conn, dataStrand))
	}
	if err := l.add(k); err != nil {
		k.close(err)
		return nil, nil, err
	}
	l.opt.Log.Info("link accepted", "link", k.id, "router", k.peer, "iteration", k.iteration, "split", g.split != splitNone, "several", k.bundle != nil)
	return k, c, nil
}

// half is a link of which one of two connections is there.
type half struct {
	link        *Link
	greeting    greeting // of the first
	fingerprint string
	late        *time.Timer
}

// pair finds the link that a connection is the second of, or makes it the first
// of one.
func (l *Links) pair(k *Link, g greeting, fingerprint string) (*Link, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.halves[g.conn]
	if h == nil {
		each := 0
		for _, h := range l.halves {
			if h.greeting.routerID == g.routerID {
				each++
			}
		}
		if len(l.halves) >= maxHalves || each >= maxHalvesEach || l.over.Err() != nil {
			return nil, false, errBusy
		}
		k.join(message.LinkConn{Type: dataStrand})
		k.join(message.LinkConn{Type: ackStrand})
		l.halves[g.conn] = &half{k, g, fingerprint, time.AfterFunc(partWait, func() { l.giveUp(g.conn, k) })}
		return k, false, nil
	}
	first := h.greeting
	other := first
	other.split = g.split
	if other != g || first.split == g.split || h.fingerprint != fingerprint {
		return nil, false, errTaken
	}
	h.late.Stop()
	delete(l.halves, g.conn)
	return h.link, true, nil
}

// giveUp ends a link whose second connection did not come.
func (l *Links) giveUp(conn string, k *Link) {
	l.mu.RLock()
	h := l.halves[conn]
	l.mu.RUnlock()
	if h != nil && h.link == k {
		k.close(errNoPartner)
	}
}

// dropHalf forgets a link that was never whole.
func (l *Links) dropHalf(k *Link) {
	for conn, h := range l.halves {
		if h.link == k {
			h.late.Stop()
			delete(l.halves, conn)
		}
	}
}
