package fabric

import (
	"context"
	"crypto/tls"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// undisturbed has others use the controller and one of its routers until stop
// is called, at least once, and fails unless all of them are served. How long that takes is
// logged: attackers and attacked share the machine here.
func undisturbed(t *testing.T, n *network, c *scripted.Router) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var asked, dialled []time.Duration
	admin := n.Server.Admin(t)
	wait.Go(func() {
		for turn, more := time.NewTicker(pace), true; more; more = waits(ctx, turn) {
			start := time.Now()
			admin.Get(management + "services").Want(200)
			asked = append(asked, time.Since(start))
		}
	})
	wait.Go(func() {
		for turn, more := time.NewTicker(pace), true; more; more = waits(ctx, turn) {
			start := time.Now()
			if _, _, err := n.dialOn(t, c); err != nil {
				t.Errorf("another router cannot dial: %v", err)
				return
			}
			dialled = append(dialled, time.Since(start))
		}
	})
	return func() {
		t.Helper()
		cancel()
		wait.Wait()
		for what, took := range map[string][]time.Duration{"an answer": asked, "a dial": dialled} {
			if slices.Sort(took); len(took) == 0 {
				t.Errorf("nobody got %s", what)
				continue
			}
			t.Logf("%s took %v, the longest of %d %v", what, took[len(took)/2], len(took), took[len(took)-1])
		}
	}
}

// pace is how often others ask meanwhile. As often as they can would be too much: what
// they leave behind, circuits and lines of the log, is memory too.
const pace = 2 * time.Millisecond

// waits waits for the next turn, and reports whether there is one.
func waits(ctx context.Context, turn *time.Ticker) bool {
	select {
	case <-turn.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// TestFloodOfOneRouter has a router send as much as it can: requests that cost
// something, and what nobody takes. Others do not notice.
func TestFloodOfOneRouter(t *testing.T) {
	s := servertest.Start(t)
	good := addRouter(t, s).Connect(t)
	n := addNetwork(t, s)
	n.hostOn(t, good, servertest.Unique("t"))
	bad := addRouter(t, s).Connect(t)
	stop := undisturbed(t, n, good)
	dial := wire.Headers{}
	dial.SetText(message.HeaderSessionToken, n.dialing)
	dial.SetText(message.HeaderAPISessionToken, "not this one")
	const least, most = 1000, 200_000
	until, end := time.Now().Add(2*time.Second), time.Now().Add(soon)
	sent := 0
	for ; (time.Now().Before(until) || sent < least && time.Now().Before(end)) && sent < most; sent++ {
		frame := &wire.Frame{Type: message.TypeCreateCircuit, Headers: dial}
		switch sent % 3 {
		case 1:
			frame = &wire.Frame{Type: 424242, Body: make([]byte, 1000)}
		case 2:
			frame = &wire.Frame{Type: message.TypeAPISessionHeartbeat, Body: message.Marshal(&message.APISessionHeartbeat{Tokens: []string{"a", "b", "c"}})}
		}
		for bad.Send(frame) != nil && time.Now().Before(end) {
			select {
			case <-bad.Done():
				bad = addRouter(t, s).Connect(t) // cut off: it begins again
			case <-time.After(time.Millisecond): // its own queue is full
			}
		}
	}
	stop()
	if sent < least {
		t.Errorf("it sent only %d frames", sent)
	}
}

// TestSlowHellos opens many connections that show a router's certificate and
// then say nothing. Others come in as before.
func TestSlowHellos(t *testing.T) {
	s := servertest.Start(t)
	r, good := addRouter(t, s), addRouter(t, s).Connect(t)
	n := addNetwork(t, s)
	n.hostOn(t, good, servertest.Unique("t"))
	stop := undisturbed(t, n, good)
	opt := r.Options()
	config := opt.TLS.Clone()
	config.NextProtos = []string{message.ALPN}
	for range 200 {
		conn, err := tls.Dial("tcp", opt.Address, config)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	r.Connect(t)
	stop()
}

// TestStalledHandshakes begins to connect as routers do, again and again, and
// does not go on. Another router gets in.
func TestStalledHandshakes(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	opt := r.Options()
	answers := make(chan struct{}, 1000)
	for range 100 {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}).DialContext(t.Context(), "tcp", opt.Address)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		cfg := opt.TLS.Clone()
		cfg.NextProtos, cfg.ServerName = []string{message.ALPN}, "127.0.0.1"
		go func() { _ = tls.Client(&mute{Conn: conn, heard: answers}, cfg).Handshake() }()
	}
	// As many as the controller works on at a time have come so far.
	for range runtime.GOMAXPROCS(0) {
		<-answers
	}
	watch := machine.Begin(t)
	r.Connect(t)
	if took, most := watch.Took(2 * time.Second); took > most {
		t.Errorf("it waited %v for those who do not go on, and may %v", took, most)
	}
}

// mute says one thing and nothing more.
type mute struct {
	net.Conn
	said  bool
	heard chan struct{}
}

func (m *mute) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.heard <- struct{}{}
	return n, err
}

func (m *mute) Write(p []byte) (int, error) {
	if m.said {
		return len(p), nil
	}
	m.said = true
	return m.Conn.Write(p)
}
