// Package router is a whole router: where clients enter, links to other
// routers, ways out, and the connection to the controller that says what goes
// where. The parts do not know each other; they are put together here. It must
// not import what only a controller is made of.
package router

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"netkeep/internal/line/message"
	"netkeep/internal/transit/door"
	"netkeep/internal/transit/exit"
	"netkeep/internal/transit/forward"
	"netkeep/internal/transit/uplink"
)

// Papers are the certificates of a router, and whom it trusts.
type Papers struct {
	Client, Server tls.Certificate // to call with, and to be called under
	Roots          *x509.CertPool
}

// Options of a Router.
type Options struct {
	ID          string
	Controllers []string // addresses such as tls:host:6262
	// Papers is asked whenever a connection begins: they are renewed.
	Papers func() Papers
	// Edge is where clients connect and EdgeAddresses how they are told of it.
	Edge          net.Listener
	EdgeAddresses []string
	Version       string // five fields, as hellos have it
	Now           func() time.Time
	Log           *slog.Logger
}

// Router is one.
type Router struct {
	opt    Options
	table  *forward.Table
	door   *door.Door
	exits  *exit.Exits
	uplink *uplink.Uplink
	usage  usage
}

// New returns a router that does nothing yet.
func New(opt Options) (*Router, error) {
	r := &Router{opt: opt, table: forward.New(forward.Options{ID: opt.ID, Now: opt.Now})}
	r.usage.init(opt.Now)
	var err error
	r.uplink, err = uplink.New(uplink.Options{
		ID: opt.ID, Endpoints: opt.Controllers, TLS: r.callController, Version: opt.Version,
		EdgeAddresses: opt.EdgeAddresses, Handler: r, Now: opt.Now, Log: opt.Log,
	})
	if err != nil {
		return nil, err
	}
	r.door = door.New(door.Options{
		ID: opt.ID, Version: opt.Version, Controller: asker{r.uplink, opt.Log}, Table: r.table, Meter: r.usage.meter, Now: opt.Now, Log: opt.Log,
	})
	r.exits = exit.New(exit.Options{
		Table: r.table, Fault: func(m message.Fault) { _ = r.uplink.Fault(m) }, Meter: r.usage.meter, Now: opt.Now,
	})
	return r, nil
}

// Status is how the connection to the controller stands.
func (r *Router) Status() uplink.Status { return r.uplink.Status() }

// Run carries what there is to carry until ctx ends.
func (r *Router) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	parts.Go(func() { cancel(r.uplink.Run(ctx)) })
	parts.Go(func() { r.door.Run(ctx) })
	parts.Go(func() { r.upkeep(ctx) })
	parts.Go(func() { cancel(r.accept(ctx, r.opt.Edge)) })
	<-ctx.Done()
	_ = r.opt.Edge.Close()
	parts.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// accept lets in who connects.
func (r *Router) accept(ctx context.Context, at net.Listener) error {
	for {
		conn, err := at.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("the address for clients: %w", err)
		case err != nil:
			// Most often there are too many open files: others may close theirs.
			r.opt.Log.Warn("a connection was not taken", "error", err)
			r.pause(ctx)
			continue
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetKeepAlivePeriod(keepAlive)
		}
		go r.door.Serve(ctx, tls.Server(conn, r.serveClients()))
	}
}

// keepAlive is how often a peer that says nothing is looked for.
const keepAlive = 15 * time.Second

// pause is how long nobody is let in when it went wrong.
func (r *Router) pause(ctx context.Context) {
	t := time.NewTimer(50 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// callController is how the controller is called.
func (r *Router) callController() (*tls.Config, error) {
	p := r.opt.Papers()
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{p.Client}, RootCAs: p.Roots}, nil
}

// serveClients is how clients are served. They show a certificate of whatever
// authority: it counts by its fingerprint, which the controller tells.
func (r *Router) serveClients() *tls.Config {
	p := r.opt.Papers()
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{p.Server}, ClientAuth: tls.RequireAnyClientCert,
		NextProtos: []string{message.EdgeALPN}, SessionTicketsDisabled: true,
	}
}
