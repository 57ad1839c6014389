// Package networktest is a whole network for tests, in one process: a real
// controller, routers of our own, and identities that have enrolled. All of it
// talks TLS over loopback.
package networktest

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/router/node"
	"netkeep.internal/internal/tool/layout"
	"netkeep.internal/test/journal"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/servertest"
)

// M is a JSON object.
type M = servertest.M

// Management is where the Management API is.
const Management = "/edge/management/v1/"

// Soon is how long anything may take that should happen at once, on a machine
// that has other things to do.
const Soon = time.Minute

// Network is one of several on a controller: what it has is marked by a word of
// its own, so that none sees another's.
type Network struct {
	T      testing.TB
	Server *servertest.Server
	Admin  *servertest.Client
	Word   string
	dir    string
}

// New returns a network of nothing yet, whose routers all its identities may
// use for all its services.
func New(t testing.TB, s *servertest.Server) *Network {
	t.Helper()
	n := &Network{T: t, Server: s, Admin: s.Admin(t), Word: servertest.Unique("net"), dir: t.TempDir()}
	all := []string{"#" + n.Word}
	n.create("edge-router-policies", M{"name": n.Word, "semantic": "AnyOf", "identityRoles": all, "edgeRouterRoles": all})
	n.create("service-edge-router-policies", M{"name": n.Word, "semantic": "AnyOf", "serviceRoles": all, "edgeRouterRoles": all})
	return n
}

func (n *Network) create(kind string, body M) string {
	n.T.Helper()
	return n.Admin.Post(Management+kind, body).Want(201).ID()
}

// Eventually waits until something is so.
func (n *Network) Eventually(what string, so func() bool) {
	n.T.Helper()
	servertest.Eventually(n.T, Soon, what, so)
}

// Identity is one that has enrolled.
type Identity struct {
	ID, Name, File string
}

// AddIdentity makes an identity and enrolls it. It has further words besides
// the network's own.
func (n *Network) AddIdentity(name string, words ...string) Identity {
	n.T.Helper()
	i := Identity{Name: n.Word + "-" + name, File: filepath.Join(n.dir, name+".json")}
	i.ID = n.create("identities", M{"name": i.Name, "type": "Device", "isAdmin": false, "roleAttributes": append(words, n.Word), "enrollment": M{"ott": true}})
	jwt := n.Admin.Get(Management + "identities/" + i.ID).Want(200).At("data.enrollment.ott.jwt").(string)
	_, _, err := enroll.Enroll(n.T.Context(), n.read(jwt), enroll.Request{Output: i.File, Algorithm: "ec", Now: time.Now})
	n.must(err)
	return i
}

func (n *Network) read(jwt string) *enroll.Invitation {
	n.T.Helper()
	inv, err := enroll.Read(jwt)
	n.must(err)
	return inv
}

func (n *Network) must(err error) {
	n.T.Helper()
	if err != nil {
		n.T.Fatal(err)
	}
}

// AddService makes a service that everybody of the network may dial and host,
// and returns its name.
func (n *Network) AddService(name string, encrypted bool) string {
	n.T.Helper()
	full := n.Word + "-" + name
	id := n.create("services", M{"name": full, "encryptionRequired": encrypted, "roleAttributes": []string{n.Word}})
	for _, typ := range []string{"Dial", "Bind"} {
		n.create("service-policies", M{"name": full + typ, "type": typ, "semantic": "AnyOf", "identityRoles": []string{"#" + n.Word}, "serviceRoles": []string{"@" + id}})
	}
	return full
}

// Client opens a client of an identity, until the test ends.
func (n *Network) Client(i Identity, change ...func(*sdk.Options)) *sdk.Client {
	n.T.Helper()
	opt := sdk.Options{Identity: i.File, Now: time.Now, Poll: 200 * time.Millisecond}
	for _, f := range change {
		f(&opt)
	}
	c, err := sdk.Open(n.T.Context(), opt)
	n.must(err)
	n.T.Cleanup(func() { _ = c.Close() })
	return c
}

// Router is a router of the network that runs, until the test ends or it is
// stopped.
type Router struct {
	ID, Name, Address string
	Papers            node.Papers
	groups            []string // of those that it links with
	net               *Network
	accepted          *listener
	*node.Router
	log  journal.Journal
	stop context.CancelFunc
	done chan struct{}
	once sync.Once
}

// Logged reports whether the router has logged something with these words.
func (r *Router) Logged(words string) bool { return r.log.Has(words) }

// Count is how often the router has logged something with these words.
func (r *Router) Count(words string) int { return r.log.Count(words) }

// AddRouter makes a router, enrolls it and runs it. It has further words
// besides the network's own, and links to all others of the network.
func (n *Network) AddRouter(name string, words ...string) *Router {
	n.T.Helper()
	return n.AddRouterIn([]string{n.Word}, name, words...)
}

// AddRouterIn is AddRouter of one that links with all that have one of its groups.
func (n *Network) AddRouterIn(groups []string, name string, words ...string) *Router {
	n.T.Helper()
	r := &Router{Name: n.Word + "-" + name, groups: groups, net: n}
	r.ID = n.create("edge-routers", M{"name": r.Name, "roleAttributes": append(words, n.Word)})
	jwt := n.Admin.Get(Management + "edge-routers/" + r.ID).Want(200).Data()["enrollmentJwt"].(string)
	dir := filepath.Join(n.dir, name)
	n.must(os.Mkdir(dir, 0o700))
	at, err := layout.Enroll(n.T.Context(), n.read(jwt), layout.Request{Dir: dir, Hosts: []string{"127.0.0.1"}, Algorithm: "ec", Now: time.Now})
	n.must(err)
	r.Papers = n.papers(at)
	l, err := net.Listen("tcp", "127.0.0.1:"+machine.Port(n.T))
	n.must(err)
	r.Address = l.Addr().String()
	r.start(l)
	n.T.Cleanup(func() {
		r.Stop()
		if n.T.Failed() {
			n.T.Logf("%s logged:\n%s", r.Name, &r.log)
		}
	})
	return r
}

// papers reads what a router was given.
func (n *Network) papers(at layout.Layout) node.Papers {
	n.T.Helper()
	var p node.Papers
	var err error
	p.Client, err = tls.LoadX509KeyPair(at.Cert, at.Key)
	n.must(err)
	p.Server, err = tls.LoadX509KeyPair(at.ServerCert, at.Key)
	n.must(err)
	data, err := os.ReadFile(at.CA)
	n.must(err)
	p.CAs, err = pki.ParseCertificates(data, 16)
	n.must(err)
	return p
}

// start runs the router on a listener, and waits until it is online.
func (r *Router) start(l net.Listener) {
	n := r.net
	n.T.Helper()
	var err error
	r.accepted = &listener{Listener: l, conns: map[net.Conn]bool{}}
	r.Router, err = node.New(node.Options{
		ID: r.ID, Controllers: []string{"tls:" + n.Server.URL[len("https://"):]}, Papers: func() node.Papers { return r.Papers },
		Listeners: []net.Listener{r.accepted}, EdgeAddresses: []string{"tls:" + r.Address}, LinkAddresses: []string{"tls:" + r.Address},
		LinkGroups: r.groups, Version: "v1.6.20|test|2026-01-01 00:00:00|linux|amd64", Now: time.Now, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
	})
	n.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	r.stop, r.done, r.once = cancel, make(chan struct{}), sync.Once{}
	go func() {
		defer close(r.done)
		_ = r.Run(ctx)
	}()
	n.Eventually(r.Name+" is online", func() bool {
		data := n.Admin.Get(Management + "edge-routers/" + r.ID).Want(200).Data()
		return data["isOnline"] == true && data["syncStatus"] == "SYNC_DONE"
	})
}

// Stop ends the router.
func (r *Router) Stop() {
	r.once.Do(func() {
		r.stop()
		<-r.done
	})
}

// Kill ends the router without a word to those who are connected to it: their
// connections are reset before it knows.
func (r *Router) Kill() {
	r.accepted.cut()
	r.Stop()
}

// listener knows the connections that it has accepted.
type listener struct {
	net.Listener
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	own := &accepted{conn.(*net.TCPConn), l}
	l.mu.Lock()
	l.conns[own] = true
	l.mu.Unlock()
	return own, nil
}

// cut resets all of them.
func (l *listener) cut() {
	_ = l.Listener.Close()
	l.mu.Lock()
	conns := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, conn := range conns {
		_ = conn.(*accepted).SetLinger(0)
		_ = conn.Close()
	}
}

type accepted struct {
	*net.TCPConn
	by *listener
}

func (a *accepted) Close() error {
	a.by.mu.Lock()
	delete(a.by.conns, a)
	a.by.mu.Unlock()
	return a.TCPConn.Close()
}

// Move ends the router and runs it again on another listener. Clients are told
// its old address as before, where somebody else may be.
func (r *Router) Move(to net.Listener) {
	r.net.T.Helper()
	r.Stop()
	r.start(to)
}

// Restart ends the router and runs it again where it was.
func (r *Router) Restart() {
	r.net.T.Helper()
	r.Stop()
	l, err := net.Listen("tcp", r.Address)
	r.net.must(err)
	r.start(l)
}

// Echo hosts a service that sends back what it gets, until the test ends.
func (n *Network) Echo(c *sdk.Client, service string) *sdk.Listener {
	n.T.Helper()
	l, err := c.Listen(n.T.Context(), service, sdk.ListenOptions{})
	n.must(err)
	n.T.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go echo(conn)
		}
	}()
	return l
}

func echo(conn net.Conn) {
	defer conn.Close()
	_, _ = io.Copy(conn, conn)
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
