package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// Bounds of dialling.
const (
	// dialWait is how long it may take until a link is there. The peer has to
	// ask a controller meanwhile.
	dialWait = 15 * time.Second
	// maxDialling is how many are dialled at once: a handshake is work.
	maxDialling = 32
)

// errUnwanted is why a link ends that should not be there any more.
var errUnwanted = errors.New("span: the peer is not reached there any more")

// TLSDial returns a Dial that shows a certificate and checks the peer's: it
// must be issued for the address by one of the roots, and to the peer. A router
// that came by the address of another is not taken for it.
func TLSDial(config func() *tls.Config) func(ctx context.Context, address, peer string) (net.Conn, error) {
	return func(ctx context.Context, address, peer string) (net.Conn, error) {
		scheme, hostPort, _ := strings.Cut(address, ":")
		host, _, err := net.SplitHostPort(hostPort)
		if err != nil || scheme != protocol {
			return nil, fmt.Errorf("the address %q is not tls:host:port", clip(address))
		}
		c := config().Clone()
		c.ServerName, c.NextProtos = host, []string{message.LinkALPN}
		// Many small records cost more than a first byte that is a little later.
		c.DynamicRecordSizingDisabled = true
		conn, err := channel.DialTLS(ctx, &net.Dialer{KeepAlive: keepAlive}, c, hostPort)
		if err != nil {
			return nil, err
		}
		if found := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; found != peer {
			_ = conn.Close()
			return nil, fmt.Errorf("another router has that address: %q", clip(found))
		}
		return conn, nil
	}
}

// keepAlive is how often the system looks whether a connection still is one.
const keepAlive = 15 * time.Second

// dial makes the link that a target stands for.
func (l *Links) dial(t *target) {
	select {
	case l.dialling <- struct{}{}:
		defer func() { <-l.dialling }()
	case <-l.over.Done():
		return
	}
	k := l.begin(t)
	if k == nil {
		return
	}
	log := l.opt.Log.With("link", k.id, "router", k.peer, "address", k.address, "iteration", k.iteration)
	err := l.connect(k, t.dialer.Binding)
	switch {
	case err == nil:
		log.Info("link dialled")
	case errors.Is(err, errDuplicate):
		log.Debug("link dialled, and there was one already")
	default:
		log.Warn("a router cannot be reached", "error", err)
	}
	l.dialled(t, k, err)
}

// begin returns the link that is to be dialled, nil if there is one already.
func (l *Links) begin(t *target) *Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.gone || t.dialling || l.byKey[t.key] != nil || l.over.Err() != nil {
		return nil
	}
	t.dialling = true
	t.attempts++
	k := &Link{
		id: t.linkID, key: t.key, peer: t.peer.id, version: t.peer.version, protocol: t.listener.Protocol, address: t.listener.Address,
		iteration: t.attempts, dialled: true, links: l,
	}
	return k
}

// connect dials a link and makes it one of the router's.
func (l *Links) connect(k *Link, binding string) error {
	h := k.hello(l.opt.ID, binding)
	if l.opt.Strands > 1 && takesStrands(k.version) {
		h.Headers.SetBool(message.HeaderGrouped, true)
		h.Headers.SetBool(message.HeaderGroupFirst, true)
		h.Headers.SetText(message.HeaderChannelType, dataStrand)
	}
	conn, answer, err := l.greet(k, h)
	if err != nil {
		return err
	}
	typ := singleStrand
	if secret := answer[message.HeaderGroupSecret]; h.Grouped() && answer.Bool(message.HeaderGrouped) && len(secret) > 0 {
		k.bundle = newBundle(h.Headers.Text(message.HeaderLinkConn), "", secret)
		typ = dataStrand
	}
	k.since = l.opt.Now()
	c := k.join(connOf(conn, typ))
	if err := l.add(k); err != nil {
		_ = conn.Close()
		return err
	}
	l.tune(conn)
	c.Attach(conn)
	k.begin()
	if k.bundle != nil {
		go l.braid(k, binding)
	}
	return nil
}

// dialled takes note of how an attempt went. What happened meanwhile may ask
// for another one, or have made it useless.
func (l *Links) dialled(t *target, k *Link, err error) {
	unwanted := false
	l.mu.Lock()
	t.dialling = false
	switch {
	case t.gone || t.listener.Address != k.address:
		unwanted = err == nil
		l.schedule(t, 0)
	case l.byKey[t.key] != nil:
	case err == nil: // it has ended already
		l.lost(t, k)
	default:
		l.failed(t)
	}
	l.mu.Unlock()
	if unwanted {
		k.close(errUnwanted)
	}
}
