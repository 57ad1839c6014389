package etcdstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/test/certtest"
)

func TestDialRefuses(t *testing.T) {
	if _, err := Dial(t.Context(), Options{}); err == nil {
		t.Error("dialed nobody")
	}
	// A port that nobody listens on any more.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := Dial(ctx, Options{Endpoints: []string{l.Addr().String()}, Logger: silent})
		failed <- err
	}()
	cancel()
	if err := <-failed; err == nil {
		t.Error("dialed where nobody listens")
	}
}

// by is the head of a batch that somebody writes.
func by(name string) store.Head {
	return store.Head{Writes: []store.Write{{Author: store.Author{Kind: "identity", Name: name}, Ops: 1}}}
}

// TestServerLimits sends what the client lets pass and the server does not.
func TestServerLimits(t *testing.T) {
	m := startTest(t, testLogger(t), listening)
	s, err := Dial(t.Context(), Options{
		Endpoints: []string{m.address()},
		Limits:    store.Limits{Ops: 1000, Bytes: 3 << 20},
		Logger:    testLogger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var many []store.Op
	for i := range 200 {
		many = append(many, store.Op{Key: fmt.Sprint(i), Value: []byte("v")})
	}
	for name, ops := range map[string][]store.Op{
		"ops":        many,
		"bytes":      set("k/1", 1600<<10),
		"more bytes": set("k/1", 3<<20-100),
	} {
		if _, err := s.Commit(t.Context(), 0, by(name), ops); !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("%s: %v, want ErrTooLarge", name, err)
		}
	}
	// The client has a limit of its own.
	huge := by(strings.Repeat("x", 6<<20))
	if _, err := s.Commit(t.Context(), 0, huge, set("k/1", 10)); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("huge head: %v, want ErrTooLarge", err)
	}
	if _, err := s.Commit(t.Context(), 0, store.Head{}, set("k/1", 10)); err != nil {
		t.Errorf("the store has a head: %v", err)
	}
}

// relay passes connections on to an address, and can cut them.
type relay struct {
	net.Listener
	to string
	wg sync.WaitGroup

	tripped atomic.Bool // the next bytes of a client are its last

	mu     sync.Mutex
	conns  []net.Conn
	served int
}

func newRelay(t *testing.T, to string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, to: to}
	r.wg.Go(r.serve)
	t.Cleanup(func() {
		l.Close()
		r.cut()
		r.wg.Wait()
	})
	return r
}

func (r *relay) serve() {
	for {
		in, err := r.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", r.to)
		if err != nil {
			in.Close()
			return
		}
		r.mu.Lock()
		r.conns = append(r.conns, in, out)
		r.served++
		r.mu.Unlock()
		pass := func(to, from net.Conn) {
			defer to.Close()
			defer from.Close()
			_, _ = io.Copy(to, from) // ends when either is cut
		}
		r.wg.Go(func() { pass(in, out) })
		r.wg.Go(func() { pass(out, tripwire{in, r}) })
	}
}

// tripwire is a client's connection that is cut when the client asks for
// something, if the relay says so.
type tripwire struct {
	net.Conn
	relay *relay
}

func (w tripwire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 && w.relay.tripped.CompareAndSwap(true, false) {
		w.relay.cut()
		return 0, net.ErrClosed
	}
	return n, err
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
	r.conns = nil
}

// TestFollowThroughCuts loses the connection again and again. No batch may be
// missing or come twice.
func TestFollowThroughCuts(t *testing.T) {
	m := startTest(t, silent, listening)
	writer := m.handle("", func() error { return nil })
	defer writer.Close()
	r := newRelay(t, m.address())
	s, err := Dial(t.Context(), Options{Endpoints: []string{r.Addr().String()}, Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const batches = 200
	var wrote []store.Rev
	seen := make(chan store.Rev, 2*batches)
	ended := make(chan error, 1)
	enough := errors.New("enough")
	go func() {
		n := 0
		ended <- s.Follow(t.Context(), 0, func(b store.Batch) error {
			seen <- b.Rev
			if n++; n == batches {
				return enough
			}
			return nil
		})
	}()
	var head store.Rev
	for n := range batches {
		var at store.Written
		if n%2 == 0 {
			at, err = writer.Commit(t.Context(), head, store.Head{}, set("k/1", 10000))
			head = at.Rev
		} else {
			at, err = writer.Put(t.Context(), store.Head{}, set("k/2", 10000))
		}
		if err != nil {
			t.Fatal(err)
		}
		wrote = append(wrote, at.Rev)
		if n%20 == 10 {
			r.cut()
		}
	}
	if err := <-ended; err != enough {
		t.Fatalf("Follow: %v", err)
	}
	for i, want := range wrote {
		if got := <-seen; got != want {
			t.Fatalf("batch %d has revision %d, want %d", i, got, want)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.served < 2 {
		t.Errorf("the follower connected %d times, so nothing was cut", r.served)
	}
}

// TestReadThroughCut loses the connection just when something is asked for.
// What only reads asks again.
func TestReadThroughCut(t *testing.T) {
	m := startTest(t, silent, listening)
	r := newRelay(t, m.address())
	s, err := Dial(t.Context(), Options{Endpoints: []string{r.Addr().String()}, Logger: silent})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Put(t.Context(), store.Head{}, set("k/1", 10)); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	for name, read := range map[string]func() error{
		"get": func() error {
			_, _, err := s.Get(t.Context(), "k/1")
			return err
		},
		"load": func() error {
			_, err := s.Load(t.Context(), func(store.Record) error { return nil })
			return err
		},
		"follow": func() error {
			if err := s.Follow(t.Context(), 0, func(store.Batch) error { return enough }); err != enough {
				return err
			}
			return nil
		},
	} {
		r.tripped.Store(true)
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if r.tripped.Load() {
			t.Errorf("%s: nothing was cut", name)
		}
	}
}

// TestSecured has a server with a certificate and users, and a user who may
// touch one prefix.
func TestSecured(t *testing.T) {
	cert, key, roots := selfSigned(t)
	m := startTest(t, silent, func(c *embed.Config) {
		c.ListenClientUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
		c.AdvertiseClientUrls = c.ListenClientUrls
		c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = cert, key
		c.AuthToken, c.BcryptCost = embed.DefaultAuthToken, 4
	})
	enableUsers(t, m)
	secure := &tls.Config{RootCAs: roots}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	base := Options{Endpoints: []string{m.address()}, TLS: secure, Username: "netkeep", Password: "secret", Prefix: "ours", Logger: silent}
	for name, change := range map[string]func(*Options){
		"wrong password": func(o *Options) { o.Password = "guess" },
		"no user":        func(o *Options) { o.Username = "" },
		"other prefix":   func(o *Options) { o.Prefix = "theirs" },
		"unknown server": func(o *Options) { o.Username, o.TLS = "", &tls.Config{RootCAs: x509.NewCertPool()} },
	} {
		o := base
		change(&o)
		soon, cancel := context.WithTimeout(ctx, time.Second)
		s, err := Dial(soon, o)
		cancel()
		if err == nil {
			s.Close()
			t.Errorf("%s: dialed", name)
		}
	}
	s, err := Dial(ctx, base)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at, err := s.Commit(ctx, 0, store.Head{}, set("k/1", 10))
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	if err := s.Follow(ctx, at.Rev-1, func(store.Batch) error { return enough }); err != enough {
		t.Errorf("Follow: %v", err)
	}
	if _, err := s.Load(ctx, func(store.Record) error { return nil }); err != nil {
		t.Errorf("Load: %v", err)
	}
	if err := s.Snapshot(ctx, io.Discard); err == nil {
		t.Error("a snapshot of everything for a user of one prefix")
	}
}

func enableUsers(t *testing.T, m *member) {
	t.Helper()
	c := v3client.New(m.etcd.Server)
	defer c.Close()
	ctx := t.Context()
	for _, do := range []func() error{
		func() error { _, err := c.UserAdd(ctx, "root", "root's"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.RoleAdd(ctx, "ours"); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, "ours", "ours/", "ours0", clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := c.UserAdd(ctx, "netkeep", "secret"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "netkeep", "ours"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
}

// selfSigned makes a certificate for 127.0.0.1.
func selfSigned(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	pair := certtest.New(t, nil, func(c *x509.Certificate) { c.IsCA, c.IPAddresses = true, []net.IP{net.IPv4(127, 0, 0, 1)} })
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pair.Write(t, certFile, keyFile)
	roots = x509.NewCertPool()
	roots.AddCert(pair.Certificate)
	return certFile, keyFile, roots
}
