package uplink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// handler does what a test says about circuits, and nothing about the rest.
type handler struct {
	route   func(context.Context, *message.Route) (map[uint32][]byte, error)
	unroute func(*message.Unroute)
}

func (h *handler) Route(ctx context.Context, _ string, m *message.Route) (map[uint32][]byte, error) {
	return h.route(ctx, m)
}
func (h *handler) Unroute(m *message.Unroute) { h.unroute(m) }
func (h *handler) Validate(_ context.Context, m *message.ValidateTerminators) map[string]message.TerminatorState {
	return map[string]message.TerminatorState{m.Terminators[0].ID: {Valid: true}}
}
func (h *handler) Peers(*message.PeerStates)                           {}
func (h *handler) LinkFault(*message.Fault)                            {}
func (h *handler) SessionsRemoved([]string)                            {}
func (h *handler) Inspect(context.Context, []string) map[string]string { return nil }
func (h *handler) Connected()                                          {}
func (h *handler) Disconnected()                                       {}

// controller is the other end of an uplink: what it was told, in order.
type controller struct {
	*channel.Channel
	line   *line // at the router
	socket pause
	mu     sync.Mutex
	told   []*wire.Frame
}

// pause is a socket that may read nothing for a while, as that of a process that
// is stopped.
type pause struct {
	net.Conn
	mu    sync.Mutex
	until chan struct{} // nil if it reads
}

func (p *pause) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	p.mu.Lock()
	until := p.until
	p.mu.Unlock()
	if until != nil {
		<-until
	}
	return n, err
}

// hold stops the socket until resume is called.
func (p *pause) hold() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := make(chan struct{})
	p.until = until
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.until = nil
		close(until)
	}
}

// connect returns an uplink with a handler, connected to a controller.
func connect(t *testing.T, h *handler) (*Uplink, *controller) {
	t.Helper()
	u := newUplink(t, h)
	return u, attach(t, u, "ctrl")
}

func newUplink(t *testing.T, h *handler) *Uplink {
	t.Helper()
	u, err := New(Options{
		ID: "router", Endpoints: []string{"tls:localhost:1280"}, TLS: func() (*tls.Config, error) { return nil, errors.New("none") },
		Handler: h, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	u.seats = nil
	return u
}

// attach connects an uplink to a controller.
func attach(t *testing.T, u *Uplink, id string) *controller {
	t.Helper()
	here, there := net.Pipe()
	c := &controller{}
	c.Channel = channel.New("c", channel.Options{Now: time.Now, Handle: func(_ *channel.Channel, f *wire.Frame) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.told = append(c.told, f)
	}})
	l := &line{id: id, since: time.Now()}
	l.heard.Store(time.Now().UnixNano())
	l.Channel = channel.New("u", channel.Options{
		Now: time.Now, Handle: func(_ *channel.Channel, f *wire.Frame) { u.hear(l, f) }, Echoed: func(took time.Duration) { l.echoed(took, time.Now()) },
	})
	u.mu.Lock()
	s := u.newSeat(Controller{ID: id, Addresses: []string{"tls:" + id + ":1280"}})
	s.line = l
	u.seats = append(u.seats, s)
	u.mu.Unlock()
	l.Attach(here)
	c.socket.Conn = there
	c.Attach(&c.socket)
	c.line = l
	t.Cleanup(func() {
		c.Close(nil)
		l.Close(nil)
	})
	return c
}

// heard are the types of what the controller was told.
func (c *controller) heard() (types []int32) {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.told {
		types = append(types, f.Type)
	}
	return types
}

// TestOrder ends circuits that are being made: the route is given up, and the
// circuit ends when it has returned, while others do not wait.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var did []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			did = append(did, fmt.Sprintf(format, args...))
		}
		h := &handler{unroute: func(m *message.Unroute) { note("end %s %v", m.CircuitID, m.Now) }}
		h.route = func(ctx context.Context, m *message.Route) (map[uint32][]byte, error) {
			note("begin %s %d", m.CircuitID, m.Attempt)
			if m.Attempt > 0 {
				return nil, nil
			}
			<-ctx.Done()
			<-time.After(time.Second) // it takes a while to clean up
			note("given up %s", m.CircuitID)
			return nil, ctx.Err()
		}
		_, c := connect(t, h)
		send := func(typ int32, body []byte) {
			if err := c.Send(&wire.Frame{Type: typ, Body: body}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		send(message.TypeRoute, message.Marshal(&message.Route{CircuitID: "a"}))
		send(message.TypeUnroute, message.Marshal(&message.Unroute{CircuitID: "a"}))
		send(message.TypeUnroute, message.Marshal(&message.Unroute{CircuitID: "a", Now: true}))
		send(message.TypeRoute, message.Marshal(&message.Route{CircuitID: "a", Attempt: 1}))
		send(message.TypeRoute, message.Marshal(&message.Route{CircuitID: "b", Attempt: 2}))
		send(message.TypeUnroute, message.Marshal(&message.Unroute{CircuitID: "b"}))
		<-time.After(2 * time.Second)
		want := []string{"begin a 0", "begin b 2", "end b false", "given up a", "end a true", "begin a 1"}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(did, want) {
			t.Errorf("it did %q, want %q", did, want)
		}
	})
}

// TestManyRoutes has a controller ask for more circuits than are made at once:
// it is told at once that they are not, and nothing is forgotten.
func TestManyRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{unroute: func(*message.Unroute) {}, route: func(ctx context.Context, _ *message.Route) (map[uint32][]byte, error) {
			<-ctx.Done()
			return nil, &message.RouteFailure{Code: message.RouteTimeout, Text: "it took too long"}
		}}
		u, c := connect(t, h)
		answers := make(chan *wire.Frame, maxLanes+10)
		for i := range maxLanes + 10 {
			go func() {
				m := &message.Route{CircuitID: fmt.Sprint(i), Timeout: uint64(time.Hour)}
				r, err := c.Request(t.Context(), &wire.Frame{Type: message.TypeRoute, Body: message.Marshal(m)})
				if err != nil {
					t.Error(err)
				}
				answers <- r
			}()
		}
		synctest.Wait()
		if n := len(answers); n != 10 {
			t.Errorf("%d were refused at once", n)
		}
		began := time.Now()
		codes := map[byte]int{}
		for range maxLanes + 10 {
			r := <-answers
			if _, ok := r.Headers[message.HeaderRouteSuccess]; ok {
				t.Error("a circuit was made")
			}
			code, _ := r.Headers.Byte(message.HeaderRouteErrorCode)
			codes[code]++
		}
		if took := time.Since(began); took > maxRouteWait {
			t.Errorf("it took %v", took)
		}
		if codes[0] != 10 || codes[byte(message.RouteTimeout)] != maxLanes {
			t.Errorf("the codes are %v", codes)
		}
		synctest.Wait()
		if left := len(u.lanes.byCircuit); left != 0 {
			t.Errorf("%d circuits are still being made", left)
		}
	})
}

// part is a part of all API sessions.
func part(t *testing.T, sequence int, last bool, ids ...string) *wire.Frame {
	t.Helper()
	state, err := json.Marshal(message.SyncState{ID: "1", Sequence: sequence, IsLast: last})
	if err != nil {
		t.Fatal(err)
	}
	f := frame(message.TypeAPISessionsAdded, &message.APISessionsAdded{Full: true, Sessions: named(ids...)})
	f.Headers = wire.Headers{message.HeaderSyncState: state}
	return f
}

func named(ids ...string) (all []message.APISession) {
	for _, id := range ids {
		all = append(all, message.APISession{ID: id, Token: "token of " + id, Fingerprints: []string{"print"}})
	}
	return all
}

// TestSync takes all API sessions in parts: what is not among them goes, except
// what came meanwhile, and whoever relied on it is told.
func TestSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, c := connect(t, &handler{})
		knows := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, id := range []string{"a", "b", "c", "d", "e"} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				s, ok := u.Sessions().Await(ctx, "token of "+id)
				cancel()
				if ok && s.ID == id {
					got = append(got, id)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("it knows %q, want %q", got, want)
			}
		}
		send := func(f *wire.Frame) {
			if err := c.Send(f); err != nil {
				t.Fatal(err)
			}
		}
		send(part(t, 0, true, "a", "b"))
		knows("a", "b")
		ended := false
		if _, ok := u.Sessions().Watch("a", "print", func() { ended = true }); !ok {
			t.Fatal("a session that is known cannot be watched")
		}
		send(part(t, 0, false, "b", "c"))
		knows("a", "b", "c") // until all is told
		send(frame(message.TypeAPISessionsUpdated, &message.APISessionsUpdated{Sessions: named("d")}))
		send(frame(message.TypeAPISessionsRemoved, &message.Removed{IDs: []string{"c"}, Tokens: []string{""}}))
		send(part(t, 1, true, "e"))
		knows("b", "d", "e")
		if !ended {
			t.Error("nobody was told that a session is gone")
		}
		if got := c.heard(); len(got) != 0 {
			t.Errorf("it told the controller %v", got)
		}
		// A part is missing, and then one that is late.
		send(part(t, 0, false, "b"))
		send(part(t, 2, true, "c"))
		if got := c.heard(); !slices.Equal(got, []int32{message.TypeResyncRequest}) {
			t.Errorf("with a part missing it told the controller %v", got)
		}
		knows("b", "d", "e")
		send(part(t, 0, false, "b"))
		synctest.Wait()
		<-time.After(syncWait + time.Second)
		if got := c.heard(); !slices.Equal(got, []int32{message.TypeResyncRequest, message.TypeResyncRequest}) {
			t.Errorf("with a part late it told the controller %v", got)
		}
	})
}

// TestAwait waits for a session that is on its way, and not for ever.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, c := connect(t, &handler{})
		time.AfterFunc(3*time.Second, func() {
			_ = c.Send(frame(message.TypeAPISessionsAdded, &message.APISessionsAdded{Sessions: named("a")}))
		})
		began := time.Now()
		if s, ok := u.Sessions().Await(t.Context(), "token of a"); !ok || s.ID != "a" || time.Since(began) != 3*time.Second {
			t.Errorf("%+v, %v after %v", s, ok, time.Since(began))
		}
		began = time.Now()
		if _, ok := u.Sessions().Await(t.Context(), "nobody's"); ok || time.Since(began) != awaitWait {
			t.Errorf("%v after %v", ok, time.Since(began))
		}
		if n := len(u.sessions.waiting); n != 0 {
			t.Errorf("%d are still waited for", n)
		}
	})
}

// TestLateCircuit ends a circuit that its dialer did not wait for.
func TestLateCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, c := connect(t, &handler{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := u.Dial(ctx, &message.CreateCircuit{SessionToken: "x"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		c.mu.Lock()
		asked := c.told[0]
		c.mu.Unlock()
		f := &wire.Frame{Type: message.TypeCircuitCreated, Headers: wire.Headers{}}
		f.Headers.SetText(message.HeaderCircuitID, "late")
		if err := c.Reply(asked, f); err != nil {
			t.Fatal(err)
		}
		if got := c.heard(); !slices.Equal(got, []int32{message.TypeCreateCircuit, message.TypeFault}) {
			t.Errorf("it told the controller %v", got)
		}
	})
}

// TestClients tells of clients that come and go: together, at once all of them,
// and every minute whose sessions are in use.
func TestClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, c := connect(t, &handler{})
		go u.keep(c.line)
		synctest.Wait()
		_, gone := u.Arrived(Client{Token: "one", IdentityID: "alice"})
		u.Arrived(Client{Token: "one", IdentityID: "alice"})
		u.Arrived(Client{Token: "two", IdentityID: "bob"})
		gone()
		<-time.After(2 * time.Minute)
		c.heard()
		c.mu.Lock()
		defer c.mu.Unlock()
		var events []message.ConnectEvents
		var tokens [][]string
		for _, f := range c.told {
			if f.Type == message.TypeAPISessionHeartbeat {
				m, _ := message.Unmarshal[message.APISessionHeartbeat](f.Body)
				tokens = append(tokens, m.Tokens)
			} else if m, err := message.Unmarshal[message.ConnectEvents](f.Body); err == nil && f.Type == message.TypeConnectEvents {
				events = append(events, *m)
			}
		}
		if len(tokens) != 2 || !slices.Equal(tokens[0], []string{"one", "two"}) {
			t.Errorf("sessions in use are %v", tokens)
		}
		if len(events) != 2 || !events[0].Full || events[1].Full {
			t.Fatalf("it told of clients %+v", events)
		}
		for _, e := range events[1].Events {
			if !e.Connected || len(e.Times) != 1 {
				t.Errorf("it told %+v", e)
			}
		}
	})
}
