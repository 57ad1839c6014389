package uplink

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/big"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// soon is how long anything may take that happens by itself.
const soon = time.Minute

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > soon {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// station is a place where a controller listens, which does what a test says.
type station struct {
	t        *testing.T
	listener net.Listener
	cert     tls.Certificate

	mu      sync.Mutex
	id      string
	list    *message.Members // told at connect
	came    int              // routers that were welcomed
	now     *channel.Channel // of the one that is here
	refuses bool
	replies func(c *channel.Channel, f *wire.Frame)
}

func newCert(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// listen has a controller listen. Those of one network show the same certificate
// unless they have one of their own.
func listen(t *testing.T, id string, cert tls.Certificate, address string) *station {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &station{t: t, listener: l, cert: cert, id: id}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{message.ALPN}}))
		}
	}()
	t.Cleanup(s.stop)
	return s
}

// at is its address.
func (s *station) at() string { return "tls:" + s.listener.Addr().String() }

// stop ends the controller and its connection.
func (s *station) stop() {
	_ = s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = true
	if s.now != nil {
		s.now.Close(nil)
	}
}

func (s *station) serve(conn net.Conn) {
	hello, err := channel.ReadHello(conn, time.Now().Add(soon))
	if err != nil {
		_ = conn.Close()
		return
	}
	h := wire.Headers{}
	c := channel.New(channel.NewID(), channel.Options{Now: time.Now, Handle: s.handle})
	h.SetText(message.HeaderConnectionID, c.ID)
	s.mu.Lock()
	h.SetText(message.HeaderListenerID, s.id)
	if s.refuses || hello.Welcome(conn, time.Now().Add(soon), h) != nil {
		s.mu.Unlock()
		_ = conn.Close()
		return
	}
	if s.now != nil {
		s.now.Close(nil) // as controllers do: a router is there once
	}
	s.now = c
	s.came++
	list := s.list
	s.mu.Unlock()
	c.Attach(conn)
	if list != nil {
		_ = c.Send(frame(message.TypeMembers, list))
	}
}

func (s *station) handle(c *channel.Channel, f *wire.Frame) {
	s.mu.Lock()
	replies := s.replies
	s.mu.Unlock()
	if replies != nil {
		replies(c, f)
	}
}

// does has it handle frames.
func (s *station) does(replies func(c *channel.Channel, f *wire.Frame)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = replies
}

// arrivals is how often the router came.
func (s *station) arrivals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.came
}

// tell tells the router which controllers there are.
func (s *station) tell(m *message.Members) {
	s.t.Helper()
	s.mu.Lock()
	c := s.now
	s.mu.Unlock()
	if err := c.Send(frame(message.TypeMembers, m)); err != nil {
		s.t.Fatal(err)
	}
}

// member is the controller in a list.
func (s *station) member() []string { return []string{s.id, s.at()} }

// run runs an uplink to controllers that show one of some certificates.
func run(t *testing.T, certs []tls.Certificate, change func(*Options)) *Uplink {
	t.Helper()
	roots := x509.NewCertPool()
	for _, c := range certs {
		roots.AddCert(c.Leaf)
	}
	opt := Options{
		ID: "router", TLS: func() (*tls.Config, error) { return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil },
		Handler: &handler{unroute: func(*message.Unroute) {}}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	change(&opt)
	u, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = u.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return u
}

// connectedTo waits until the uplink is connected to those ids, and no other.
func connectedTo(t *testing.T, u *Uplink, ids ...string) {
	t.Helper()
	var got []string
	defer func() {
		if t.Failed() {
			t.Logf("it is connected to %q", got)
		}
	}()
	eventually(t, "it is connected to "+strings.Join(ids, ", "), func() bool {
		got = nil
		for _, s := range u.Statuses() {
			if s.Connected {
				got = append(got, s.ControllerID)
			}
		}
		slices.Sort(got)
		return slices.Equal(got, ids)
	})
}

// TestSeats has a router connect to one controller, hear of others, and follow
// them: one that dies is dialled for as long as it is listed, one that moves where
// it is, one that is gone no more. A restart finds all of them.
func TestSeats(t *testing.T) {
	cert := newCert(t)
	a, b, c := listen(t, "a", cert, "127.0.0.1:0"), listen(t, "b", cert, "127.0.0.1:0"), listen(t, "c", cert, "127.0.0.1:0")
	var mu sync.Mutex
	var kept []Controller
	u := run(t, []tls.Certificate{cert}, func(o *Options) {
		o.Endpoints = []string{a.at()}
		o.Listed = func(list []Controller) {
			mu.Lock()
			defer mu.Unlock()
			kept = list
		}
	})
	keeps := func(want ...*station) {
		t.Helper()
		var all []string
		for _, s := range want {
			all = append(all, s.id+"["+s.at()+"]")
		}
		slices.Sort(all)
		eventually(t, "the list is kept", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Equal(texts(kept), all)
		})
	}
	connectedTo(t, u, "a")
	a.tell(members(1, a.member(), b.member(), c.member()))
	connectedTo(t, u, "a", "b", "c")
	keeps(a, b, c)

	// One dies: the others are not touched.
	b.stop()
	connectedTo(t, u, "a", "c")
	// Somebody stands in for it elsewhere, announced by any in one frame.
	stand := listen(t, "b", cert, "127.0.0.1:0")
	c.tell(members(2, a.member(), stand.member(), c.member()))
	connectedTo(t, u, "a", "b", "c")
	if stand.arrivals() != 1 || a.arrivals() != 1 || c.arrivals() != 1 {
		t.Errorf("it came %d, %d and %d times", stand.arrivals(), a.arrivals(), c.arrivals())
	}
	keeps(a, stand, c)
	// It is back, announced in two frames.
	back := listen(t, "b", cert, b.listener.Addr().String())
	c.tell(members(3, a.member(), c.member()))
	c.tell(members(4, a.member(), c.member(), back.member()))
	eventually(t, "it is where it was", func() bool { return back.arrivals() == 1 })
	connectedTo(t, u, "a", "b", "c")
	keeps(a, c, back)
	a.tell(members(5, c.member(), back.member()))
	connectedTo(t, u, "b", "c")
	keeps(c, back)

	// Another start, with the first one gone for good.
	mu.Lock()
	list := kept
	mu.Unlock()
	again := run(t, []tls.Certificate{cert}, func(o *Options) { o.Endpoints, o.Known = []string{a.at()}, list })
	connectedTo(t, again, "b", "c")
	if n := a.arrivals(); n != 1 {
		t.Errorf("it came to one that is gone %d times", n)
	}
}

// TestSpare has one controller answer at two addresses, as one process and as
// two: the router is connected to it once, does not come and go, and takes the
// other address when the first fails.
func TestSpare(t *testing.T) {
	for name, own := range map[string]bool{"one certificate": false, "two certificates": true} {
		t.Run(name, func(t *testing.T) {
			first, second := newCert(t), newCert(t)
			certs := []tls.Certificate{first, second}
			if !own {
				second = first
			}
			a, b := listen(t, "x", first, "127.0.0.1:0"), listen(t, "x", second, "127.0.0.1:0")
			u := run(t, certs, func(o *Options) { o.Endpoints = []string{a.at(), b.at()} })
			settled := func() bool {
				connected, spare := 0, 0
				for _, s := range u.Statuses() {
					if s.Connected {
						connected++
					} else if s.Problem == errSpare.Error() {
						spare++
					}
				}
				return connected == 1 && spare == 1
			}
			eventually(t, "it is connected once", settled)
			if n := a.arrivals() + b.arrivals(); n > 10 {
				t.Errorf("it came %d times", n)
			}
			held := a
			if u.Status().Address == b.at() {
				held = b
			}
			held.stop()
			eventually(t, "it is at the other address", func() bool {
				st := u.Status()
				return st.Connected && st.Address != held.at()
			})
		})
	}
}

// TestOneProcess has one controller listen at two addresses and let a router be
// there once: the router finds a place where it stays.
func TestOneProcess(t *testing.T) {
	cert := newCert(t)
	a := listen(t, "x", cert, "127.0.0.1:0")
	// The second address leads to the same process.
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = door.Close() })
	go func() {
		for {
			conn, err := door.Accept()
			if err != nil {
				return
			}
			go a.serve(tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{message.ALPN}}))
		}
	}()
	u := run(t, []tls.Certificate{cert}, func(o *Options) { o.Endpoints = []string{a.at(), "tls:" + door.Addr().String()} })
	eventually(t, "one address is left alone and the other connection lasts", func() bool {
		l, came := u.oldest(), a.arrivals()
		if l == nil || !slices.ContainsFunc(u.Statuses(), func(s Status) bool { return s.Problem == errSpare.Error() }) {
			return false
		}
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		_, err := l.Request(ctx, &wire.Frame{Type: message.TypePing})
		return err == nil && u.oldest() == l && a.arrivals() == came
	})
	if came := a.arrivals(); came > 10 {
		t.Errorf("it came %d times", came)
	}
}

// TestDies has requests go on while one controller after the other dies and
// comes back: none fails.
func TestDies(t *testing.T) {
	cert := newCert(t)
	serves := func(s *station) {
		s.does(func(c *channel.Channel, f *wire.Frame) {
			if f.Type == message.TypeVerifyRouter {
				_ = c.Result(f, true, "")
			}
		})
	}
	all := []*station{listen(t, "a", cert, "127.0.0.1:0"), listen(t, "b", cert, "127.0.0.1:0"), listen(t, "c", cert, "127.0.0.1:0")}
	var at []string
	for _, s := range all {
		serves(s)
		at = append(at, s.at())
	}
	u := run(t, []tls.Certificate{cert}, func(o *Options) { o.Endpoints = at })
	connectedTo(t, u, "a", "b", "c")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for ctx.Err() == nil {
				if err := u.VerifyRouter(t.Context(), "router", "print"); err != nil {
					t.Errorf("a request failed: %v", err)
					return
				}
			}
		})
	}
	for i, s := range all {
		s.stop()
		eventually(t, "the router has noticed", func() bool { return u.to(s.id) == nil })
		all[i] = listen(t, s.id, cert, s.listener.Addr().String())
		serves(all[i])
		connectedTo(t, u, "a", "b", "c")
	}
	cancel()
	asking.Wait()
}

// TestUnreachable has a controller say that it is where the router does not
// reach it: the router stays where it found it, and does not come and go.
func TestUnreachable(t *testing.T) {
	cert := newCert(t)
	nowhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = nowhere.Close()
	a, b := listen(t, "a", cert, "127.0.0.1:0"), listen(t, "b", cert, "127.0.0.1:0")
	list := members(1, []string{"a", "tls:" + nowhere.Addr().String()}, b.member())
	a.list, b.list = list, list
	u := run(t, []tls.Certificate{cert}, func(o *Options) { o.Endpoints = []string{a.at()} })
	eventually(t, "it came back", func() bool { return a.arrivals() == 2 })
	connectedTo(t, u, "a", "b")
	a.tell(members(2, []string{"a", "tls:" + nowhere.Addr().String()}, b.member()))
	if _, err := u.to("a").Request(t.Context(), &wire.Frame{Type: message.TypePing}); err != nil || a.arrivals() != 2 {
		t.Errorf("it came %d times: %v", a.arrivals(), err)
	}
	if list, told := u.List(); !told || !slices.Equal(texts(list), texts(Listed(a.list))) {
		t.Errorf("it keeps %q", texts(list))
	}
}
