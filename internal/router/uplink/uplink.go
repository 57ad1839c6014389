// Package uplink is a router's connection to its controller: it is made again
// whenever it is lost, hands what the controller asks for to the rest of the
// router, and asks the controller in the name of clients. It owns what the
// controller tells of API sessions and what it is told of connected clients.
// It must not import any other part of a router: they use it, or are its
// Handler.
package uplink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
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
	ID        string
	Endpoints []string // of the controller, such as tls:host:6262; tried in turn
	// TLS is asked for at every connect: certificates are renewed.
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

// Handler does what a controller asks of a router.
//
// Route, Validate and Inspect are each called in a goroutine of their own, and
// may wait. Everything else is called where frames are read, in the order in
// which they came, and must not wait; it may ask or tell the controller
// anything that needs no answer. Of one circuit, routes and unroutes follow each
// other: an unroute ends the context of a route that is still at work, and is
// called when that has returned.
type Handler interface {
	// Route makes a router's part of a circuit. What it returns is for the
	// other end. An error that is a *message.RouteFailure says what kind it is.
	Route(ctx context.Context, m *message.Route) (peerData map[uint32][]byte, err error)
	Unroute(m *message.Unroute)
	// Validate says which terminators there are, by id. The markers of the
	// answer are filled in.
	Validate(ctx context.Context, m *message.ValidateTerminators) map[string]message.TerminatorState
	Peers(m *message.PeerStates)
	// LinkFault is told of a link that the controller wants closed.
	LinkFault(m *message.Fault)
	// SessionsRemoved is told of sessions to dial or host that are over, by the
	// digests of their tokens (message.Digest).
	SessionsRemoved(digests []string)
	// Inspect says what is known under the names, most often as JSON.
	Inspect(ctx context.Context, names []string) map[string]string
	// Connected is called when the controller has said hello: it is the time to
	// tell of links, and to host again. Disconnected is called after it, once,
	// when the connection is over. Both come from Run.
	Connected()
	Disconnected()
}

// ErrAway says that there is no controller to ask at present.
var ErrAway error = message.Busy("the controller is away at present; the router goes on trying to reach it")

// Uplink is a router's connection to its controller. All methods may be called
// at any time.
type Uplink struct {
	opt      Options
	edge     []message.Address
	sessions *Sessions
	clients  *clients
	lanes    lanes
	work     chan struct{} // questions of the controller that are worked on
	asks     chan struct{} // questions to the controller that wait

	mu      sync.Mutex
	ch      *channel.Channel
	status  Status
	renewal chan *message.Certificates // who waits for new ones, if anybody
	trusted string                     // whom the controller says to trust, as PEM
	peer    []*x509.Certificate        // what the controller shows
}

// Status is how the connection stands.
type Status struct {
	Connected bool
	Since     time.Time // when it came to be so
	Address   string    // of the controller that it is, or was last
	// ControllerID is who the controller says it is.
	ControllerID string
	// Problem is why there is no connection, in words.
	Problem string
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
		opt: opt, sessions: newSessions(opt.Log), clients: newClients(),
		work: make(chan struct{}, maxWork), asks: make(chan struct{}, maxAsks),
		status: Status{Since: opt.Now(), Problem: "it has not been tried yet"},
	}
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
	return u, nil
}

// Authorities are whom the controller says to trust, as PEM, and the certificates
// that it shows itself; empty if it has not said.
func (u *Uplink) Authorities() (trusted string, shown []*x509.Certificate) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.trusted, u.peer
}

// onAuthorities hears whom to trust.
func (u *Uplink) onAuthorities(m *message.Certificates) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.trusted = m.CAs
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

// Sessions are the API sessions that the controller has told of.
func (u *Uplink) Sessions() *Sessions { return u.sessions }

// Status is how the connection stands.
func (u *Uplink) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.status
}

// Times between attempts to connect. The first comes soon: most often a
// controller has only been restarted. Each is shorter by chance, up to the
// half, so that not all routers of a network come at once.
const (
	firstPause  = 500 * time.Millisecond
	longPause   = 15 * time.Second
	connectWait = 10 * time.Second
	// settled is how long a connection lasts that counts as one that works, and
	// manyTorn how many in a row that did not are no accident.
	settled  = 20 * time.Second
	manyTorn = 3
)

// errTorn says why connections may end that the controller has just welcomed.
var errTorn = errors.New("the controller welcomes this router and then ends the connection, again and again: " +
	"another one may run with a copy of its directory, and they take each other's place; stop one, and enroll a router of its own there")

// errNoWord is how OpenZiti's controllers turn routers away.
var errNoWord = errors.New("the controller ends the connection without saying why: it may not know this router, or not any more; " +
	"look for it there, and enroll it again if it is gone")

// Run connects to the controller, again and again, until ctx ends.
func (u *Uplink) Run(ctx context.Context) error {
	pause, torn := firstPause, 0
	for attempt := 0; ; attempt++ {
		began := u.opt.Now()
		welcome, err := u.once(ctx, u.opt.Endpoints[attempt%len(u.opt.Endpoints)])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch lasted := u.opt.Now().Sub(began) > settled; {
		case lasted:
			pause, torn = firstPause, 0
		case welcome:
			if torn++; torn < manyTorn {
				pause = firstPause // the controller was there
			}
		}
		if torn >= manyTorn {
			err = fmt.Errorf("%w (%w)", errTorn, err)
		}
		u.note(err)
		wait := pause/2 + rand.N(pause/2)
		if (attempt+1)%len(u.opt.Endpoints) == 0 {
			pause = min(2*pause, longPause)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// note takes down why there is no connection. The same reason is logged once.
func (u *Uplink) note(err error) {
	problem := plain(err)
	u.mu.Lock()
	fresh := u.status.Problem != problem
	u.status.Problem = problem
	at := u.status.Address
	u.mu.Unlock()
	if fresh {
		u.opt.Log.Warn("there is no connection to the controller; it is tried again", "address", at, "reason", problem)
	}
}

// once connects, and returns whether it was welcome and why that is over.
func (u *Uplink) once(ctx context.Context, endpoint string) (welcome bool, err error) {
	u.mu.Lock()
	u.status.Address = endpoint
	u.mu.Unlock()
	conn, said, err := u.greet(ctx, endpoint)
	if err != nil {
		return false, err
	}
	ch := channel.New(said.Text(message.HeaderConnectionID), channel.Options{Handle: u.hear, Takes: takes, Now: u.opt.Now})
	u.mu.Lock()
	u.ch = ch
	u.status = Status{Connected: true, Since: u.opt.Now(), Address: endpoint, ControllerID: said.Text(message.HeaderListenerID)}
	u.mu.Unlock()
	u.opt.Log.Info("connected to the controller", "address", endpoint, "controller", said.Text(message.HeaderListenerID))
	stop := context.AfterFunc(ctx, func() { ch.Close(nil) })
	defer stop()
	ch.Attach(conn)
	u.opt.Handler.Connected()
	u.keep(ch)
	u.mu.Lock()
	u.ch = nil
	u.status.Connected, u.status.Since = false, u.opt.Now()
	u.mu.Unlock()
	u.sessions.abandon()
	u.opt.Handler.Disconnected()
	return true, ch.Err()
}

// greet dials the controller and says hello.
func (u *Uplink) greet(ctx context.Context, endpoint string) (net.Conn, wire.Headers, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	at, err := parseAddress(endpoint)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := u.opt.TLS()
	if err != nil {
		return nil, nil, err
	}
	cfg = cfg.Clone()
	cfg.NextProtos = []string{message.ALPN}
	if cfg.ServerName == "" {
		cfg.ServerName = at.Hostname
	}
	conn, err := (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", strings.TrimPrefix(endpoint, "tls:"))
	if err != nil {
		return nil, nil, err
	}
	u.mu.Lock()
	u.peer, u.trusted = conn.(*tls.Conn).ConnectionState().PeerCertificates, ""
	u.mu.Unlock()
	welcome, err := channel.Greet(conn, u.opt.Now().Add(connectWait), u.hello())
	if errors.Is(err, io.EOF) {
		err = errNoWord
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, welcome, nil
}

// hello is what the router says first.
func (u *Uplink) hello() channel.Hello {
	h := wire.Headers{}
	h.SetText(message.HeaderVersion, u.opt.Version)
	h.SetBool(message.HeaderAuthorities, true)
	h[message.HeaderOldMetadata] = message.Marshal(&message.RouterMetadata{Capabilities: []message.RouterAbility{message.MakesLinks}})
	if len(u.opt.LinkListeners) > 0 {
		h[message.HeaderOldListeners] = message.Marshal(&message.Listeners{Listeners: u.opt.LinkListeners})
	}
	return channel.Hello{ID: u.opt.ID, Headers: h}
}

// plain is an error of connecting in words for whoever runs the router.
func plain(err error) string {
	var unknown *tls.CertificateVerificationError
	var dated x509.CertificateInvalidError
	var refused *channel.Refused
	switch {
	case errors.As(err, &dated) && dated.Reason == x509.Expired:
		return fmt.Sprintf("by the clock of this machine the controller's certificate has expired or is not valid yet (%s): set the clock, or renew that certificate", dated.Detail)
	case errors.As(err, &refused):
		return refused.Words
	case errors.Is(err, errNoWord):
		return errNoWord.Error()
	case errors.As(err, &unknown):
		return fmt.Sprintf("the controller's certificate is not to be trusted (%v): it is another controller, or was set up anew; enroll the router again with --force if that is right", unknown.Err)
	case errors.Is(err, channel.ErrClosed):
		return "the connection was closed from here"
	}
	return err.Error()
}

// channel returns the connection that there is.
func (u *Uplink) channel() (*channel.Channel, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ch == nil {
		return nil, ErrAway
	}
	return u.ch, nil
}
