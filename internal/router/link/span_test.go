package link

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// network is some routers and what a controller knows of them. Its sockets are
// in memory, so that a test can have hours pass.
type network struct {
	t  testing.TB
	ks *pki.Keystore

	mu     sync.Mutex
	nodes  map[string]*node // by address
	owners map[string]string
	dials  []dialled
	rate   int // bytes that a socket takes in a second; any if 0
}

// slow is a socket that takes its time.
type slow struct {
	net.Conn
	rate int
}

func (s slow) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(len(p)) * time.Second / time.Duration(s.rate))
	return s.Conn.Write(p)
}

type dialled struct {
	from, address string
	at            time.Time
}

// pass has time go by, and everything happen that it brings.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// node is one router.
type node struct {
	*Links
	id     string
	net    *network
	cert   tls.Certificate
	at     message.Listener
	cancel context.CancelFunc
	done   chan struct{}

	mu        sync.Mutex
	connected bool // to the controller
	down      bool // nobody reaches it
	reports   []report
	faults    []message.Fault
	said      []any // of both, in their order
	arrived   []arrival
	forward   func(linkID string, p *wire.Packet)
}

type report struct {
	links    []message.Link
	complete bool
}

type arrival struct {
	linkID string
	packet *wire.Packet
}

func newNetwork(t testing.TB) *network {
	ks, err := pki.Open(t.TempDir(), pki.Options{Now: time.Now, Algorithm: pki.P256})
	if err != nil {
		t.Fatal(err)
	}
	// Two ends in memory that close at once each wait some seconds for the other to read
	// that: where the clock is simulated it passes all of them, after the routers have stopped.
	if time.Now().Year() == 2000 {
		t.Cleanup(func() { pass(time.Minute) })
	}
	return &network{t: t, ks: ks, nodes: map[string]*node{}, owners: map[string]string{}}
}

// certificate is one of the network, by its name.
func (n *network) certificate(name string) tls.Certificate {
	n.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		n.t.Fatal(err)
	}
	grant, err := pki.RouterGrant(name, pki.Names{DNS: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, 100*24*time.Hour)
	if err != nil {
		n.t.Fatal(err)
	}
	chain, err := n.ks.Signer().Sign(grant, key.Public())
	if err != nil {
		n.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{chain[0].Raw, chain[1].Raw}, PrivateKey: key, Leaf: chain[0]}
}

func fingerprintOf(cert tls.Certificate) string { return pki.Fingerprint(cert.Leaf) }

// node adds a router that listens at its name, on an interface if one is named.
func (n *network) node(id, binding string) *node {
	n.t.Helper()
	d := &node{
		id: id, net: n, cert: n.certificate(id), connected: true, done: make(chan struct{}),
		at: message.Listener{Address: "tls:" + id + ":1", Protocol: "tls", Groups: []string{DefaultGroup}, LocalBinding: binding},
	}
	d.Links = New(Options{
		ID: id, Dial: d.dial, Roots: func() *pki.Roots { return pki.NewRoots(n.ks.TrustBundle()) }, Verify: d.verify, Report: d.report, Fault: d.fault,
		Arrived: d.arrive, Listeners: []message.Listener{d.at}, Dialers: []Dialer{{Groups: []string{DefaultGroup}}}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	n.mu.Lock()
	n.nodes[d.at.Address] = d
	n.owners[fingerprintOf(d.cert)] = id
	n.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	go func() {
		d.Run(ctx)
		close(d.done)
	}()
	n.t.Cleanup(d.stop)
	return d
}

func (d *node) stop() {
	d.cancel()
	<-d.done
}

func (d *node) serverConfig() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{d.cert}, ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{message.LinkALPN},
		SessionTicketsDisabled: true, // a socket in memory holds nothing that nobody reads
	}
}

func clientConfig(cert tls.Certificate, roots *x509.CertPool) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots, NextProtos: []string{message.LinkALPN}}
}

func (n *network) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range n.ks.TrustBundle() {
		pool.AddCert(c)
	}
	return pool
}

// dial connects in memory.
func (d *node) dial(ctx context.Context, address, _ string) (net.Conn, error) {
	d.net.mu.Lock()
	to := d.net.nodes[address]
	d.net.dials = append(d.net.dials, dialled{d.id, address, time.Now()})
	d.net.mu.Unlock()
	if to == nil || to.isDown() {
		return nil, errors.New("nobody is there")
	}
	return d.net.socket(ctx, to, d.cert)
}

// socket is one to a router, with a certificate.
func (n *network) socket(ctx context.Context, to *node, cert tls.Certificate) (*tls.Conn, error) {
	here, there := net.Pipe()
	if n.rate > 0 {
		here, there = slow{here, n.rate}, slow{there, n.rate}
	}
	go to.Serve(context.Background(), tls.Server(there, to.serverConfig()), to.at)
	config := clientConfig(cert, n.pool())
	config.ServerName = "localhost"
	conn := tls.Client(here, config)
	return conn, conn.HandshakeContext(ctx)
}

func (d *node) isDown() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.down
}

func (d *node) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *node) verify(_ context.Context, routerID, fingerprint string) error {
	d.net.mu.Lock()
	defer d.net.mu.Unlock()
	if d.net.owners[fingerprint] != routerID {
		return errors.New("the certificate is not that router's")
	}
	return nil
}

func (d *node) report(links []message.Link, complete bool) {
	d.set(func() {
		if d.connected {
			d.reports = append(d.reports, report{links, complete})
			d.said = append(d.said, report{links, complete})
		}
	})
}

func (d *node) fault(f message.Fault) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.connected {
		d.faults = append(d.faults, f)
		d.said = append(d.said, f)
	}
	return d.connected
}

func (d *node) arrive(linkID string, p *wire.Packet) {
	d.mu.Lock()
	forward := d.forward
	if forward == nil {
		d.arrived = append(d.arrived, arrival{linkID, p})
	}
	d.mu.Unlock()
	if forward != nil {
		forward(linkID, p)
	}
}

// state is what a controller says of a router.
func (d *node) state() message.PeerState {
	return message.PeerState{ID: d.id, Version: "v1.6.20", Listeners: []message.Listener{d.at}}
}

// meets tells a router of others.
func (d *node) meets(others ...*node) {
	m := &message.PeerStates{}
	for _, o := range others {
		m.Changes = append(m.Changes, o.state())
	}
	d.Peers(m)
}

// ids are those of its links.
func (d *node) ids() (ids []string) {
	for _, k := range d.All() {
		ids = append(ids, k.ID())
	}
	return ids
}

// only is the one link that the router has.
func (d *node) only() *Link {
	d.net.t.Helper()
	all := d.All()
	if len(all) != 1 {
		d.net.t.Fatalf("%s has the links %v, not one", d.id, d.ids())
	}
	return all[0]
}

// payload is a packet of a circuit.
func payload(circuit, body string) *wire.Packet {
	return &wire.Packet{Type: message.TypePayload, Block: wire.Block{}.Text(message.HeaderStreamCircuit, circuit), Body: []byte(body)}
}

// bodies are what arrived at a router over a link.
func (d *node) bodies(linkID string) (bodies []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.arrived {
		if a.linkID == linkID {
			bodies = append(bodies, string(a.packet.Body))
		}
	}
	return bodies
}

// told are the links that the controller was told of, as id and iteration.
func (d *node) told() (told []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.reports {
		for _, k := range r.links {
			told = append(told, fmt.Sprintf("%s %d", k.ID, k.Iteration))
		}
	}
	return told
}

func (d *node) faulted() []message.Fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.faults)
}

// pending is how many sockets are no links yet: those of which the hello is
// awaited, and halves of links.
func (d *node) pending() (sockets, halves int) {
	d.Links.mu.RLock()
	defer d.Links.mu.RUnlock()
	return d.gate.all, len(d.halves)
}

// known is how many peers the router has reasons to dial.
func (d *node) known() int {
	d.Links.mu.RLock()
	defer d.Links.mu.RUnlock()
	return len(d.peers)
}
