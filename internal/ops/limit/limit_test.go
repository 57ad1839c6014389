package limit_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep/internal/ops/limit"
)

// TestRate tries more than an address may, and again after the time that it
// was told to wait.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := limit.Rate{PerMinute: 60, Now: time.Now}
		one, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		for i := range 60 {
			if wait := r.Take(one); wait != 0 {
				t.Fatalf("attempt %d has to wait %v", i, wait)
			}
		}
		if wait := r.Take(one); wait != time.Second {
			t.Errorf("one too many has to wait %v, want a second", wait)
		}
		if wait := r.Take(other); wait != 0 {
			t.Errorf("another address has to wait %v", wait)
		}
		<-time.After(time.Second)
		if first, second := r.Take(one), r.Take(one); first != 0 || second == 0 {
			t.Errorf("after a second the waits are %v and %v, want none and some", first, second)
		}
	})
}

func TestRateCountsNetworks(t *testing.T) {
	r := limit.Rate{PerMinute: 1, Now: func() time.Time { return time.Unix(0, 0) }}
	for _, test := range []struct {
		address string
		free    bool
	}{
		{"192.0.2.1", true}, {"192.0.2.1", false}, {"::ffff:192.0.2.1", false}, {"192.0.2.2", true},
		{"2001:db8::1", true}, {"2001:db8::ffff:2", false}, {"2001:db8:0:1::1", true},
	} {
		if free := r.Take(netip.MustParseAddr(test.address)) == 0; free != test.free {
			t.Errorf("%s may go on: %v", test.address, free)
		}
	}
	if r.Take(netip.Addr{}) != 0 {
		t.Error("whoever has no address has to wait at once")
	}
	if any := (&limit.Rate{}); any.Take(netip.Addr{}) != 0 {
		t.Error("a limit of nothing holds somebody up")
	}
}

// TestRateForgets has more addresses than are remembered.
func TestRateForgets(t *testing.T) {
	r := limit.Rate{PerMinute: 1, Now: func() time.Time { return time.Unix(0, 0) }}
	a := netip.MustParseAddr("10.0.0.0")
	for range 200_000 {
		if r.Take(a) != 0 {
			t.Fatal("a new address has to wait")
		}
		a = a.Next()
	}
}

// TestRateProperty counts against a naive model: no window of a minute and no
// longer one lets more through than the rate and one minute's worth.
func TestRateProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Unix(1_000_000, 0)
		per := rapid.IntRange(1, 100).Draw(rt, "rate")
		r := limit.Rate{PerMinute: per, Now: func() time.Time { return now }}
		var let []time.Time
		for range 300 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(rt, "pause")))
			if r.Take(netip.MustParseAddr("192.0.2.1")) == 0 {
				let = append(let, now)
			}
		}
		for i := range let {
			for j := i; j < len(let); j++ {
				minutes := let[j].Sub(let[i]).Minutes()
				if most := float64(per)*(1+minutes) + 1; float64(j-i+1) > most {
					rt.Fatalf("%d in %v, want at most %v", j-i+1, let[j].Sub(let[i]), most)
				}
			}
		}
		if len(let) < min(300, per) {
			rt.Fatalf("only %d of 300 were let through at %d a minute", len(let), per)
		}
	})
}

func TestMemory(t *testing.T) {
	m := limit.Memory{Bytes: 64 << 10}
	text := strings.Repeat("x", 20<<10)
	a, releaseA, err := m.ReadAll(strings.NewReader(text), 1<<20)
	if err != nil || string(a) != text {
		t.Fatalf("%d bytes are read: %v", len(a), err)
	}
	_, releaseB, err := m.ReadAll(strings.NewReader(strings.Repeat("x", 60<<10)), 1<<20)
	releaseB()
	if !errors.Is(err, limit.ErrFull) {
		t.Errorf("more than fits gives %v", err)
	}
	releaseA()
	if m.Used() != 0 {
		t.Errorf("%d bytes are held for nobody", m.Used())
	}
	c, releaseC, err := m.ReadAll(strings.NewReader(text), 100)
	if err != nil || len(c) != 101 {
		t.Errorf("a body of more than the most is read to %d bytes: %v", len(c), err)
	}
	releaseC()
	_, releaseD, err := m.ReadAll(iotest.ErrReader(io.ErrUnexpectedEOF), 100)
	releaseD()
	if !errors.Is(err, io.ErrUnexpectedEOF) || m.Used() != 0 {
		t.Errorf("a broken body gives %v and leaves %d bytes", err, m.Used())
	}
}

// TestMemoryProperty reads bodies in whatever pieces they come.
func TestMemoryProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 0, 20_000).Draw(rt, "body")
		most := rapid.Int64Range(0, 25_000).Draw(rt, "most")
		m := limit.Memory{Bytes: 1 << 20}
		var r io.Reader = bytes.NewReader(body)
		if rapid.Bool().Draw(rt, "slowly") {
			r = iotest.OneByteReader(r)
		}
		got, release, err := m.ReadAll(r, most)
		if want := body[:min(len(body), int(most)+1)]; err != nil || !bytes.Equal(got, want) {
			rt.Fatalf("%d of %d bytes are read, want %d: %v", len(got), len(body), len(want), err)
		}
		if int64(len(got)) > m.Used() {
			rt.Fatalf("%d bytes are held for %d", m.Used(), len(got))
		}
		release()
		if m.Used() != 0 {
			rt.Fatalf("%d bytes are held for nobody", m.Used())
		}
	})
}

// TestConnections serves two connections at a time.
func TestConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &limit.Connections{Max: 2, Now: time.Now}
	var seen sync.WaitGroup
	release := make(chan struct{})
	srv := &http.Server{ConnState: c.Changed, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			seen.Done()
			<-release
		}
	})}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(c.Listener(l)) }()
	defer func() {
		close(release)
		_ = srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	ask := func(conn net.Conn, path string) string {
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return err.Error()
		}
		if path == "/slow" {
			return ""
		}
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		buf := make([]byte, 15)
		if _, err := io.ReadFull(conn, buf); err != nil {
			return err.Error()
		}
		return string(buf)
	}
	closed := func(conn net.Conn) bool {
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err := io.Copy(io.Discard, conn)
		return err == nil || !errors.Is(err, errTimeout(err))
	}
	seen.Add(1)
	slow, waits := dial(), dial()
	ask(slow, "/slow")
	seen.Wait()
	if got := ask(waits, "/"); got != "HTTP/1.1 200 OK" {
		t.Fatalf("the second gets %q", got)
	}
	third := dial()
	if got := ask(third, "/"); got != "HTTP/1.1 200 OK" {
		t.Errorf("the third gets %q", got)
	}
	if !closed(waits) {
		t.Error("the one that waits is not closed")
	}
	seen.Add(1)
	ask(third, "/slow")
	seen.Wait()
	fourth := dial()
	if got := ask(fourth, "/"); got != "HTTP/1.1 200 OK" {
		t.Errorf("with all busy the next gets %q", got)
	}
	if !closed(slow) {
		t.Error("the one that is longest about its request is not closed")
	}
	if n := c.Open(); n > 2 {
		t.Errorf("%d are open", n)
	}
}

// errTimeout returns err if it is a timeout, so that Is finds it.
func errTimeout(err error) error {
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return err
	}
	return io.EOF
}
