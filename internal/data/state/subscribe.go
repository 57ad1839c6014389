package state

import (
	"context"
	"slices"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
)

// Change is what became of one record. Before is nil if it was not there, and
// After if it is not any more. Both are shared: never write to them.
type Change struct {
	Ref
	Before, After kind.Record

	old, row *row // that hold them
}

// Write is the changes that one author made, as one write.
type Write struct {
	Author  Author // none for what a version wrote that kept no authors
	Changes []Change
	Entries []Entry // what was added to logs with it
	// Told is what the journal is to note that is no change; only the journal sees it.
	Told []kind.Record
}

// Entry is a record that was added to a log.
type Entry struct {
	Def    *kind.Def
	Record kind.Record
}

// Event is one step of memory: a batch of the log, whichever controller wrote
// it, or a new beginning.
type Event struct {
	Rev store.Rev
	// Reset, if not nil, is everything as it is at Rev. It takes the place of
	// all that came before.
	Reset *Snapshot
	// After is everything as it is at Rev, for those who must look around the
	// records that changed. Bare events have none.
	After *Snapshot

	Time   time.Time // of the batch
	Writes []Write   // in their order, no two of the same record

	before  mark        // what After had before
	after   mark        // what After has
	touched []*kind.Def // kinds of records that changed
	weight  int
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
		if !slices.Contains(e.touched, c.def) {
			e.touched = append(e.touched, c.def)
		}
		if c.def.Lane == kind.Log {
			w.Entries = append(w.Entries, Entry{c.def, c.row.rec})
			e.weight += changeWeight + int(c.row.size)
			continue
		}
		told := Change{Ref: Ref{c.def, c.id}, old: c.old, row: c.row}
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
	if len(w.Changes)+len(w.Entries) > 0 {
		e.Writes = append(e.Writes, w)
		e.weight += changeWeight * len(w.Changes)
	}
}

// concerns reports whether a record of one of some kinds changed; none are all.
func (e *Event) concerns(kinds []*kind.Def) bool {
	return len(kinds) == 0 || slices.ContainsFunc(kinds, func(d *kind.Def) bool { return slices.Contains(e.touched, d) })
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
// may take its time. It holds nothing: one that is not read any more needs no
// end.
type Subscription struct {
	state *State
	kinds []*kind.Def
	at    uint64    // number of the step that comes next
	last  *Snapshot // of the step before, while there are more
	bare  bool
}

// Subscribe returns a feed that begins with a Reset to what there is. Then
// comes every change, each once and in the order of the log; with kinds, only
// the steps in which one of these changed. A subscriber that does not keep up
// costs nobody anything: where what it has not read is forgotten, a Reset to
// what there is by then comes next, as after a load of everything.
func (s *State) Subscribe(kinds ...*kind.Def) *Subscription {
	return &Subscription{state: s, kinds: kinds}
}

// SubscribeAt returns a feed that goes on from a revision, as if there had been
// a Reset to that. If what follows it is forgotten, or has not been yet, it
// begins with a Reset to what there is.
func (s *State) SubscribeAt(rev store.Rev, kinds ...*kind.Def) *Subscription {
	sub := s.Subscribe(kinds...)
	if at, ok := s.ring.seek(rev); ok {
		sub.at = at
	}
	return sub
}

// Bare has the feed leave out After: who needs the records alone can be much
// further behind.
func (sub *Subscription) Bare() *Subscription {
	sub.bare = true
	return sub
}

// Next waits for the next event. It fails when ctx ends or the State is
// closed. Only one goroutine may call it at a time.
func (sub *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		ev, next, wait := sub.state.ring.read(sub.at, sub.last, sub.kinds, sub.bare)
		if sub.at, sub.last = next, ev.After; wait == nil {
			return ev, nil
		}
		select {
		case <-wait.open:
			sub.at = max(sub.at, wait.from)
			continue
		case <-ctx.Done():
		case <-sub.state.stopped:
		}
		sub.state.ring.leave(wait)
		if err := ctx.Err(); err != nil {
			return Event{}, err
		}
		return Event{}, errStopping
	}
}

// publish makes a step of memory: what it leads to is the current snapshot from
// here on, and readers are told.
func (s *State) publish(ev Event) {
	ev.weight += eventWeight
	s.telling.Lock()
	defer s.telling.Unlock()
	before := s.current.Swap(ev.After)
	if ev.Reset != nil {
		before = nil
	}
	refs := ev.refs()
	for _, fn := range s.attendants {
		fn(before, ev.After, refs)
	}
	s.ring.add(ev)
}
