package state

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
)

// ring is the last steps of memory, by revision, written once and read by
// whoever likes, at their own pace. It is bounded, and readers hold nothing of
// it: one that is too far behind finds that its place is gone.
//
// Who writes only adds a step and nudges. Those who wait are woken by a
// goroutine of the ring's own, some at a time, so a write costs the same whoever
// waits.
type ring struct {
	most int // weight of what is kept, except that the last step always is

	mu     sync.RWMutex
	first  uint64    // number of the oldest step that is kept
	steps  []*step   // that one and all that follow
	place  []*step   // where steps is, at its end after others that are forgotten
	whole  uint64    // number of the oldest that has its snapshot still
	base   store.Rev // where memory was before the oldest
	now    *Snapshot // where it is after the last
	weight int
	rooms  map[string][]*room // where readers wait, by what they wait for

	nudge chan struct{} // holds one if there may be somebody to wake
}

// room is where some of those wait who want to know of the same kinds.
type room struct {
	kinds   []*kind.Def // none are all
	waiting int
	open    chan struct{} // closed when there is something
	from    uint64        // then, the first step that may be of interest
	woken   int           // how many waited then
}

func newRing(most int) *ring {
	return &ring{most: most, rooms: map[string][]*room{}, nudge: make(chan struct{}, 1)}
}

// end is the number that the next step will have. The caller holds the mutex.
func (r *ring) end() uint64 { return r.first + uint64(len(r.steps)) }

// add adds a step.
func (r *ring) add(ev Event) {
	r.mu.Lock()
	if r.now = ev.After; ev.Reset != nil {
		// All steps before are void, and so is every place among them.
		r.first, r.steps, r.place, r.weight, r.base = r.end()+1, nil, nil, 0, ev.Rev
		r.whole = r.first
	} else {
		ev.after = ev.After.mark
		r.push(&step{Event: ev})
		r.weight += ev.weight
		r.trim()
	}
	r.mu.Unlock()
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// push puts a step behind the others. Where their place is full, they move to its
// beginning if that frees half of it: append would make a new one, as large as all
// of them, every few steps. The caller holds the mutex.
func (r *ring) push(s *step) {
	if n := len(r.steps); n == cap(r.steps) {
		if 2*n > len(r.place) {
			r.place = make([]*step, 2*n+1)
		}
		copy(r.place, r.steps)
		clear(r.place[n:]) // or what is kept would keep it
		r.steps = r.place[:n]
	}
	r.steps = append(r.steps, s)
}

// trim forgets the oldest steps. The caller holds the mutex.
func (r *ring) trim() {
	n := 0
	for ; n < len(r.steps)-1 && r.weight > r.most; n++ {
		r.weight -= r.steps[n].weight
		r.base = r.steps[n].Rev
		r.steps[n] = nil // or what is kept would keep it
	}
	r.first, r.steps = r.first+uint64(n), r.steps[n:]
	for r.whole = max(r.whole, r.first); r.end()-r.whole > maxWhole; r.whole++ {
		r.steps[r.whole-r.first].After = nil
	}
}

const (
	// maxWhole is how many steps are kept with their snapshots. Each holds what the
	// next one has replaced, which is some 20 kB of trees that every collection of
	// garbage walks through.
	maxWhole = 64
	// maxAnew is for how many steps before these a snapshot is made anew, by the
	// first who is so far behind.
	maxAnew = 1000
)

// seek returns the number of the step that follows a revision; ok is false if
// the ring does not know it.
func (r *ring) seek(rev store.Rev) (at uint64, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if rev < r.base || rev > r.now.Rev {
		return 0, false
	}
	return r.first + uint64(r.after(rev)), true
}

// after is the place of the first step that leads beyond a revision. The caller
// holds the mutex.
func (r *ring) after(rev store.Rev) int {
	i, found := slices.BinarySearchFunc(r.steps, rev, func(s *step, rev store.Rev) int { return cmp.Compare(s.Rev, rev) })
	if found {
		i++
	}
	return i
}

// read returns the step at a number, or the first after it that concerns some
// kinds, and the number from which to read on. Where the steps are gone, or are too
// many for their snapshots to be made anew and bare ones will not do, that is a
// Reset. last is the snapshot that the reader has of before, if it has one. If there
// is nothing yet, it returns the room to wait in.
func (r *ring) read(at uint64, last *Snapshot, kinds []*kind.Def, bare bool) (ev Event, next uint64, wait *room) {
	for wait == nil {
		r.mu.RLock()
		first, end := r.first, r.end()
		if at < first || at+maxAnew < r.whole && !bare {
			ev = Event{Rev: r.now.Rev, Reset: r.now, After: r.now}
			r.mu.RUnlock()
			return ev, end, nil
		}
		i := slices.IndexFunc(r.steps[at-first:], func(s *step) bool { return s.concerns(kinds) })
		if i >= 0 {
			at += uint64(i)
			ev = r.steps[at-first].Event
			var anew way
			if !bare {
				anew = r.way(at, last)
			}
			r.mu.RUnlock()
			if ev.After = nil; !bare {
				ev.After = anew.snapshot()
			}
			return ev, at + 1, nil
		}
		r.mu.RUnlock()
		at, wait = end, r.enter(end, kinds)
	}
	return Event{}, at, wait
}

// enter returns the room of those who wait for some kinds, unless there are
// more steps by now than the caller has seen.
func (r *ring) enter(seen uint64, kinds []*kind.Def) *room {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end() != seen {
		return nil
	}
	name := ""
	for _, d := range kinds {
		name += d.Name + " "
	}
	rooms := r.rooms[name]
	if n := len(rooms); n > 0 && rooms[n-1].waiting < maxWoken {
		rooms[n-1].waiting++
		return rooms[n-1]
	}
	in := &room{kinds: kinds, waiting: 1, open: make(chan struct{})}
	r.rooms[name] = append(rooms, in)
	return in
}

// leave is for who does not wait any more.
func (r *ring) leave(in *room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in.waiting--
}

const (
	// maxWoken is how many are woken at a time.
	maxWoken = 64
	// wakePause is how long nobody is woken after so many were, for each of them,
	// and at least as long as they kept others from the processor: they must not
	// take its time from writers.
	wakePause = 10 * time.Microsecond
)

// wake wakes those who wait until ctx ends.
func (r *ring) wake(ctx context.Context) {
	var seen uint64 // steps before this one have been told
	var open []*room
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.nudge:
		}
		seen, open = r.rouse(seen)
		for _, in := range open {
			begun := time.Now()
			close(in.open)
			if in.woken < maxWoken {
				continue
			}
			runtime.Gosched() // until whoever else can run has done so
			select {
			case <-ctx.Done():
				return
			case <-time.After(max(maxWoken*wakePause, time.Since(begun))):
			}
		}
	}
}

// rouse returns the rooms to open since steps from a number on are of interest in
// them, the emptiest first, and the number to go on from.
func (r *ring) rouse(seen uint64) (next uint64, open []*room) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next = r.end()
	for name, rooms := range r.rooms {
		from := seen
		if seen >= r.first { // or what was between is gone
			i := slices.IndexFunc(r.steps[seen-r.first:], func(s *step) bool { return s.concerns(rooms[0].kinds) })
			if i < 0 {
				continue
			}
			from += uint64(i)
		}
		for _, in := range rooms {
			in.from, in.woken = from, in.waiting
		}
		delete(r.rooms, name)
		open = append(open, rooms...)
	}
	slices.SortFunc(open, func(a, b *room) int { return cmp.Compare(a.woken, b.woken) })
	return next, open
}
