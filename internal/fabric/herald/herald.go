// Package herald tells of what happens among the routers of a controller while
// somebody looks: who connects and is lost, links and circuits that come and go. It
// owns what has not been looked at yet, which is bounded: who looks too slowly is told
// how much it has missed, and nobody who tells ever waits. It keeps nothing that
// nobody looks for, and must not import anything that talks to routers.
package herald

import (
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
)

// Event is something that happened.
type Event struct {
	Ref    state.Ref // of a volatile kind; there is no id of what never was
	Name   string    // what people call it
	Verb   string
	Reason string       // why, if there is something to say
	At     time.Time    // when
	By     state.Author // who brought it about, if that is known
	Record kind.Record  // as it is, or was; nil if it never was
	Detail any          // what else there is to tell of some events
}

// kept is how many events of a kind are kept for those who look.
const kept = 1024

// Herald is where events are told. The zero value is usable; a nil one tells nobody.
type Herald struct {
	looking atomic.Int64 // how many look, so that nobody waits to learn that nobody does

	mu    sync.Mutex
	rings map[*kind.Def]*ring
}

// ring is the last events of a kind.
type ring struct {
	events []Event // kept of them, or fewer
	next   uint64  // number of the one that comes next
	who    map[*Listener]struct{}
}

// Listener is somebody who looks. Only one goroutine may use it at a time.
type Listener struct {
	herald *Herald
	wake   chan<- struct{}
	at     map[*kind.Def]uint64 // number of the event that it takes next
}

// Listen begins to look for events of some kinds. Whenever there are some, wake has one.
func (h *Herald) Listen(wake chan<- struct{}, kinds ...*kind.Def) *Listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looking.Add(1)
	l := &Listener{herald: h, wake: wake, at: map[*kind.Def]uint64{}}
	if h.rings == nil {
		h.rings = map[*kind.Def]*ring{}
	}
	for _, d := range kinds {
		r := h.rings[d]
		if r == nil {
			r = &ring{who: map[*Listener]struct{}{}}
			h.rings[d] = r
		}
		r.who[l] = struct{}{}
		l.at[d] = r.next
	}
	return l
}

// Close ends it.
func (l *Listener) Close() {
	l.herald.looking.Add(-1)
	l.herald.mu.Lock()
	defer l.herald.mu.Unlock()
	for d := range l.at {
		r := l.herald.rings[d]
		if delete(r.who, l); len(r.who) == 0 {
			delete(l.herald.rings, d)
		}
	}
}

// Wanted reports whether anybody looks for events of a kind, for those to whom it costs
// something to make one.
func (h *Herald) Wanted(d *kind.Def) bool {
	if h == nil || h.looking.Load() == 0 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rings[d] != nil
}

// Tell tells of an event.
func (h *Herald) Tell(e Event) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rings[e.Ref.Def]
	if r == nil {
		return
	}
	if len(r.events) < kept {
		r.events = append(r.events, e)
	} else {
		r.events[r.next%kept] = e
	}
	r.next++
	for l := range r.who {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// Take returns the next event; ok is false if there is none. missed is how many there
// were before it that are not kept any more.
func (l *Listener) Take() (e Event, missed uint64, ok bool) {
	l.herald.mu.Lock()
	defer l.herald.mu.Unlock()
	var from *kind.Def
	for d, at := range l.at {
		r := l.herald.rings[d]
		if at == r.next {
			continue
		}
		if oldest := r.next - uint64(len(r.events)); at < oldest {
			missed += oldest - at
			l.at[d], at = oldest, oldest
		}
		if is := r.events[at%kept]; from == nil || is.At.Before(e.At) {
			from, e = d, is
		}
	}
	if from == nil {
		return e, missed, false
	}
	l.at[from]++
	return e, missed, true
}
