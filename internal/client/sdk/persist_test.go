package sdk

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// made is a connection of a test.
type made struct{ closed atomic.Bool }

func (m *made) Close() error {
	m.closed.Store(true)
	return nil
}

// TestPersist dials where something passes: a router that is silent, or refuses for
// a while.
func TestPersist(t *testing.T) {
	busy := &problem{ErrBusy, "not now", message.Busy("not now")}
	none := &problem{ErrNoHost, "nobody", message.Refuse(message.CodeInvalidTerminator, "nobody")}
	unsaid := &problem{ErrRefused, "no", &message.Refusal{Text: "no controller available"}}
	for name, test := range map[string]struct {
		dial   func(ctx context.Context, n int64) error // what becomes of the dial with a number
		err    error
		dials  int64
		within time.Duration
	}{
		"at once":  {func(context.Context, int64) error { return nil }, nil, 1, 0},
		"for good": {func(context.Context, int64) error { return none }, none, 1, 0},
		"refused for a while": {func(_ context.Context, n int64) error {
			if n < 4 {
				return unsaid
			}
			return nil
		}, nil, 4, 2 * time.Second},
		"always refused": {func(context.Context, int64) error { return unsaid }, unsaid, 6, 8 * time.Second},
		"busy, and then for good": {func(_ context.Context, n int64) error {
			if n == 1 {
				return busy
			}
			return none
		}, none, 2, time.Second},
		"no router for the identity": {func(context.Context, int64) error { return say(errUnserved, "none") }, errUnserved, 1, 0},
		"no router answers":          {func(context.Context, int64) error { return say(ErrNoRouter, "none") }, ErrNoRouter, 6, 8 * time.Second},
		"silent": {func(ctx context.Context, n int64) error {
			if n == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, nil, 2, silentTime},
		"silent for good": {func(ctx context.Context, _ int64) error {
			<-ctx.Done()
			return ctx.Err()
		}, context.DeadlineExceeded, 3, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var n atomic.Int64
				began := time.Now()
				conn, err := persist(ctx, func(ctx context.Context) (*made, error) {
					return &made{}, test.dial(ctx, n.Add(1))
				})
				if !errors.Is(err, test.err) || test.err == nil && (err != nil || conn.closed.Load()) {
					t.Errorf("it says %v, want %v", err, test.err)
				}
				if took := time.Since(began); n.Load() != test.dials || took > test.within {
					t.Errorf("%d dials in %v, want %d within %v", n.Load(), took, test.dials, test.within)
				}
			})
		})
	}
}

// TestPersistTwice has a dial come about after another was made beside it: it is
// closed.
func TestPersistTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &made{}, &made{}
		var n atomic.Int64
		got, err := persist(t.Context(), func(context.Context) (*made, error) {
			if n.Add(1) == 1 {
				<-time.After(time.Minute)
				return first, nil
			}
			return second, nil
		})
		if err != nil || got != second {
			t.Fatalf("%v", err)
		}
		<-time.After(2 * time.Minute)
		if !first.closed.Load() || second.closed.Load() {
			t.Error("it is not the one that came later which is closed")
		}
	})
}

// TestLateDial has a router connect a dial that was given up: it is told to end it,
// by the number or by the circuit, and also if the dial is only about to be forgotten.
func TestLateDial(t *testing.T) {
	for name, test := range map[string]struct {
		flow, known bool
		told        int32
		body        string
	}{
		"the router holds the flow": {told: message.TypeClosed},
		"the client holds the flow": {flow: true, told: message.TypeCircuitEnded, body: "circuit"},
		"a moment ago":              {flow: true, known: true, told: message.TypeCircuitEnded, body: "circuit"},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			heard := make(chan *wire.Frame, 10)
			r := &router{client: &Client{opt: Options{Now: time.Now}}, ends: map[uint32]end{}}
			r.ch = channel.New("near", channel.Options{Handle: r.handle, Beat: -1, Now: time.Now})
			theirs := channel.New("far", channel.Options{Handle: func(_ *channel.Channel, f *wire.Frame) { heard <- f }, Beat: -1, Now: time.Now})
			if test.known {
				conn := newConn(r, Info{})
				conn.dialled = true
				if err := r.add(conn, 7); err != nil {
					t.Fatal(err)
				}
			}
			r.ch.Attach(near)
			theirs.Attach(far)
			defer r.ch.Close(nil)
			defer theirs.Close(nil)
			late := about(message.TypeConnected, 7, nil)
			late.Headers.SetUint32(message.HeaderReplyFor, 3)
			if test.flow {
				late.Headers.SetBool(message.HeaderClientFlow, true)
				late.Headers.SetText(message.HeaderClientCircuit, "circuit")
			}
			if err := theirs.Send(late); err != nil {
				t.Fatal(err)
			}
			select {
			case f := <-heard:
				if number, _ := f.Headers.Uint32(message.HeaderConn); f.Type != test.told || number != 7 || string(f.Body) != test.body {
					t.Errorf("the router is told %d of %d and %q", f.Type, number, f.Body)
				}
			case <-time.After(30 * time.Second):
				t.Error("the router is told nothing")
			}
		})
	}
}

// TestEnds has both ends of a circuit tell their router that it is over: who has dialled
// does so at once, and who hosts later, unless it may be the only one that knows.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		hosts  bool
		reason error
		after  time.Duration
	}{
		"who has dialled":       {},
		"who hosts":             {hosts: true, after: endLater},
		"who hosts, for itself": {hosts: true, reason: io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				heard := make(chan *wire.Frame, 10)
				r := &router{client: &Client{opt: Options{Now: time.Now}}, ends: map[uint32]end{}}
				r.ch = channel.New("near", channel.Options{Handle: r.handle, Beat: -1, Now: time.Now})
				theirs := channel.New("far", channel.Options{Handle: func(_ *channel.Channel, f *wire.Frame) { heard <- f }, Beat: -1, Now: time.Now})
				r.ch.Attach(near)
				theirs.Attach(far)
				defer r.ch.Close(nil)
				defer theirs.Close(nil)
				began := time.Now()
				(&flow{conn: newConn(r, Info{Circuit: "circuit"}), hosts: test.hosts}).over(test.reason)
				f := <-heard
				if took := time.Since(began); f.Type != message.TypeCircuitEnded || string(f.Body) != "circuit" || took != test.after {
					t.Errorf("the router is told %d of %q after %v, want %v", f.Type, f.Body, took, test.after)
				}
			})
		})
	}
}
