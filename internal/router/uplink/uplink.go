// Package uplink is a router's connections to its controllers: one to each, made
// again whenever it is lost. It hands what they ask for to the rest of the
// router, and asks whichever is quickest in the name of clients. It owns what
// controllers tell of each other and of API sessions, and what they are told of
// connected clients. It must not import any other part of a router: they use it,
// or are its Handler.
package uplink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// Release is the one whose words others take ours for. Routers of this release
// answer links without a group of sockets, as ours do; an earlier one would be
// dialled with two sockets that belong together.
const Release = "v1.6.20"

// Version is what a router of our own build says that it is.
func Version(version, revision, built string) string {
	return strings.Join([]string{Release, message.OwnRevision + version + "/" + revision, built, runtime.GOOS, runtime.GOARCH}, "|")
}

// Options of an Uplink.
type Options struct {
	ID string
	// Endpoints are where controllers are, such as tls:host:6262: where the
	// router begins, unless it knows better.
	Endpoints []string
	// Known are the controllers that the router was told of before. Endpoints are
	// tried beside them if none of them can be reached.
	Known []Controller
	// Pinned says that Endpoints stay, whatever the router is told: it is part of
	// the program that is reached there.
	Pinned bool
	// Listed, if set, is told of the controllers that there are whenever they
	// change. It may wait.
	Listed func([]Controller)
	// TLS is asked for at every connect: certificates are renewed. A server name in
	// it is that of Endpoints.
	TLS func() (*tls.Config, error)
	// Version is five fields with bars between them: release, revision, date,
	// system, architecture.
	Version string
	// LinkListeners are where other routers reach this one, EdgeAddresses where
	// clients do, such as tls:host:3022.
	LinkListeners []message.Listener
	EdgeAddresses []string
	Handler       Handler
	Now           func() time.Time
	Log           *slog.Logger
}

// Handler does what controllers ask of a router. Where who asks matters, from is
// the controller's id.
//
// Route, Validate and Inspect are each called in a goroutine of their own, and
// may wait. Everything else is called where frames are read, in the order in
// which they came from one controller, and must not wait; it may ask or tell
// controllers anything that needs no answer. Of one circuit, routes and unroutes
// follow each other: an unroute ends the context of a route that is still at
// work, and is called when that has returned.
type Handler interface {
	// Route makes a router's part of a circuit. What it returns is for the
	// other end. An error that is a *message.RouteFailure says what kind it is.
	Route(ctx context.Context, from string, m *message.Route) (peerData map[uint32][]byte, err error)
	Unroute(m *message.Unroute)
	// Validate says which terminators there are, by id. The markers of the
	// answer are filled in.
	Validate(ctx context.Context, m *message.ValidateTerminators) map[string]message.TerminatorState
	Peers(m *message.PeerStates)
	// LinkFault is told of a link that a controller wants closed.
	LinkFault(m *message.Fault)
	// SessionsRemoved is told of sessions to dial or host that are over, by the
	// digests of their tokens (message.Digest).
	SessionsRemoved(digests []string)
	// Inspect says what is known under the names, most often as JSON.
	Inspect(ctx context.Context, names []string) map[string]string
	// Connected is called when a controller has said hello: it is the time to
	// tell of links, and to host again. Disconnected is called after it, once,
	// when the connection is over.
	Connected()
	Disconnected()
}

// ErrAway says that there is no controller to ask at present.
var ErrAway error = message.Busy("the controller is away at present; the router goes on trying to reach it")

// Uplink is a router's connections to its controllers. All methods may be called
// at any time.
type Uplink struct {
	opt      Options
	edge     []message.Address
	sessions *Sessions
	clients  *clients
	owed     owed
	lanes    lanes
	work     chan struct{} // questions of controllers that are worked on
	asks     chan struct{} // questions to controllers that wait
	finding  chan struct{} // API sessions that controllers are asked for
	listed   chan struct{} // has an element when the list of controllers has changed
	parts    sync.WaitGroup

	mu       sync.Mutex
	running  context.Context // that of Run; nil before
	seats    []*seat
	index    *uint64                    // of the list that the seats follow; nil if there was none
	alone    time.Time                  // since when no controller is connected, if none is
	renewal  chan *message.Certificates // who waits for new ones, if anybody
	renewing *line                      // the controller that has issued them
}

// Status is how the connection to a controller stands.
type Status struct {
	Connected bool
	Since     time.Time // when it came to be so
	Address   string    // of the controller that it is, or was last
	// ControllerID is who the controller says it is.
	ControllerID string
	// Problem is why there is no connection, in words.
	Problem string
	// Responsive is whether it has given its last sign of life in time, and
	// Latency how long those are on their way; 0 if there was none.
	Responsive bool
	Latency    time.Duration
	// Certificate is the one that the controller let the router in with.
	Certificate *x509.Certificate
}

// Bounds of what goes on at once. A controller makes circuits by the hundred;
// whoever asks for more is told to come back.
const (
	maxWork = 256
	maxAsks = 4096
)

// takes is what controllers take. Whoever sends more loses the connection, and
// with it what the router does for all of its clients.
var takes = wire.Bounds{Headers: channel.MaxHeaders, Body: channel.MaxBody}

// New returns an uplink that is not connected.
func New(opt Options) (*Uplink, error) {
	u := &Uplink{
		opt: opt, sessions: newSessions(opt.Now, opt.Log), clients: newClients(),
		work: make(chan struct{}, maxWork), asks: make(chan struct{}, maxAsks), finding: make(chan struct{}, maxFinding),
		listed: make(chan struct{}, 1), alone: opt.Now(),
	}
	u.sessions.ask = u.findAPISession
	if len(opt.Endpoints) == 0 {
		return nil, errors.New("uplink: there is no address of a controller")
	}
	for _, at := range opt.Endpoints {
		if _, err := parseAddress(at); err != nil {
			return nil, fmt.Errorf("uplink: the controller's address: %w", err)
		}
	}
	for _, at := range opt.EdgeAddresses {
		a, err := parseAddress(at)
		if err != nil {
			return nil, fmt.Errorf("uplink: the address for clients: %w", err)
		}
		u.edge = append(u.edge, a)
	}
	known := Checked(opt.Known)
	for _, c := range known {
		u.seats = append(u.seats, u.newSeat(c))
	}
	if len(known) == 0 || opt.Pinned {
		u.beginAnew()
	}
	return u, nil
}

// beginAnew has the addresses tried that the router began with, beside those
// that it was told of. u.mu is held, or nobody else knows of u.
func (u *Uplink) beginAnew() {
	for _, c := range byAddress(u.opt.Endpoints) {
		if u.at(c.Addresses[0]) {
			continue
		}
		s := u.newSeat(c)
		if u.opt.Pinned {
			s.pinned = c.Addresses[0]
		}
		u.seats = append(u.seats, s)
	}
}

// at reports whether there is a seat with an address.
func (u *Uplink) at(address string) bool {
	return slices.ContainsFunc(u.seats, func(s *seat) bool { return slices.Contains(s.addresses, address) })
}

// Authorities are whom a controller says to trust, as PEM, and the certificates
// that it shows itself; empty if it has not said. It is always the one that is
// connected the longest: two may not agree for a moment.
func (u *Uplink) Authorities() (trusted string, shown []*x509.Certificate) {
	l := u.oldest()
	if l == nil {
		return "", nil
	}
	if told := l.trusted.Load(); told != nil {
		trusted = *told
	}
	return trusted, l.shown
}

// parseAddress reads an address such as tls:host:6262.
func parseAddress(text string) (message.Address, error) {
	protocol, rest, _ := strings.Cut(text, ":")
	host, port, err := net.SplitHostPort(rest)
	number, perr := net.LookupPort("tcp", port)
	if err != nil || perr != nil || protocol != "tls" || host == "" || number < 1 {
		return message.Address{}, fmt.Errorf("%q is not of the form tls:host:port", text)
	}
	return message.Address{Value: text, Protocol: protocol, Hostname: host, Port: int32(number)}, nil
}

// Sessions are the API sessions that controllers have told of.
func (u *Uplink) Sessions() *Sessions { return u.sessions }

// Status is how the connection stands to the controller that is connected the
// longest; if none is, how that to one of them does.
func (u *Uplink) Status() Status {
	all := u.Statuses()
	best := all[0]
	for _, s := range all[1:] {
		if s.Connected && (!best.Connected || s.Since.Before(best.Since)) {
			best = s
		}
	}
	return best
}

// Statuses is how the connection to each controller stands.
func (u *Uplink) Statuses() (all []Status) {
	now := u.opt.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, s := range u.seats {
		st := Status{Since: s.since, Address: s.at, ControllerID: s.id, Problem: s.problem}
		if l := s.line; l != nil {
			st.Connected, st.Certificate, st.Latency, st.Responsive = true, l.own, time.Duration(l.took.Load()), l.responsive(now)
		}
		all = append(all, st)
	}
	return all
}

// Times after which the router looks back.
const (
	lookTime = 5 * time.Second
	// aloneTime is how long none of the controllers that the router was told of
	// can be reached before those that it began with are tried too.
	aloneTime = 30 * time.Second
)

// Run connects to the controllers, again and again, until ctx ends.
func (u *Uplink) Run(ctx context.Context) error {
	u.mu.Lock()
	u.running, u.alone = ctx, u.opt.Now()
	for _, s := range u.seats {
		s.start(ctx)
	}
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		u.running = nil // nobody is dialled any more
		u.mu.Unlock()
		u.parts.Wait()
	}()
	look := time.NewTicker(lookTime)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			u.lookBack()
		case <-u.listed:
			if list, told := u.List(); told && u.opt.Listed != nil {
				u.opt.Listed(list)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lookBack tries the addresses that the router began with if it has been alone
// for too long.
func (u *Uplink) lookBack() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.lines()) == 0 && u.opt.Now().Sub(u.alone) >= aloneTime {
		u.beginAnew()
	}
}
