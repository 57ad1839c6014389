package sdk

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"sync"
	"time"
)

// Precedence is how a host stands beside others of the same service.
type Precedence byte

// The precedences.
const (
	Default  Precedence = 0
	Required Precedence = 1 // before all that are not
	Failed   Precedence = 2 // only if there is no other
)

// ListenOptions are what may be said of hosting.
type ListenOptions struct {
	Cost       uint16
	Precedence Precedence
	// Instance is a name that the host has alone in its service, if it has one,
	// and Secret shows to others of the same name that they may have it too.
	Instance string
	Secret   []byte
	// Routers is at how many routers the service is hosted; 3 if not given.
	Routers int
	// Patient has Listen return before any router has agreed.
	Patient bool
	// Pending is how many dials may wait to be accepted; 64 if not given.
	Pending int
}

const (
	usualRouters = 3
	usualPending = 64
	// How long it takes to try again to host: longer each time, as long as
	// nothing comes of it.
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// lookParts is after how many polls it is looked for further routers: one that
	// was lost may be back, and nobody says so.
	lookParts = 3
	// sameTime is how long routers that seem the same are taken for that.
	sameTime = time.Minute
)

// Listener hosts a service, at some routers at a time. It is a net.Listener.
type Listener struct {
	client  *Client
	service string
	opt     ListenOptions
	id      string // that routers know it by, whenever it comes back
	pending chan *Pending

	over context.Context
	end  context.CancelFunc
	lost chan struct{} // has an element when a binding was lost

	mu         sync.Mutex
	cost       uint16
	precedence Precedence
	bindings   map[string]*binding // by the router's address
	first      chan struct{}       // closed when a router has agreed
	never      chan struct{}       // closed when the controller said that none may
	why        error               // why the last try came to nothing
	said       string              // what the log was told of it

	around   string // for which routers it is hosted wherever it can be
	aroundAt time.Time
	drops    int // bindings that were lost
	// droppedAt is when the last of them was.
	droppedAt time.Time
}

// Listen hosts a service until the listener is closed. It returns when a first
// router has agreed, or with why none did; the listener binds again wherever it
// is lost.
func (c *Client) Listen(ctx context.Context, service string, opt ListenOptions) (*Listener, error) {
	if _, err := c.service(ctx, service, toBind); err != nil {
		return nil, err
	}
	if opt.Routers == 0 {
		opt.Routers = usualRouters
	}
	if opt.Pending == 0 {
		opt.Pending = usualPending
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	l := &Listener{
		client: c, service: service, opt: opt, id: hex.EncodeToString(id), pending: make(chan *Pending, opt.Pending),
		lost: make(chan struct{}, 1), bindings: map[string]*binding{}, first: make(chan struct{}), never: make(chan struct{}),
		cost: opt.Cost, precedence: opt.Precedence,
	}
	l.over, l.end = context.WithCancel(c.over)
	c.mu.Lock()
	if c.over.Err() != nil {
		c.mu.Unlock()
		return nil, net.ErrClosed
	}
	c.listeners[l] = struct{}{}
	c.wg.Go(l.keep)
	c.mu.Unlock()
	if opt.Patient {
		return l, nil
	}
	if err := l.await(ctx); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// await returns when a router has agreed.
func (l *Listener) await(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectTime)
		defer cancel()
	}
	select {
	case <-l.first:
		return nil
	case <-l.over.Done():
		return net.ErrClosed
	case <-l.never:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why != nil {
		return l.why
	}
	return say(context.Cause(ctx), "the service %s was not hosted in time", l.service)
}

// keep hosts the service at as many routers as it should be.
func (l *Listener) keep() {
	var p pace
	for l.over.Err() == nil {
		began, known := l.client.opt.Now(), l.client.known()
		bound, err := l.fill()
		l.note(err)
		l.complain(bound, err)
		again, well := lookParts*l.client.opt.Poll, bound > 0 && err == nil
		var changed <-chan struct{}
		if !well {
			again, changed = p.wait(), known.next
		}
		quiet, on := l.rest(jitter(again), bound > 0, changed)
		if !on {
			return
		}
		if well && quiet {
			p = pace{}
			continue
		}
		if !well && isClosed(changed) {
			p = pace{} // what was missing may be there now
			continue
		}
		// What is lost is bound again at once, unless it is lost all the time.
		if left := p.after(l.client.opt.Now().Sub(began), well); left > 0 {
			if _, on := l.rest(jitter(left), false, nil); !on {
				return
			}
		}
	}
}

// pace is how soon something is tried again: at once, if it went well for a
// while, and ever more slowly while it does not.
type pace struct{ pause time.Duration }

// calm is how long something must go well not to be taken for failing.
const calm = 10 * time.Second

func (p *pace) wait() time.Duration { return max(p.pause, firstPause) }

// after returns how long to wait still, after a try that lasted so long.
func (p *pace) after(lasted time.Duration, well bool) time.Duration {
	if well && lasted >= calm {
		p.pause = 0
		return 0
	}
	least := p.pause
	p.pause = min(2*p.wait(), lastPause)
	return max(0, least-lasted)
}

// note keeps why a try came to nothing.
func (l *Listener) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why = err
	if p, ok := errors.AsType[*problem](err); ok && p.final() && !isClosed(l.never) {
		close(l.never)
	}
}

// complain says why the service is hosted at fewer routers than it should be,
// once.
func (l *Listener) complain(bound int, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	l.mu.Lock()
	again := text == l.said
	l.said = text
	l.mu.Unlock()
	if err != nil && !again && l.over.Err() == nil {
		l.client.log.Warn("a service is not hosted at all its routers", "service", l.service, "routers", bound, "error", err)
	}
}

// rest waits until it is time to look again, or something was lost if that is
// to be heeded, or what services there are has changed. It reports whether
// nothing happened until it was time, and false when the listener is closed.
func (l *Listener) rest(d time.Duration, heed bool, changed <-chan struct{}) (quiet, on bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	lost := l.lost
	if !heed {
		lost = nil
	}
	select {
	case <-t.C:
		return true, true
	case <-lost:
	case <-changed:
	case <-l.over.Done():
		return false, false
	}
	return false, true
}

// fill binds at routers until there are enough, and returns at how many the
// service is hosted then.
func (l *Listener) fill() (int, error) {
	if n := l.count(); n >= l.opt.Routers {
		return n, nil
	}
	ctx, cancel := context.WithTimeout(l.over, apiTime)
	defer cancel()
	drops, around := l.dropped(), l.client.around.look(ctx, l.client)
	if n := l.count(); n > 0 && l.same(around) {
		return n, nil
	}
	// By name, each time: it may be another that is called so now.
	s, err := l.client.service(ctx, l.service, toBind)
	if err != nil {
		return l.count(), err
	}
	leave, _, err := l.client.sessionFor(ctx, s, toBind, true)
	if err != nil {
		return l.count(), err
	}
	places := l.candidates(leave)
	if len(places) == 0 && l.count() == 0 {
		return 0, say(ErrNoRouter, "none of the %d edge routers for the service %s is online; look at: netkeep list edge-routers", len(leave.Routers), l.service)
	}
	for len(places) > 0 && l.count() < l.opt.Routers {
		n := min(l.opt.Routers-l.count(), len(places))
		failed := make(chan error, n)
		for _, p := range places[:n] {
			go func() { failed <- l.bind(ctx, p, s, leave) }()
		}
		for range n {
			if e := <-failed; e != nil {
				err = e
			}
		}
		places = places[n:]
	}
	if l.count() >= l.opt.Routers {
		err = nil
	}
	if err == nil {
		l.keepAround(around, drops)
	}
	return l.count(), err
}

// candidates are routers at which the service could be hosted and is not.
func (l *Listener) candidates(s *session) []*routerPlace {
	l.mu.Lock()
	defer l.mu.Unlock()
	var places []*routerPlace
	for _, p := range s.Routers {
		if at := p.address(); at != "" && l.bindings[at] == nil {
			places = append(places, p)
		}
	}
	return places
}

// Stands is at how many routers the service is hosted, and why it is not at more, if
// that is known.
func (l *Listener) Stands() (routers int, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bindings), l.why
}

func (l *Listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bindings)
}

// Update changes what the host costs and how it stands beside others.
func (l *Listener) Update(cost uint16, precedence Precedence) {
	l.mu.Lock()
	l.cost, l.precedence = cost, precedence
	all := l.all()
	l.mu.Unlock()
	for _, b := range all {
		b.update(cost, precedence)
	}
}

// Health tells the network whether what is hosted is well.
func (l *Listener) Health(well bool) {
	l.mu.Lock()
	all := l.all()
	l.mu.Unlock()
	for _, b := range all {
		b.health(well)
	}
}

// all is the bindings; the lock must be held.
func (l *Listener) all() []*binding {
	var all []*binding
	for _, b := range l.bindings {
		all = append(all, b)
	}
	return all
}

// AcceptPending waits for a dial and leaves it open whether it is accepted.
func (l *Listener) AcceptPending() (*Pending, error) {
	select {
	case p := <-l.pending:
		return p, nil
	case <-l.over.Done():
		return nil, net.ErrClosed
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		p, err := l.AcceptPending()
		if err != nil {
			return nil, err
		}
		// A dialer that is gone already is no error of the listener.
		if conn, err := p.Accept(); err == nil {
			return conn, nil
		}
	}
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return Addr(l.service) }

// Close implements net.Listener. Connections that were accepted go on.
func (l *Listener) Close() error {
	l.end()
	l.mu.Lock()
	all := l.all()
	clear(l.bindings)
	l.mu.Unlock()
	for _, b := range all {
		b.unbind()
	}
	for {
		select {
		case p := <-l.pending:
			p.Refuse("the service is not hosted here any more")
			continue
		default:
		}
		break
	}
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	delete(l.client.listeners, l)
	return nil
}
