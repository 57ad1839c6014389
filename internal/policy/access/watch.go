package access

import (
	"context"
	"runtime"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/model"
)

// Watcher waits until what one identity sees may have changed.
type Watcher struct {
	// C has one if it may have since somebody last took one from it.
	C chan struct{}

	book *watch
	id   string
}

// watch is those who wait. Who writes only notes whom a change concerns: they are
// woken by a goroutine of its own, some at a time, so that a write costs the same
// however many wait.
type watch struct {
	mu      sync.Mutex
	by      map[string]map[*Watcher]struct{} // by the identity's id
	waiting int
	news    []concern
	bell    chan struct{}
}

// concern is whom a change concerns: those in a set of ordinals of a snapshot, those
// who see more than policies give, or one by id. Without a snapshot that is everyone.
type concern struct {
	snap   *state.Snapshot
	who    *cow.Bitmap
	admins bool
	one    string
}

// maxConcerns is how many are kept until somebody has time for them. Where there are
// more, everyone is woken: to look in vain does no harm.
const maxConcerns = 64

// Watch returns a Watcher of an identity, which is to be closed.
func (l *LastChange) Watch(identityID string) *Watcher {
	w := &l.watch
	one := &Watcher{C: make(chan struct{}, 1), book: w, id: identityID}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[string]map[*Watcher]struct{}{}
	}
	if w.by[identityID] == nil {
		w.by[identityID] = map[*Watcher]struct{}{}
	}
	w.by[identityID][one] = struct{}{}
	w.waiting++
	return one
}

// Close ends it; nobody is told any more.
func (one *Watcher) Close() {
	w := one.book
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.by[one.id][one]; !there {
		return
	}
	w.waiting--
	delete(w.by[one.id], one)
	if len(w.by[one.id]) == 0 {
		delete(w.by, one.id)
	}
}

func (one *Watcher) wake() {
	select {
	case one.C <- struct{}{}:
	default:
	}
}

// ring returns what there is one in when somebody is to be woken. The caller holds
// the mutex.
func (w *watch) ring() chan struct{} {
	if w.bell == nil {
		w.bell = make(chan struct{}, 1)
	}
	return w.bell
}

// note takes down whom a change concerns.
func (w *watch) note(c concern) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == 0 {
		return
	}
	if len(w.news) == maxConcerns {
		clear(w.news)
		w.news, c = w.news[:0], concern{}
	}
	w.news = append(w.news, c)
	select {
	case w.ring() <- struct{}{}:
	default:
	}
}

// wakeTogether is how many are woken at a time, and wakePause how long nobody is
// then: they must not take the processor from writers.
const (
	wakeTogether = 64
	wakePause    = 500 * time.Microsecond
)

// Wake wakes those who wait, until ctx ends.
func (l *LastChange) Wake(ctx context.Context) {
	w := &l.watch
	w.mu.Lock()
	bell := w.ring()
	w.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-bell:
		}
		for i, one := range w.concerned() {
			if one.wake(); i%wakeTogether != wakeTogether-1 {
				continue
			}
			runtime.Gosched()
			select {
			case <-ctx.Done():
				return
			case <-time.After(wakePause):
			}
		}
	}
}

// concerned returns those whom what was noted concerns, and forgets it.
func (w *watch) concerned() []*Watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[*Watcher]struct{}{}
	add := func(id string) {
		for one := range w.by[id] {
			found[one] = struct{}{}
		}
	}
	for _, c := range w.news {
		w.each(c, add)
	}
	clear(w.news)
	w.news = w.news[:0]
	all := make([]*Watcher, 0, len(found))
	for one := range found {
		all = append(all, one)
	}
	return all
}

// each names those whom a change concerns and who may be waiting: by going through
// those who wait, or through those concerned if these are fewer. The caller holds the
// mutex.
func (w *watch) each(c concern, add func(id string)) {
	switch {
	case c.one != "":
		add(c.one)
		return
	case c.snap != nil && !c.admins && int(c.who.GetCardinality()) < len(w.by):
		for rec := range c.snap.Within(model.Identities.Def, c.who) {
			add(rec.Base().ID)
		}
		return
	}
	for id := range w.by {
		if c.snap == nil || c.holds(id) {
			add(id)
		}
	}
}

// holds reports whether a change concerns an identity.
func (c concern) holds(id string) bool {
	ord, ok := c.snap.Ordinal(model.Identities.Def, id)
	if ok && c.who.Contains(ord) {
		return true
	}
	if !ok || !c.admins {
		return false
	}
	identity, ok := model.Identities.Get(c.snap, id)
	return ok && identity.Admin()
}
