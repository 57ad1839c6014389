package stream

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// pair is two ends that are connected by nothing but calls.
type pair struct {
	a, b       *End // initiator and terminator
	overA      chan error
	overB      chan error
	loseToB    func(p *Payload) bool
	loseAckToA func(a *Ack) bool
}

func newPair(t *testing.T, adjust func(*pair)) *pair {
	t.Helper()
	p := &pair{overA: make(chan error, 1), overB: make(chan error, 1)}
	p.loseToB = func(*Payload) bool { return false }
	p.loseAckToA = func(*Ack) bool { return false }
	if adjust != nil {
		adjust(p)
	}
	p.a = New(Options{
		Circuit: "c", Now: time.Now,
		Send: func(x *Payload, _ bool) bool {
			if !p.loseToB(x) {
				p.b.Payload(x)
			}
			return true
		},
		Ack:  func(x *Ack) { p.b.Acked(x) },
		Over: func(err error) { p.overA <- err },
	})
	p.b = New(Options{
		Circuit: "c", Terminator: true, Now: time.Now,
		Send: func(x *Payload, _ bool) bool { p.a.Payload(x); return true },
		Ack: func(x *Ack) {
			if !p.loseAckToA(x) {
				p.a.Acked(x)
			}
		},
		Over: func(err error) { p.overB <- err },
	})
	return p
}

func write(t *testing.T, e *End, text string) {
	t.Helper()
	if err := e.Write(t.Context(), Message{Data: []byte(text)}); err != nil {
		t.Fatalf("write %q: %v", text, err)
	}
}

func wantNext(t *testing.T, e *End, text string) {
	t.Helper()
	if m, ok := e.Next(); !ok || m.End || string(m.Data) != text {
		t.Fatalf("next is %q, %v, want %q", m.Data, ok, text)
	}
}

func wantEnd(t *testing.T, e *End, reason error) {
	t.Helper()
	m, ok := e.Next()
	if !ok || !m.End || !errors.Is(m.Err, reason) {
		t.Fatalf("next is %+v, %v, want the end because of %v", m, ok, reason)
	}
	if m, ok := e.Next(); ok {
		t.Fatalf("after the end comes %+v", m)
	}
}

func wantNothing(t *testing.T, e *End) {
	t.Helper()
	if m, ok := e.Next(); ok {
		t.Fatalf("next is %+v, want nothing", m)
	}
}

func TestBothWaysAndHalfClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		p.a.Start()
		write(t, p.a, "one")
		write(t, p.a, "two")
		wantNext(t, p.b, "one")
		write(t, p.b, "yes")
		wantNext(t, p.b, "two")
		wantNothing(t, p.b)
		wantNext(t, p.a, "yes")

		if err := p.a.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if err := p.a.Write(t.Context(), Message{}); !errors.Is(err, ErrClosed) {
			t.Fatalf("write after the end: %v", err)
		}
		wantEnd(t, p.b, nil)
		write(t, p.b, "bye")
		wantNext(t, p.a, "bye")
		if err := p.b.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		wantEnd(t, p.a, nil)

		began := time.Now()
		if err := <-p.overA; err != nil {
			t.Errorf("a is over because of %v", err)
		}
		if err := <-p.overB; err != nil {
			t.Errorf("b is over because of %v", err)
		}
		if took := time.Since(began); took != linger {
			t.Errorf("ends lingered for %v", took)
		}
	})
}

// TestTerminatorWaits: nothing is said before the initiator has started, and
// what was to be said is said then, if it is not much.
func TestTerminatorWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		for i := range earlyMessages {
			if !p.b.TryWrite(Message{Data: []byte{byte(i)}, Flags: uint32(i)}) {
				t.Fatalf("message %d found no room", i)
			}
		}
		if p.b.TryWrite(Message{}) {
			t.Fatal("there is room for everything")
		}
		wrote := make(chan error, 1)
		go func() { wrote <- p.b.Write(t.Context(), Message{Data: []byte("last")}) }()
		synctest.Wait()
		wantNothing(t, p.a)
		if s := p.b.Stats(); s.InFlight != 0 || s.Sent != 0 {
			t.Fatalf("the terminator spoke first: %+v", s)
		}
		p.a.Start()
		if err := <-wrote; err != nil {
			t.Fatal(err)
		}
		for i := range earlyMessages {
			if m, ok := p.a.Next(); !ok || !bytes.Equal(m.Data, []byte{byte(i)}) || m.Flags != uint32(i) {
				t.Fatalf("message %d is %+v, %v", i, m, ok)
			}
		}
		wantNext(t, p.a, "last")
		wantNothing(t, p.b)

		q := newPair(t, nil)
		if err := <-q.overB; !errors.Is(err, ErrNotStarted) {
			t.Fatalf("without a start: %v", err)
		}
		p.a.Abort(nil)
		p.b.Abort(nil)
		wantEnd(t, p.a, ErrAborted)
		wantEnd(t, p.b, ErrAborted)
	})
}

// TestRefuse: who takes no more says so, and the other end's writes fail.
func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		p.a.Start()
		write(t, p.a, "lost on nobody")
		p.b.CloseRead()
		wantNothing(t, p.b)
		if err := p.a.Write(t.Context(), Message{}); !errors.Is(err, ErrRefused) {
			t.Fatalf("write to who refuses: %v", err)
		}
		if err := p.a.Writable(); !errors.Is(err, ErrRefused) {
			t.Fatalf("writable: %v", err)
		}
		write(t, p.b, "still here")
		wantNext(t, p.a, "still here")
		if err := p.b.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		wantEnd(t, p.a, nil)
		if a, b := <-p.overA, <-p.overB; a != nil || b != nil {
			t.Errorf("over because of %v and %v", a, b)
		}
	})
}

// TestClose: the other end is told, and writes no more.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		p.a.Start()
		write(t, p.a, "one")
		broken := errors.New("broken")
		p.a.Close(broken)
		p.a.Close(nil)
		wantEnd(t, p.a, broken)
		wantNext(t, p.b, "one")
		wantEnd(t, p.b, nil)
		if err := p.b.Write(t.Context(), Message{}); !errors.Is(err, ErrRefused) {
			t.Errorf("write to who is gone: %v", err)
		}
		if a, b := <-p.overA, <-p.overB; a != broken || b != nil {
			t.Errorf("over because of %v and %v", a, b)
		}
	})
}
