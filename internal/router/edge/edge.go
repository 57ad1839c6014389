// Package edge is where clients enter a router: they show who they are, host
// services and dial them, and what they send goes on from here. A client holds
// what is its own and nothing else: connections, listeners and circuits are
// looked up among those of the client that names them. It asks the controller
// through an interface, and must not import how that is reached.
package edge

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/router/forward"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// Bounds on what clients may hold and how long they may take.
const (
	helloTime     = 5 * time.Second
	admitTime     = 5 * time.Second // for the controller to tell of a new API session
	maxClients    = 20_000
	maxOfIdentity = 256    // clients of one identity
	maxConns      = 20_000 // of one identity
	maxOfDialer   = 10_000 // of them, to one that hosts from one that dials
	maxBinds      = 1_000  // of one client
	maxBindsOf    = 4_000  // of one identity
	maxPending    = 64     // requests of one identity that wait for the controller
	maxAskingOf   = 16     // of one identity's hosts that the controller is asked for
	maxReports    = 16     // of one identity's devices that do
	maxReport     = 256 << 10
	// What a client says goes on to the controller, which takes only so much in a
	// frame: the token of a session, and what else belongs to a dial or a host.
	maxToken    = 2 << 10
	maxSaid     = 32 << 10              // with a dial
	maxTold     = 4 << 10               // with a host
	maxChain    = 16                    // certificates of a client
	reportPause = 50 * time.Millisecond // between two of them
	// windows is how many bytes the connections of one identity may have on
	// their way, together: each has less, the more there are.
	windows     = 256 << 20
	leastWindow = 32 << 10
	// maxHeld is how much more the clients of one identity may have waiting for
	// them, or for others, together: messages that are longer than a window, and
	// what clients do not read that are ends of streams themselves.
	maxHeld    = 128 << 20
	maxSockets = 16 // of one client
	// maxSocketsOf is how many sockets one identity may have: they are not given up
	// for others, and there is an end to how many a router has.
	maxSocketsOf = 1024
	// maxFrame is how much a client may send at once. What is larger than most is
	// read for one client of an identity at a time, so that no identity has more
	// than this of the router's memory by it.
	maxFrame   = 64<<20 + 1<<10 // what seals it is not counted
	maxHeaders = 64 << 10
)

// Entrant is who wants to come in.
type Entrant struct {
	Token  string // of its API session, as it says
	Leaf   *x509.Certificate
	Remote string
	Local  string
	// Ended is called when the API session is over that it came in with.
	Ended func()
}

// Entry is an entrant that has shown that the API session is its own.
type Entry struct {
	IdentityID string
	// Renew says that it shows another token from now on, if that is of the API
	// session that it came in with.
	Renew func(ctx context.Context, token string) error
	// Leave says that it is gone.
	Leave func()
}

// Controller is what a router asks of its controllers for clients. An error that
// they answer with is for the client, with its code if it is a refusal.
type Controller interface {
	// Enter waits a while for the API session with the token, and lets in whose
	// certificate belongs to it. Nothing falls between: a session that ends after
	// that is told of.
	Enter(ctx context.Context, e Entrant) (Entry, error)
	Dial(ctx context.Context, m *message.CreateCircuit) (*message.CircuitCreated, error)
	Host(ctx context.Context, m *message.CreateTerminator) (*message.TerminatorCreated, error)
	Update(ctx context.Context, m *message.UpdateTerminator) error
	Health(m *message.HealthEvent)
	// Report says what a client reports of its device. It tries for as long as
	// it may.
	Report(ctx context.Context, apiToken string, body []byte) error
	// Remove says that terminators are gone; it is asked again if it fails.
	Remove(ctx context.Context, ids []string) error
	// Fault says that an end of a circuit is over, to the controller that the
	// circuit belongs to.
	Fault(owner string, m message.Fault)
}

// Options of a Door.
type Options struct {
	ID         string // of the router
	Version    string // as hellos have it
	Controller Controller
	Table      *forward.Table
	// Meter returns who counts what passes at an end of a circuit, in or out of
	// the network, and is told when it is done.
	Meter func(circuit string, hosts bool) (count func(in bool, bytes int), done func())
	// Mentions reports whether the log may tell once more that a client of an
	// identity has come or gone.
	Mentions func(identityID string) bool
	Now      func() time.Time
	Log      *slog.Logger
}

// Door is where clients enter.
type Door struct {
	Options
	hosts hosts

	mu         sync.Mutex
	clients    map[string]*client // by the id of their connection
	identities map[string]*identity
	sessions   map[string]map[*client]int // who has how much with a session, by the digest of its token
	shut       bool
}

// identity is what the clients of one share.
type identity struct {
	clients int // under Door.mu
	sockets atomic.Int64
	large   sync.Mutex // held while much is read at once
	conns   atomic.Int64
	binds   atomic.Int64
	held    atomic.Int64   // bytes, of maxHeld
	dialers map[string]int // connections to what it hosts, by who dialled; under Door.mu
	asking  int            // hosts that the controller is asked for; under hosts.mu
	pending atomic.Int64
	reports atomic.Int64 // that wait for the controller
	// reporting has an element while it is told of one.
	reporting chan struct{}
}

// window is how much a connection may have on its way that is made now.
func (i *identity) window() int {
	return max(leastWindow, windows/int(max(1, i.conns.Load())))
}

// take takes one more of something of which there are so many at most.
func take(of *atomic.Int64, most int64) bool {
	if of.Add(1) > most {
		of.Add(-1)
		return false
	}
	return true
}

// Take takes of what the clients of the identity may hold.
func (i *identity) Take(bytes int) bool {
	if i.held.Add(int64(bytes)) > maxHeld {
		i.Give(bytes)
		return false
	}
	return true
}

// Give gives it back.
func (i *identity) Give(bytes int) { i.held.Add(-int64(bytes)) }

// New returns a door that nobody has come through yet.
func New(opt Options) *Door {
	d := &Door{
		Options: opt,
		clients: map[string]*client{}, identities: map[string]*identity{}, sessions: map[string]map[*client]int{},
	}
	d.hosts.init(d)
	return d
}

// Run tells the controller who hosts what until ctx ends, and then closes the
// door.
func (d *Door) Run(ctx context.Context) {
	d.hosts.run(ctx)
	d.mu.Lock()
	d.shut = true
	all := slices.Collect(maps.Values(d.clients))
	d.mu.Unlock()
	for _, c := range all {
		c.ch.Close(errStops)
	}
}

// Serve lets a client in that has shown its certificate, or says why not. What
// becomes of the socket then is the caller's to decide.
func (d *Door) Serve(ctx context.Context, conn *tls.Conn) error {
	hello, err := channel.ReadHello(conn, d.Now().Add(helloTime))
	if err != nil {
		return fmt.Errorf("it said no hello: %w", err)
	}
	chain := conn.ConnectionState().PeerCertificates
	if len(chain) == 0 {
		return errors.New("it shows no certificate")
	}
	// Clients that know no secrets ask for several sockets too. Whoever knew the
	// name of their group could join it: they get one.
	if several(hello) {
		if joined, err := d.join(conn, hello, chain[0]); joined || err != nil {
			return err
		}
	}
	return d.enter(ctx, conn, hello, chain)
}

// enter lets a client in that was not here. Clients take the answer to their
// hello for granted: one that may not come in is cut off after it.
func (d *Door) enter(ctx context.Context, conn net.Conn, hello *channel.Hello, chain []*x509.Certificate) error {
	token := hello.Headers.Text(message.HeaderClientToken)
	if token == "" {
		return errors.New("it shows no token of an API session")
	}
	c := d.newClient(token, chain, hello)
	if err := hello.Welcome(conn, d.Now().Add(helloTime), d.welcome(c, hello)); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, admitTime)
	defer cancel()
	entry, err := d.Controller.Enter(within, Entrant{
		Token: token, Leaf: chain[0], Remote: conn.RemoteAddr().String(), Local: conn.LocalAddr().String(),
		Ended: func() { c.ch.Close(errSessionOver) },
	})
	if err != nil {
		return err
	}
	c.entry = entry
	if err := d.add(c); err != nil {
		entry.Leave()
		return err
	}
	own, err := c.place(conn)
	if err != nil {
		c.ch.Close(err)
		return err
	}
	c.log = d.Log.With("identity", entry.IdentityID, "address", conn.RemoteAddr().String())
	c.mention("a client is here")
	c.ch.Attach(own)
	return nil
}

// welcome is the answer to a hello. A client that wants several sockets gets
// them, if it can show of a further one that it is its own.
func (d *Door) welcome(c *client, hello *channel.Hello) wire.Headers {
	h := wire.Headers{}
	h.SetText(message.HeaderConnectionID, c.ch.ID)
	h.SetText(message.HeaderVersion, d.Version)
	h.SetText(message.HeaderListenerID, d.ID)
	h.SetBool(message.HeaderTellsBound, true)
	h.SetBool(message.HeaderTakesPosture, true)
	h.SetBool(message.HeaderBothEnds, true)
	if several(hello) {
		h.SetBool(message.HeaderGrouped, true)
		h.SetText(message.HeaderChannelType, hello.Headers.Text(message.HeaderChannelType))
		h[message.HeaderGroupSecret] = c.secret
	}
	return h
}

// several reports whether a client wants several sockets, or this is a further
// one.
func several(hello *channel.Hello) bool {
	return hello.Grouped() && (hello.Headers.Bool(message.HeaderGroupFirst) || len(hello.Secret()) > 0)
}

// controlSocket is the type of a client's socket that carries only requests.
const controlSocket = "edge.control"

// join adds a further socket to a client that is here. It must know the secret
// and show the same certificate. A first socket joins nobody.
func (d *Door) join(conn net.Conn, hello *channel.Hello, leaf *x509.Certificate) (bool, error) {
	d.mu.Lock()
	c := d.clients[hello.ConnectionID()]
	d.mu.Unlock()
	switch {
	case c == nil && hello.First():
		return false, nil
	case c == nil:
		return false, errors.New("it belongs to a client that is not here")
	case subtle.ConstantTimeCompare(c.secret, hello.Secret()) != 1 || !c.leaf.Equal(leaf):
		return false, errors.New("it says that it belongs to a client, and cannot show it")
	}
	own, err := c.place(conn)
	if err != nil {
		return false, err
	}
	if err := hello.Welcome(own, d.Now().Add(helloTime), d.welcome(c, hello)); err != nil {
		_ = own.Close()
		return false, err
	}
	if hello.Headers.Text(message.HeaderChannelType) == controlSocket {
		c.ch.AttachReader(own)
	} else {
		c.ch.Attach(own)
	}
	return true, nil
}

// Why a client is cut off that did not want to go.
var (
	errSessionOver = errors.New("its API session is over")
	errStops       = errors.New("the router stops")
)

// add takes a client in, unless there are too many.
func (d *Door) add(c *client) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.shut:
		return errors.New("the router stops")
	case c.ch.Err() != nil:
		return c.ch.Err()
	case len(d.clients) >= maxClients:
		return fmt.Errorf("there are %d clients already", maxClients)
	}
	of := d.identities[c.entry.IdentityID]
	if of == nil {
		of = &identity{reporting: make(chan struct{}, 1)}
		d.identities[c.entry.IdentityID] = of
	}
	if of.clients >= maxOfIdentity {
		return fmt.Errorf("its identity has %d clients here already", maxOfIdentity)
	}
	of.clients++
	c.of = of
	d.clients[c.ch.ID] = c
	return nil
}

// remove forgets a client.
func (d *Door) remove(c *client) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.clients[c.ch.ID] != c {
		return false
	}
	delete(d.clients, c.ch.ID)
	if c.of.clients--; c.of.clients == 0 {
		delete(d.identities, c.entry.IdentityID)
	}
	return true
}

// share takes note that somebody has one more, or one less, of the connections
// to what an identity hosts. It reports false if that would be too many: one who
// takes all it can get leaves some to others.
func (d *Door) share(of *identity, dialer string, more int) bool {
	if dialer == "" {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if more > 0 && of.dialers[dialer] >= maxOfDialer {
		return false
	}
	if of.dialers == nil {
		of.dialers = map[string]int{}
	}
	if of.dialers[dialer] += more; of.dialers[dialer] == 0 {
		delete(of.dialers, dialer)
	}
	return true
}

// uses takes note that a client has one more, or one less, with a session.
func (d *Door) uses(c *client, digest string, more int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	who := d.sessions[digest]
	if who == nil {
		who = map[*client]int{}
		d.sessions[digest] = who
	}
	if who[c] += more; who[c] == 0 {
		delete(who, c)
	}
	if len(who) == 0 {
		delete(d.sessions, digest)
	}
}

// EndSession ends what was made with a session to dial or host, of whose token
// the digest is known.
func (d *Door) EndSession(digest string) {
	d.mu.Lock()
	concerned := slices.Collect(maps.Keys(d.sessions[digest]))
	d.mu.Unlock()
	for _, c := range concerned {
		c.endSession(digest)
	}
}

// Count is how many clients and connections of theirs there are.
func (d *Door) Count() (clients, conns int) {
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.clients))
	d.mu.Unlock()
	for _, c := range all {
		conns += c.count()
	}
	return len(all), conns
}
