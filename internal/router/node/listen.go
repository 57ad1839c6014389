package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/router/forward"
	"netkeep.internal/internal/router/link"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// Times of connections.
const (
	handshakeTime = 5 * time.Second
	pauseTime     = 50 * time.Millisecond
	roomTime      = time.Second // that an end waits for room on a link
)

// accept lets in who connects.
func (r *Router) accept(ctx context.Context, at net.Listener) error {
	for {
		conn, err := at.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("the router's address %s: %w", at.Addr(), err)
		case err != nil:
			// Most often there are too many open files: others may close theirs.
			r.opt.Log.Warn("a connection was not taken", "error", err)
			pause(ctx)
			continue
		}
		go r.serve(ctx, tls.Server(channel.NewBulk(conn), r.serveClients()))
	}
}

func pause(ctx context.Context) {
	t := time.NewTimer(pauseTime)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// serve finds out whether a client or a router has come. Whoever has not shown
// that in time is turned away.
func (r *Router) serve(ctx context.Context, conn *tls.Conn) {
	within, cancel := context.WithTimeout(ctx, handshakeTime)
	err := conn.HandshakeContext(within)
	cancel()
	if err == nil && conn.ConnectionState().NegotiatedProtocol == message.LinkALPN {
		r.links.Serve(ctx, conn, r.linkListener())
		return
	}
	if err == nil {
		err = r.door.Serve(ctx, conn)
	}
	if err != nil {
		r.turnAway(conn, err)
		return
	}
	r.conns.Keep(conn)
}

// maxComplaints is how often a minute the log tells of one address that somebody
// was turned away: whoever it is must not be able to fill it.
const maxComplaints = 60

// maxMentions is how often a minute the log tells of one identity that a client
// of it has come or gone.
const maxMentions = 120

func (r *Router) turnAway(conn net.Conn, reason error) {
	_ = conn.Close()
	if r.mayComplain(conn) {
		r.opt.Log.Info("a client was turned away", "address", conn.RemoteAddr().String(), "reason", reason.Error())
	}
}

// mayComplain reports whether the log may tell of one more from where a
// connection comes from.
func (r *Router) mayComplain(conn net.Conn) bool {
	from, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	return r.complaints.Take(limit.At(from.Addr())) == 0
}

// callController is how the controller is called.
func (r *Router) callController() (*tls.Config, error) {
	papers := r.opt.Papers
	if r.opt.Calling != nil {
		papers = r.opt.Calling
	}
	cfg := call(papers())
	cfg.ServerName = r.opt.ServerName
	return cfg, nil
}

// callRouter is how other routers are called.
func (r *Router) callRouter() *tls.Config { return call(r.opt.Papers()) }

// call is how others are called: the peer must be who the network's authority
// says it is.
func call(p Papers) *tls.Config {
	roots := x509.NewCertPool()
	for _, ca := range p.CAs {
		roots.AddCert(ca)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{p.Client}, RootCAs: roots}
}

// serveClients is how whoever comes is served. Clients show a certificate of
// whatever authority: it counts by its fingerprint, which the controller tells.
// Those of routers are verified when they are known to be some.
func (r *Router) serveClients() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		NextProtos:   []string{message.EdgeALPN, message.LinkALPN},
		Certificates: []tls.Certificate{r.opt.Papers().Server},
		// Many small records cost more than a first byte that is a little later.
		DynamicRecordSizingDisabled: true,
	}
}

// linkGroups are those of the routers that this one links with.
func (r *Router) linkGroups() []string {
	if len(r.opt.LinkGroups) == 0 {
		return []string{link.DefaultGroup}
	}
	return r.opt.LinkGroups
}

// linkListeners are where other routers are told to come: to the first address
// there is. Two would be taken for one that moves to and fro.
func (r *Router) linkListeners() []message.Listener {
	if len(r.opt.LinkAddresses) == 0 {
		return nil
	}
	return []message.Listener{r.linkListener()}
}

// linkListener is the one that other routers come to.
func (r *Router) linkListener() message.Listener {
	at := message.Listener{Protocol: "tls", Groups: slices.Clone(r.linkGroups())}
	if len(r.opt.LinkAddresses) > 0 {
		at.Address = r.opt.LinkAddresses[0]
	}
	return at
}

// way is a link as a place that frames go to.
type way struct{ *link.Link }

// Packet sends a frame over the link.
func (w way) Packet(p *wire.Packet, wait bool) bool {
	if w.Offer(p) {
		return true
	}
	if !wait {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), roomTime)
	defer cancel()
	return w.OfferWhenRoom(ctx, p) == nil
}

// link finds the link with an id.
func (r *Router) link(id string) (forward.Place, bool) {
	if l, ok := r.links.Get(id); ok {
		return way{l}, true
	}
	return nil, false
}
