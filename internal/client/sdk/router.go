package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/internal/wire/stream"
)

const (
	// reachTime is how long a router may take to be connected to.
	reachTime = 10 * time.Second
	// probeEvery is how often a router is asked for a sign of life, probeWait
	// how long that may take, and silence how long a router that owes one may
	// say nothing at all.
	probeEvery = 30 * time.Second
	probeWait  = 10 * time.Second
	silence    = 30 * time.Second
	// maxMessage is the largest message of somebody else that is taken: some
	// clients send whatever their program writes as one. Ours are smaller.
	maxMessage = 128 << 20
	// maxConns is how many connections one router may hold with us.
	maxConns = 100_000
)

// end is one end of something that a router knows by number: a connection, or
// the place where a service is hosted. Its methods run where frames are read.
type end interface {
	named(number uint32) // before anything else
	packet(p *wire.Packet)
	frame(f *wire.Frame)
	lost(err error)
}

// router is the connection to one edge router, shared by all that goes over
// it.
type router struct {
	client  *Client
	name    string
	address string
	id      string
	turn    uint64
	bound   bool // it tells when a service is hosted
	both    bool // it tells the two ends of a circuit apart
	ch      *channel.Channel

	parting atomic.Bool  // the identity has a new certificate
	latency atomic.Int64 // in nanoseconds
	heard   atomic.Int64 // when, in nanoseconds
	since   time.Time
	stuck   atomic.Int32 // readers that wait for a slow connection of ours
	pool    *stream.Pool // what connections have on their way

	mu   sync.Mutex
	last uint32
	ends map[uint32]end
}

// attempt is a connection to a router, made or being made.
type attempt struct {
	done   chan struct{} // closed when it is known how it went
	router *router
	err    error
}

// close ends the connection, if there is one.
func (a *attempt) close() {
	if isClosed(a.done) && a.router != nil {
		a.router.ch.Close(nil)
	}
}

// live reports whether the connection is there.
func (a *attempt) live() bool { return isClosed(a.done) && a.err == nil && a.router.ch.Err() == nil }

// reach returns a connection to a router, made now if there is none. All who
// ask meanwhile share it.
func (c *Client) reach(ctx context.Context, p *routerPlace) (*router, error) {
	address := p.address()
	c.mu.Lock()
	a := c.routers[address]
	if a == nil || isClosed(a.done) && !a.live() {
		a = &attempt{done: make(chan struct{})}
		c.routers[address] = a
		if c.over.Err() != nil {
			a.err = net.ErrClosed
			close(a.done)
		} else {
			c.wg.Go(func() { c.connect(a, p.Name, address) })
		}
	}
	c.mu.Unlock()
	select {
	case <-a.done:
		return a.router, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the router %s at %s: %w", p.Name, address, ctx.Err())
	}
}

// connect makes a connection to a router, for whoever waits.
func (c *Client) connect(a *attempt, name, address string) {
	ctx, cancel := context.WithTimeout(c.over, reachTime)
	defer cancel()
	r := &router{client: c, name: name, address: address, turn: c.watch.turn(), ends: map[uint32]end{}, pool: &stream.Pool{Size: windows, Least: leastWindow}}
	a.err = r.open(ctx)
	if a.err == nil {
		a.router = r
		r.is(Connected, nil)
		c.wg.Go(r.probe)
		c.log.Info("connected to a router", "router", name, "address", address, "took", time.Duration(r.latency.Load()).Round(time.Microsecond).String())
	} else {
		r.is(Away, a.err)
		c.log.Warn("a router cannot be reached", "router", name, "address", address, "error", a.err)
	}
	close(a.done)
	if c.over.Err() != nil {
		a.close()
	}
}

// open connects and says hello.
func (r *router) open(ctx context.Context) error {
	at, err := url.Parse(r.address)
	if err != nil || at.Port() == "" {
		return fmt.Errorf("%q is no address of a router", r.address)
	}
	plain := net.Dialer{}
	if d := r.client.opt.Dialer; d != nil {
		plain = *d
	}
	plain.KeepAlive = 15 * time.Second
	conn, err := channel.DialTLS(ctx, &plain, r.client.routerTLS(at.Hostname(), message.EdgeALPN), at.Host)
	if err != nil {
		return explain(r.address, err)
	}
	session := r.client.api.session.Load()
	headers := wire.Headers{}
	headers.SetText(message.HeaderClientToken, session.Token)
	began := r.client.opt.Now()
	got, err := channel.Greet(conn, began.Add(reachTime), channel.Hello{ID: session.Identity.ID, Headers: headers})
	if err != nil {
		_ = conn.Close()
		return explain(r.address, err)
	}
	now := r.client.opt.Now()
	r.latency.Store(int64(now.Sub(began)))
	r.heard.Store(now.UnixNano())
	r.since = now
	r.id, r.bound = got.Text(message.HeaderListenerID), got.Bool(message.HeaderTellsBound)
	r.both = got.Bool(message.HeaderBothEnds)
	r.ch = channel.New(got.Text(message.HeaderConnectionID), channel.Options{
		Handle: r.handle, Packet: r.packet, Closed: r.closed,
		Bounds: wire.Bounds{Headers: channel.MaxHeaders, Body: maxMessage},
		Beat:   -1, Now: r.client.opt.Now,
	})
	r.ch.Attach(conn)
	return nil
}

// young reports whether the connection was made just now. A router that does
// not know the session says so by closing it, a moment after its hello.
func (r *router) young() bool { return r.client.opt.Now().Sub(r.since) < reachTime }

// explain says why a router could not be reached, without what is said of
// controllers.
func explain(address string, err error) error {
	text := fmt.Sprintf("the certificate of %s is of a CA that the identity's file does not name", address)
	err = remote.Explain(address, err)
	if e, ok := errors.AsType[*remote.Unreachable](err); ok {
		text, _, _ = strings.Cut(e.Why, "; ")
	} else if _, ok := errors.AsType[*remote.Untrusted](err); !ok {
		return err
	}
	return errors.New(text)
}

// probe asks for signs of life until the connection ends.
func (r *router) probe() {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.ch.Done():
			return
		}
		began := r.client.opt.Now()
		f := &wire.Frame{Type: message.TypeLatency, Headers: wire.Headers{}}
		f.Headers.SetUint64(message.FirstReflected, uint64(began.UnixNano()))
		ctx, cancel := context.WithTimeout(r.ch.Context(), probeWait)
		_, err := r.ch.Request(ctx, f)
		cancel()
		now := r.client.opt.Now()
		switch quiet := now.Sub(time.Unix(0, r.heard.Load())); {
		case err == nil:
			r.latency.Store(int64(now.Sub(began)))
		case quiet > silence && r.stuck.Load() == 0:
			r.ch.Close(fmt.Errorf("the router %s says nothing", r.name))
		}
	}
}

// loss is how the end of the connection counts in the log: routers part with who
// shows a new certificate, which is nothing to worry about.
func (r *router) loss() slog.Level {
	if r.parting.Load() {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// closed tells all that goes over the connection that it has ended.
func (r *router) closed(_ *channel.Channel, reason error) {
	r.mu.Lock()
	ends := r.ends
	r.ends = nil
	r.mu.Unlock()
	// A router lets those go whose API session has ended. To ask for leave again
	// tells whether it has, and gets another.
	r.client.mu.Lock()
	clear(r.client.sessions)
	r.client.mu.Unlock()
	r.client.renewal.soon.Store(true)
	if r.client.over.Err() == nil {
		r.is(Away, reason)
		r.client.log.Log(context.Background(), r.loss(), "the connection to a router has ended", "router", r.name, "address", r.address, "reason", reason)
	}
	for _, e := range ends {
		e.lost(fmt.Errorf("the connection to the router %s has ended: %w", r.name, reason))
	}
}

// errMany says that a router holds as many connections as it may.
var errMany = errors.New("too many connections go over one router")

// add gives an end a number, unless it has one from the router.
func (r *router) add(e end, number uint32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ends == nil:
		return net.ErrClosed
	case len(r.ends) >= maxConns:
		return errMany
	case number == 0:
		number = r.free()
	case r.ends[number] != nil:
		return fmt.Errorf("the router gives the number %d twice", number)
	}
	e.named(number)
	r.ends[number] = e
	return nil
}

// free is a number that nothing has.
func (r *router) free() uint32 {
	for {
		if r.last++; r.last >= message.FirstAssigned-1 {
			r.last = 1
		}
		if r.ends[r.last] == nil {
			return r.last
		}
	}
}

func (r *router) remove(number uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ends, number)
}

func (r *router) find(number uint32) end {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ends[number]
}

// packet hands data to the connection that it is for. What is for none is
// normal after a close.
func (r *router) packet(_ *channel.Channel, p *wire.Packet) bool {
	r.heard.Store(r.client.opt.Now().UnixNano())
	switch p.Type {
	case message.TypeData, message.TypePayload, message.TypeAck, message.TypeStreamControl:
	default:
		return false
	}
	if number, ok := p.Uint32(message.HeaderConn); ok {
		if e := r.find(number); e != nil {
			e.packet(p)
		}
	}
	return true
}

// handle hands everything else on.
func (r *router) handle(_ *channel.Channel, f *wire.Frame) {
	number, _ := f.Headers.Uint32(message.HeaderConn)
	e := r.find(number)
	switch {
	case e != nil:
		e.frame(f)
	case f.Type == message.TypeConnInspect:
		_ = r.ch.Reply(f, inspected(number, 0)) // there is no such thing
	case f.Type == message.TypeDial:
		_ = r.ch.Reply(f, dialFailed(number, "nothing is hosted under this number"))
	case f.Type == message.TypeConnected:
		r.late(f)
	}
}

// late ends what a router has connected after the dial was given up: a router of
// others does not mind that one is. Where clients hold the flow it goes by circuits
// alone.
func (r *router) late(f *wire.Frame) {
	number, _ := f.Headers.Uint32(message.HeaderConn)
	if f.Headers.Bool(message.HeaderClientFlow) {
		_ = r.ch.Send(about(message.TypeCircuitEnded, number, f.Headers[message.HeaderClientCircuit]))
		return
	}
	_ = r.ch.Send(about(message.TypeClosed, number, nil))
}

func inspected(number uint32, is byte) *wire.Frame {
	f := about(message.TypeConnInspected, number, nil)
	f.Headers[message.HeaderConnType] = []byte{is}
	return f
}

func dialFailed(number uint32, why string) *wire.Frame {
	return about(message.TypeDialFailed, number, []byte(why))
}

// about is a frame that concerns an end.
func about(typ int32, number uint32, body []byte) *wire.Frame {
	f := &wire.Frame{Type: typ, Headers: wire.Headers{}, Body: body}
	f.Headers.SetUint32(message.HeaderConn, number)
	return f
}

// nearest returns a connection to one of a session's routers: the quickest of
// those that are connected, or the first of some that answers.
func (c *Client) nearest(ctx context.Context, s *session, except map[string]bool) (*router, error) {
	var places []*routerPlace
	for _, p := range s.Routers {
		if p.address() != "" && !except[p.address()] {
			places = append(places, p)
		}
	}
	if r := c.quickest(places); r != nil {
		return r, nil
	}
	slices.SortStableFunc(places, func(a, b *routerPlace) int { return a.Cost - b.Cost })
	const atOnce = 3
	var last error
	for len(places) > 0 {
		n := min(atOnce, len(places))
		r, err := c.firstOf(ctx, places[:n])
		if err == nil || ctx.Err() != nil {
			return r, err
		}
		last, places = err, places[n:]
	}
	if last != nil {
		return nil, say(ErrNoRouter, "no edge router can be reached: %v", last)
	}
	return nil, say(ErrNoRouter, "none of the %d edge routers for the service is online; look at: netkeep list edge-routers", len(s.Routers))
}

// quickest is the router with the least latency that is connected.
func (c *Client) quickest(places []*routerPlace) *router {
	c.mu.Lock()
	defer c.mu.Unlock()
	var best *router
	for _, p := range places {
		if a := c.routers[p.address()]; a != nil && a.live() && (best == nil || a.router.latency.Load() < best.latency.Load()) {
			best = a.router
		}
	}
	return best
}

// firstOf connects to some routers and returns the first that is connected.
func (c *Client) firstOf(ctx context.Context, places []*routerPlace) (*router, error) {
	type outcome struct {
		r   *router
		err error
	}
	came := make(chan outcome, len(places))
	for _, p := range places {
		go func() {
			r, err := c.reach(ctx, p)
			came <- outcome{r, err}
		}()
	}
	var last error
	for range places {
		o := <-came
		if o.err == nil {
			return o.r, nil
		}
		last = o.err
	}
	return nil, last
}
