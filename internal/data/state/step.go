package state

import (
	"slices"
	"sync"
	"sync/atomic"
	"weak"
)

// step is an event as the ring keeps it, soon without its snapshot. What is made
// anew for one reader is found by the others for as long as anybody has it, and
// then until garbage is collected next: a thousand readers at one place make it
// once, and the ring holds none of it.
type step struct {
	Event

	making sync.Mutex // of who makes the snapshot anew
	made   atomic.Pointer[weak.Pointer[Snapshot]]
}

// found returns the snapshot of the step, if there is one. The caller holds the
// mutex of the ring.
func (s *step) found() *Snapshot {
	if s.After != nil {
		return s.After
	}
	return s.shared()
}

// shared returns the snapshot that somebody made anew, if it is still there.
func (s *step) shared() *Snapshot {
	if made := s.made.Load(); made != nil {
		return made.Value()
	}
	return nil
}

// share lets others find a snapshot of the step, unless they find one.
func (s *step) share(is *Snapshot) {
	if s.shared() != nil {
		return
	}
	made := weak.Make(is)
	s.made.Store(&made)
}

// way is how to make the snapshot of a step anew: from one, over steps that are
// made after it or, the last first, undone from it. Without steps it is that one.
type way struct {
	to    *step
	from  *Snapshot
	steps []*step
	undo  bool
}

// way returns that to the step at a number: on from the reader's own snapshot or back
// from the next that there is, whichever is nearer. The caller holds the mutex.
func (r *ring) way(at uint64, own *Snapshot) way {
	i := int(at - r.first)
	w := way{to: r.steps[i]}
	if w.from = w.to.found(); w.from != nil {
		return w
	}
	most := len(r.steps) - i // steps that it may take to go back
	if own != nil && own.Rev >= r.base && own.Rev < w.to.Rev {
		from := r.after(own.Rev)
		w.from, w.steps = own, r.steps[from:i+1]
		most = len(w.steps)
	}
	for n := 1; n < most && i+n < len(r.steps); n++ {
		if next := r.steps[i+n].found(); next != nil {
			w.from, w.steps, w.undo = next, r.steps[i:i+n+1], true
			break
		}
	}
	w.steps = slices.Clone(w.steps) // the ring forgets its own
	return w
}

// snapshot goes the way, unless somebody else has gone it meanwhile.
func (w way) snapshot() *Snapshot {
	if len(w.steps) == 0 {
		return w.from
	}
	w.to.making.Lock()
	defer w.to.making.Unlock()
	if is := w.to.shared(); is != nil {
		return is
	}
	is := w.from
	if !w.undo {
		for _, s := range w.steps {
			is = s.done(is)
			s.share(is)
		}
		return is
	}
	for i := len(w.steps) - 1; i > 0; i-- {
		is = w.steps[i].undone(is)
		w.steps[i-1].share(is)
	}
	return is
}
