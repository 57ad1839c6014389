package channel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// pair returns two channels that are connected, one handling with serve.
func pair(t *testing.T, client, server Options) (*Channel, *Channel) {
	t.Helper()
	here, there := net.Pipe()
	for _, o := range []*Options{&client, &server} {
		o.Now = time.Now
		if o.Handle == nil {
			o.Handle = func(*Channel, *wire.Frame) {}
		}
	}
	a, b := New("a", client), New("b", server)
	a.Attach(here)
	b.Attach(there)
	t.Cleanup(func() {
		a.Close(nil)
		b.Close(nil)
	})
	return a, b
}

// TestRequests has many ask at once, and the other end answer out of order.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held []*wire.Frame
		a, _ := pair(t, Options{}, Options{Handle: func(c *Channel, f *wire.Frame) {
			if held = append(held, f); len(held) < 20 {
				return
			}
			for i := len(held) - 1; i >= 0; i-- {
				_ = c.Reply(held[i], &wire.Frame{Type: 7, Body: held[i].Body})
			}
		}})
		errs := make(chan error)
		for i := range 20 {
			go func() {
				body := fmt.Sprint(i)
				r, err := a.Request(t.Context(), &wire.Frame{Type: 6, Body: []byte(body)})
				if err == nil && (r.Type != 7 || string(r.Body) != body) {
					err = fmt.Errorf("%s was answered with %q", body, r.Body)
				}
				errs <- err
			}()
		}
		for range 20 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestUnwanted has replies come that nobody waits for: they are frames like
// any other.
func TestUnwanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan int32, 1)
		a, b := pair(t, Options{Handle: func(_ *Channel, f *wire.Frame) { got <- f.Type }}, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.Request(ctx, &wire.Frame{Type: 6}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		_ = b.Reply(&wire.Frame{Seq: 1}, &wire.Frame{Type: 1022})
		if typ := <-got; typ != 1022 {
			t.Errorf("a late reply came as %d", typ)
		}
	})
}

// TestReflected copies what a reply must carry of its request.
func TestReflected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t, Options{}, Options{})
		r, err := a.Request(t.Context(), &wire.Frame{Type: message.TypeLatency, Headers: wire.Headers{128: []byte("stamp"), 300: []byte("x")}})
		if err != nil || r.Headers.Text(128) != "stamp" || r.Headers.Text(300) != "" {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err = a.Request(t.Context(), &wire.Frame{Type: message.TypePing}); err != nil || !r.Headers.Bool(message.HeaderSuccess) {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestHeartbeats keeps two ends alive for an hour, and has one fall silent.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t, Options{}, Options{})
		<-time.After(time.Hour)
		if err := a.Err(); err != nil {
			t.Fatalf("after an hour without a word: %v", err)
		}
		here, there := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, there) }()
		began := time.Now()
		mute := New("mute", Options{Now: time.Now, Handle: func(*Channel, *wire.Frame) {}})
		mute.Attach(here)
		<-mute.Done()
		if took := time.Since(began); !errors.Is(mute.Err(), ErrSilent) || took < Silence || took > Silence+Beat+time.Second {
			t.Errorf("a silent peer is given up after %v: %v", took, mute.Err())
		}
	})
}

// TestSlowPeer has a peer that takes nothing: senders never wait, and it loses
// the channel when the queue is full.
func TestSlowPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, _ := net.Pipe()
		closed := make(chan error, 1)
		c := New("slow", Options{
			Now: time.Now, Handle: func(*Channel, *wire.Frame) {}, Queue: 10_000,
			Closed: func(_ *Channel, reason error) { closed <- reason },
		})
		c.Attach(here)
		began := time.Now()
		var err error
		sent := 0
		for ; err == nil && sent < 1000; sent++ {
			err = c.Send(&wire.Frame{Type: 9, Body: make([]byte, 1000)})
		}
		if !errors.Is(err, ErrFull) || sent > 25 || time.Since(began) > 0 {
			t.Errorf("after %d frames and %v: %v", sent, time.Since(began), err)
		}
		if reason := <-closed; !errors.Is(reason, ErrFull) {
			t.Errorf("closed because %v", reason)
		}
	})
}

// TestSendWhenReady sends more than fits to a peer that reads: it waits its
// turn, and all arrives in order.
func TestSendWhenReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan uint32, 500)
		a, _ := pair(t, Options{Queue: 5000}, Options{Handle: func(_ *Channel, f *wire.Frame) { got <- binary.LittleEndian.Uint32(f.Body) }})
		for i := range uint32(500) {
			body := binary.LittleEndian.AppendUint32(make([]byte, 0, 1000), i)
			if err := a.SendWhenReady(t.Context(), &wire.Frame{Type: 9, Body: body[:1000]}); err != nil {
				t.Fatal(err)
			}
		}
		for want := range uint32(500) {
			if n := <-got; n != want {
				t.Fatalf("%d arrived instead of %d", n, want)
			}
		}
	})
}

// TestSeveralSockets has a channel outlive one of its sockets.
func TestSeveralSockets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, Options{}, Options{Handle: func(c *Channel, f *wire.Frame) { _ = c.Result(f, true, "") }})
		here, there := net.Pipe()
		first := a.sockets[0]
		a.Attach(here)
		b.Attach(there)
		_ = first.Close()
		synctest.Wait()
		if _, err := a.Request(t.Context(), &wire.Frame{Type: 6}); err != nil || a.Sockets() != 1 || b.Sockets() != 1 {
			t.Fatalf("over the second socket: %v; %d and %d are left", err, a.Sockets(), b.Sockets())
		}
		_ = here.Close()
		<-a.Done()
		<-b.Done()
		if a.Err() == nil || b.Err() == nil {
			t.Error("a channel without sockets is open")
		}
	})
}

// TestGarbage ends the channel whatever else it has.
func TestGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := pair(t, Options{}, Options{})
		here, there := net.Pipe()
		a.Attach(here)
		go func() { _, _ = there.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")) }()
		<-a.Done()
		if !errors.Is(a.Err(), wire.ErrMagic) {
			t.Errorf("%v", a.Err())
		}
	})
}

// TestHello takes a connection, refuses one, and gives up on a slow one.
func TestHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := func(answer func(net.Conn, *Hello)) net.Conn {
			here, there := net.Pipe()
			go func() {
				if h, err := ReadHello(there, time.Now().Add(5*time.Second)); err == nil {
					answer(there, h)
				} else {
					_ = there.Close()
				}
			}()
			return here
		}
		deadline := time.Now().Add(time.Minute)
		var seen *Hello
		conn := serve(func(c net.Conn, h *Hello) {
			seen = h
			_ = h.Welcome(c, deadline, wire.Headers{message.HeaderListenerID: []byte("ctrl")})
		})
		hello := Hello{ID: "router", Headers: wire.Headers{message.HeaderGroupSecret: []byte("listeners of an old router")}}
		got, err := Greet(conn, deadline, hello)
		if err != nil || got.Text(message.HeaderListenerID) != "ctrl" || seen.ID != "router" || seen.Grouped() || seen.Secret() != nil || !seen.First() {
			t.Errorf("welcome: %v, %v; it saw %+v", got, err, seen)
		}
		// Clients give their hello a number of their own, and wait for its answer.
		conn = serve(func(c net.Conn, h *Hello) { _ = h.Welcome(c, deadline, nil) })
		f, err := exchange(conn, deadline, &wire.Frame{Type: message.TypeHello, Seq: 41, Headers: wire.Headers{}})
		if err != nil {
			t.Fatal(err)
		}
		if to, _ := f.Headers.Uint32(message.HeaderReplyFor); to != 41 || f.Seq != helloSeq {
			t.Errorf("hello 41 is answered with %+v", f)
		}
		conn = serve(func(c net.Conn, h *Hello) { _ = Refuse(c, deadline, "the router is disabled") })
		if _, err := Greet(conn, deadline, hello); !errors.Is(err, ErrRefused) {
			t.Errorf("refused: %v", err)
		}
		conn = serve(func(net.Conn, *Hello) { t.Error("half a hello was taken") })
		began := time.Now()
		half := (&wire.Frame{Type: 0, Body: []byte("router")}).Append(nil)
		_, _ = conn.Write(half[:10])
		if _, err := conn.Read(make([]byte, 1)); err == nil || time.Since(began) > 6*time.Second {
			t.Errorf("half a hello is waited for: %v after %v", err, time.Since(began))
		}
	})
}
