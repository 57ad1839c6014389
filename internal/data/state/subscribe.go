package state

import (
	"context"
	"slices"
	"time"

	"netkeep/internal/data/store"
	"netkeep/internal/lang/kind"
)

// Change is what became of one record. Before is nil if it was not there, and
// After if it is not any more. Both are shared: never write to them.
type Change struct {
	Ref
	Before, After kind.Record
}

// Write is the changes that one author made, as one write.
type Write struct {
	Author  Author // none for what a version wrote that kept no authors
	Changes []Change
}

// Event is one step of memory: a batch of the log, whichever controller wrote
// it, or a new beginning.
type Event struct {
	Rev store.Rev
	// Reset, if not nil, is everything as it is at Rev. It takes the place of
	// all that came before.
	Reset *Snapshot
	// After is everything as it is at Rev, for those who must look around the
	// records that changed.
	After *Snapshot

	Time   time.Time // of the batch
	Writes []Write   // in their order, no two of the same record

	weight int
}

// What an event is thought to weigh beyond its records.
const eventWeight, changeWeight = 200, 100

// add adds the changes of a write, except for those of records that memory
// never held.
func (e *Event) add(by Author, changes []change) {
	w := Write{Author: by, Changes: make([]Change, 0, len(changes))}
	for _, c := range changes {
		if c.old == nil && c.row == nil {
			continue
		}
		told := Change{Ref: Ref{c.def, c.id}}
		if c.old != nil {
			told.Before = c.old.rec
			e.weight += int(c.old.size)
		}
		if c.row != nil {
			told.After = c.row.rec
			e.weight += int(c.row.size)
		}
		w.Changes = append(w.Changes, told)
	}
	if len(w.Changes) > 0 {
		e.Writes = append(e.Writes, w)
		e.weight += changeWeight * len(w.Changes)
	}
}

// refs names the records that differ.
func (e *Event) refs() []Ref {
	var refs []Ref
	for _, w := range e.Writes {
		for _, c := range w.Changes {
			refs = append(refs, c.Ref)
		}
	}
	return refs
}

// Attend has fn told of every change of memory, in order: what it was, what it
// is, and every record that differs. before is nil where anything may differ:
// at once, for what there is now, and after every load. The snapshot is public
// by then, and whoever wrote has yet to be answered, so fn is for what the
// writer's next request must find done. It must be quick and must neither
// write nor subscribe: all writes wait for it. Whatever can be a moment later
// uses Subscribe.
func (s *State) Attend(fn func(before, after *Snapshot, changed []Ref)) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.attendants = append(s.attendants, fn)
	fn(nil, s.Snapshot(), nil)
}

// Subscription is a feed of every change for one part of the program, which
// may take its time.
type Subscription struct {
	state *State
	wake  chan struct{} // holds one if there may be something to take

	// Guarded by state.telling:
	queue  []Event
	weight int
	reset  bool // nothing is queued: what comes next is a snapshot
}

// Subscribe returns a feed that begins with a Reset to what there is. Then
// comes every change, each once and in the order of the log. A subscriber that
// does not keep up costs nobody else anything: what waits for it is dropped,
// and a Reset to what there is by then comes next, as after a load of
// everything.
func (s *State) Subscribe() *Subscription {
	sub := &Subscription{state: s, wake: make(chan struct{}, 1)}
	s.telling.Lock()
	defer s.telling.Unlock()
	s.subscribers = append(s.subscribers, sub)
	sub.restart()
	return sub
}

// Close ends the feed.
func (sub *Subscription) Close() {
	s := sub.state
	s.telling.Lock()
	defer s.telling.Unlock()
	s.subscribers = slices.DeleteFunc(s.subscribers, func(other *Subscription) bool { return other == sub })
	sub.queue = nil
}

// Next waits for the next event. It fails when ctx ends or the State is
// closed. Only one goroutine may call it at a time.
func (sub *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if ev, ok := sub.take(); ok {
			return ev, nil
		}
		select {
		case <-sub.wake:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		case <-sub.state.stopped:
			return Event{}, errStopping
		}
	}
}

func (sub *Subscription) take() (Event, bool) {
	s := sub.state
	s.telling.Lock()
	defer s.telling.Unlock()
	switch {
	case sub.reset:
		sub.reset = false
		now := s.Snapshot()
		return Event{Rev: now.Rev, Reset: now, After: now}, true
	case len(sub.queue) == 0:
		return Event{}, false
	}
	ev := sub.queue[0]
	sub.queue[0] = Event{} // or the queue would keep its records
	sub.queue = sub.queue[1:]
	sub.weight -= ev.weight
	return ev, true
}

// restart drops what waits. The caller holds state.telling.
func (sub *Subscription) restart() {
	sub.queue, sub.weight, sub.reset = nil, 0, true
	sub.signal()
}

// push queues an event, unless a Reset will have it. The caller holds
// state.telling.
func (sub *Subscription) push(ev Event) {
	switch {
	case sub.reset:
	case len(sub.queue) > 0 && sub.weight+ev.weight > sub.state.opt.MaxBehind:
		sub.restart()
	default:
		sub.queue = append(sub.queue, ev)
		sub.weight += ev.weight
		sub.signal()
	}
}

func (sub *Subscription) signal() {
	select {
	case sub.wake <- struct{}{}:
	default:
	}
}

// publish makes a snapshot the current one and tells of it.
func (s *State) publish(next *Snapshot, ev Event) {
	ev.Rev, ev.After = next.Rev, next
	ev.weight += eventWeight
	s.telling.Lock()
	defer s.telling.Unlock()
	before := s.current.Swap(next)
	for _, fn := range s.attendants {
		fn(before, next, ev.refs())
	}
	for _, sub := range s.subscribers {
		sub.push(ev)
	}
}

// replace makes a snapshot the current one that was loaded.
func (s *State) replace(next *Snapshot) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.current.Store(next)
	for _, fn := range s.attendants {
		fn(nil, next, nil)
	}
	for _, sub := range s.subscribers {
		sub.restart()
	}
}
