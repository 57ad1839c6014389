package sdk

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// State is how a connection stands.
type State int

// The states.
const (
	Connected State = iota + 1
	Away            // for now; it is tried again when it is needed
	Over            // for good: the client was closed
)

// Event says that the connection to a router or to the controller stands in
// another way than before.
type Event struct {
	State State
	// Router is the name of the router; empty if it is the controller.
	Router  string
	Address string
	// Err is why it is away.
	Err error
	At  time.Time

	turn uint64 // of the connection
}

// watch is how all connections stand. Who looks at it sees what became of each
// since the last look, and holds nobody up.
type watch struct {
	turns  atomic.Uint64
	mu     sync.Mutex
	last   uint64
	states map[string]*stand // by address
	next   chan struct{}     // closed when something has changed
	over   bool
}

// stand is how one connection stands since the numbered change.
type stand struct {
	Event
	number uint64
}

func newWatch() *watch { return &watch{states: map[string]*stand{}, next: make(chan struct{})} }

// turn is for a connection that is made later than all that have one.
func (w *watch) turn() uint64 { return w.turns.Add(1) }

// note says how a connection stands now. That one has ended may be known before
// it is said that it was made, and after another was made in its place.
func (w *watch) note(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.states[e.Address]
	stale := was != nil && (e.turn < was.turn || e.turn == was.turn && was.State == Away)
	if w.over || stale {
		return
	}
	if was != nil && was.State == e.State {
		was.turn = e.turn
		return
	}
	w.put(e)
	w.wake()
}

// end says that nothing is connected any more, and will not be again.
func (w *watch) end(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.over = true
	for _, s := range w.after(0) {
		w.put(Event{State: Over, Router: s.Router, Address: s.Address, At: at})
	}
	w.wake()
}

// put, wake and after are for those who hold the lock.
func (w *watch) put(e Event) {
	w.last++
	w.states[e.Address] = &stand{e, w.last}
}

func (w *watch) wake() {
	close(w.next)
	w.next = make(chan struct{})
}

// after is what changed after a change, in order.
func (w *watch) after(number uint64) []stand {
	var all []stand
	for _, s := range w.states {
		if s.number > number {
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, func(a, b stand) int { return cmp.Compare(a.number, b.number) })
	return all
}

// look is what changed after a change, and what is closed when there is more;
// nil if there will be none.
func (w *watch) look(number uint64) ([]stand, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return w.after(number), nil
	}
	return w.after(number), w.next
}

// Events tells how each connection stands, and then what changes, until ctx ends
// or the client is closed. Who is slow is told the last of several changes.
func (c *Client) Events(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var seen uint64
		for ctx.Err() == nil {
			news, more := c.watch.look(seen)
			for _, s := range news {
				if !yield(s.Event) {
					return
				}
				seen = s.number
			}
			if more == nil {
				return
			}
			select {
			case <-more:
			case <-ctx.Done():
			}
		}
	}
}

// Stands tells how each connection stands now, routers by their names; that to the
// controller has none.
func (c *Client) Stands() (all []Event) {
	news, _ := c.watch.look(0)
	for _, s := range news {
		all = append(all, s.Event)
	}
	slices.SortFunc(all, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Router, b.Router), cmp.Compare(a.Address, b.Address))
	})
	return all
}

// controllerIs notes how the connection to the controller stands.
func (c *Client) controllerIs(err error) {
	state := Connected
	if err != nil {
		state = Away
	}
	c.watch.note(Event{State: state, Address: c.id.address, Err: err, At: c.opt.Now(), turn: c.watch.turn()})
}

// is notes how the connection to a router stands.
func (r *router) is(state State, err error) {
	r.client.watch.note(Event{State: state, Router: r.name, Address: r.address, Err: err, At: r.client.opt.Now(), turn: r.turn})
}
