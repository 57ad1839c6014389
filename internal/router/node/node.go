// Package node is a whole router: where clients enter, links to other
// routers, ways out, and the connection to the controller that says what goes
// where. The parts do not know each other; they are put together here. It must
// not import what only a controller is made of.
package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/router/edge"
	"netkeep.internal/internal/router/exit"
	"netkeep.internal/internal/router/forward"
	"netkeep.internal/internal/router/link"
	"netkeep.internal/internal/router/uplink"
	"netkeep.internal/internal/wire/message"
)

// Papers are the certificates of a router, and whom it trusts.
type Papers struct {
	Client, Server tls.Certificate // to call with, and to be called under
	CAs            []*x509.Certificate
}

// Options of a Router.
type Options struct {
	ID          string
	Controllers []string // addresses such as tls:host:6262
	// Known, Pinned and Listed are those of uplink.Options.
	Known  []uplink.Controller
	Pinned bool
	Listed func([]uplink.Controller)
	// Papers is asked whenever a connection begins: they are renewed.
	Papers func() Papers
	// Calling, if set, is asked instead when the controller is called: where
	// papers are being renewed, it may know the router by others.
	Calling func() Papers
	// ServerName is what the controller's certificate is for; the host of its
	// address if empty.
	ServerName string
	// Listeners are where clients and other routers connect: each of them takes
	// both.
	Listeners []net.Listener
	// EdgeAddresses are how clients are told to come here, and LinkAddresses how
	// other routers are, by the first of them; without any of those this router only dials others.
	EdgeAddresses, LinkAddresses []string
	// LinkGroups are those of the routers that this one links with.
	LinkGroups []string
	Version    string // five fields, as hellos have it
	Now        func() time.Time
	Log        *slog.Logger
}

// Router is one.
type Router struct {
	opt    Options
	table  *forward.Table
	door   *edge.Door
	exits  *exit.Exits
	links  *link.Links
	uplink *uplink.Uplink
	usage  usage
	conns  limit.Connections
	// complaints are what the log tells of each address.
	complaints limit.Rate[limit.Party]
	// mentions are what it tells of the clients of each identity.
	mentions limit.Rate[string]
	// measured has an element when a link was measured for the first time.
	measured chan struct{}
}

// Bounds of sockets: how many there may be, and what part of those that have
// not shown who they are one address may have. Whoever takes most loses first.
const (
	maxConns  = 30_000
	connShare = 25
)

// linkStrands is how many connections carry the data of a link that this router
// dials: as many as those of OpenZiti's routers, so that one that loses a packet
// does not hold up all circuits.
const linkStrands = 3

// New returns a router that does nothing yet.
func New(opt Options) (*Router, error) {
	r := &Router{opt: opt, conns: limit.Connections{Max: maxConns, Share: connShare}, measured: make(chan struct{}, 1)}
	r.complaints.PerMinute, r.complaints.Now = maxComplaints, opt.Now
	r.mentions.PerMinute, r.mentions.Now = maxMentions, opt.Now
	r.table = forward.New(forward.Options{ID: opt.ID, Link: r.link, Now: opt.Now})
	r.usage.init(opt.Now)
	listeners := r.linkListeners()
	var err error
	r.uplink, err = uplink.New(uplink.Options{
		ID: opt.ID, Endpoints: opt.Controllers, Known: opt.Known, Pinned: opt.Pinned, Listed: opt.Listed, TLS: r.callController, Version: opt.Version,
		EdgeAddresses: opt.EdgeAddresses, LinkListeners: listeners, Handler: r, Now: opt.Now, Log: opt.Log,
	})
	if err != nil {
		return nil, err
	}
	r.links = link.New(link.Options{
		ID: opt.ID, Dial: link.TLSDial(r.callRouter), Roots: func() *pki.Roots { return pki.NewRoots(opt.Papers().CAs) },
		Verify:   r.uplink.VerifyRouter,
		Report:   func(links []message.Link, complete bool) { _ = r.uplink.ReportLinks(links, complete) },
		Fault:    func(f message.Fault) bool { return r.uplink.Fault(f) == nil },
		State:    func(m message.LinkState) { _ = r.uplink.LinkState(m) },
		Strands:  linkStrands,
		Measured: r.noteMeasured,
		Complain: r.mayComplain,
		Admitted: r.conns.Keep, Arrived: r.table.Packet, Listeners: listeners, Dialers: []link.Dialer{{Groups: r.linkGroups()}}, Now: opt.Now, Log: opt.Log,
	})
	r.door = edge.New(edge.Options{
		ID: opt.ID, Version: opt.Version, Controller: asker{r.uplink, opt.Log}, Table: r.table, Meter: r.usage.meter,
		Mentions: func(identityID string) bool { return r.mentions.Take(identityID) == 0 }, Now: opt.Now, Log: opt.Log,
	})
	r.exits = exit.New(exit.Options{
		ID: opt.ID, Table: r.table, Fault: r.uplink.FaultOf, Meter: r.usage.meter, Now: opt.Now,
	})
	return r, nil
}

// Status is how the connection to the controller stands that is connected the
// longest.
func (r *Router) Status() uplink.Status { return r.uplink.Status() }

// Controller is the connections to controllers.
func (r *Router) Controller() *uplink.Uplink { return r.uplink }

// Figures are what a router has and has done.
type Figures struct {
	Clients, Terminators, Circuits, Links int
	Sessions                              int // API sessions that it knows
	// Entered and Left are bytes that entered the network here, and left it.
	Entered, Left uint64
	Lost          uint64 // payloads that found no room on their way
}

// Figures are those of now.
func (r *Router) Figures() Figures {
	f := Figures{
		Terminators: len(r.door.Terminators()), Circuits: r.table.Len(), Links: len(r.links.All()), Sessions: r.uplink.Sessions().Len(),
	}
	f.Clients, _ = r.door.Count()
	f.Entered, f.Left = r.usage.totals()
	f.Lost = r.table.Lost()
	return f
}

// Run carries what there is to carry until ctx ends.
func (r *Router) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	parts.Go(func() { cancel(r.uplink.Run(ctx)) })
	parts.Go(func() { r.door.Run(ctx) })
	parts.Go(func() { r.links.Run(ctx) })
	parts.Go(func() { r.upkeep(ctx) })
	for _, at := range r.opt.Listeners {
		parts.Go(func() { cancel(r.accept(ctx, r.conns.Listener(at))) })
	}
	<-ctx.Done()
	for _, at := range r.opt.Listeners {
		_ = at.Close()
	}
	parts.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// Carried is how many circuits the router carries.
func (r *Router) Carried() int { return r.table.Len() }
