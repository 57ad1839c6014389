package state_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// watcher folds the events of a State and compares what it gets with the
// State's snapshots, revision by revision.
type watcher struct {
	t   tester
	s   *state.State
	sub *state.Subscription

	mu    sync.Mutex
	steps map[store.Rev]*state.Snapshot   // as the State published them last
	shown map[store.Rev][]*state.Snapshot // all that it published

	rev    store.Rev // of the last event
	world  world     // what the events lead to
	resets int
	events []string // what they say, in short
}

func watch(t tester, s *state.State) *watcher {
	w := &watcher{t: t, s: s, sub: s.Subscribe(), steps: map[store.Rev]*state.Snapshot{}, shown: map[store.Rev][]*state.Snapshot{}}
	s.Attend(func(before, after *state.Snapshot, _ []state.Ref) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if before != nil && after.Rev <= before.Rev {
			w.t.Errorf("memory went from revision %d to %d", before.Rev, after.Rev)
		}
		w.steps[after.Rev], w.shown[after.Rev] = after, append(w.shown[after.Rev], after)
	})
	return w
}

// at is what memory was at a revision.
func (w *watcher) at(rev store.Rev) *state.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.steps[rev]
}

// read takes up to n of the events that are there.
func (w *watcher) read(n int) {
	ctx, cancel := context.WithCancel(background)
	cancel()
	for range n {
		ev, err := w.sub.Next(ctx)
		if err != nil {
			return
		}
		w.take(ev)
		w.compare(ev.After)
	}
}

func (w *watcher) take(ev state.Event) {
	defer func() { w.rev = ev.Rev }()
	if ev.Reset != nil {
		w.resets++
		w.world = newWorld()
		for d, recs := range w.world {
			for rec := range ev.Reset.All(d) {
				recs[rec.Base().ID] = rec
			}
		}
		return
	}
	if w.world == nil || ev.Rev <= w.rev {
		w.t.Fatalf("revision %d comes after %d", ev.Rev, w.rev)
	}
	w.back(ev)
	line := ""
	for _, by := range ev.Writes {
		line += by.Author.String()
		for _, c := range by.Changes {
			recs := w.world[c.Def]
			if had := recs[c.ID]; had != c.Before || c.Before == nil && c.After == nil {
				w.t.Fatalf("%s %s was %+v, the event says %+v", c.Def.Name, c.ID, had, c.Before)
			}
			recs[c.ID] = c.After
			if c.After == nil {
				delete(recs, c.ID)
			}
			line += " " + c.Def.Name + "/" + c.ID
		}
		line += "; "
	}
	w.events = append(w.events, line)
}

// resume follows anew from where the last event has led. Records may have been
// read anew since then.
func (w *watcher) resume() {
	w.sub = w.s.SubscribeAt(w.rev)
	resets := w.resets
	w.take(state.Event{Rev: w.rev, Reset: w.at(w.rev)})
	w.resets = resets
}

// back tests that an event leads back to what there was before it.
func (w *watcher) back(ev state.Event) {
	before, err := ev.Undo(ev.After)
	if err != nil {
		w.t.Fatalf("undo: %v", err)
	}
	w.world.verify(w.t, before)
	if was := w.at(w.rev); was.Rev != before.Rev || !was.Time.Equal(before.Time) {
		w.t.Fatalf("it leads back to revision %d of %v, memory was at %d of %v", before.Rev, before.Time, was.Rev, was.Time)
	}
	for d, recs := range w.world {
		for id := range recs {
			if got, want := before.RevOf(d, id), w.at(w.rev).RevOf(d, id); got != want {
				w.t.Fatalf("%s %s is of revision %d, it was of %d", d.Name, id, got, want)
			}
		}
	}
	if _, err := ev.Undo(before); err == nil {
		w.t.Fatalf("it leads back twice")
	}
}

// compare compares the world with the snapshot of the last event, and with memory
// as it was then. It may have been read anew at that revision since, with
// records that are equal and not the same.
func (w *watcher) compare(snap *state.Snapshot) {
	w.mu.Lock()
	shown := slices.Clone(w.shown[w.rev])
	w.mu.Unlock()
	if snap.Rev != w.rev || !w.world.is(snap) {
		w.t.Fatalf("events lead elsewhere than to the snapshot of revision %d that came with the last", w.rev)
	}
	if !slices.ContainsFunc(shown, w.world.is) {
		w.t.Fatalf("memory never was at revision %d as events say", w.rev)
	}
}

// is reports whether a snapshot has exactly these records.
func (w world) is(snap *state.Snapshot) bool {
	for d, recs := range w {
		if snap.Len(d) != len(recs) {
			return false
		}
		for rec := range snap.All(d) {
			if recs[rec.Base().ID] != rec {
				return false
			}
		}
	}
	return true
}

// finish takes all events that are left and tests that they lead to what
// memory is.
func (w *watcher) finish() {
	w.read(1 << 30)
	if now := w.s.Snapshot(); w.rev != now.Rev || w.at(now.Rev) != now {
		w.t.Errorf("events lead to revision %d, memory is at %d", w.rev, now.Rev)
	}
}

// exact tests that memory was at each of its revisions what the log says, and
// that a fold of the log is the same.
func (w *watcher) exact(memory *storetest.Memory) {
	log := newWorld()
	fold := state.Fold{Kinds: kinds}
	folded := fold.Empty()
	revs := slices.Sorted(maps.Keys(w.steps))
	reached := func(next store.Rev) { // all of the log before next
		for len(revs) > 0 && revs[0] < next {
			log.verify(w.t, w.steps[revs[0]])
			log.verify(w.t, folded)
			revs = revs[1:]
		}
	}
	fresh, _ := storetest.NewMemory().Load(background, nil)
	last, err := memory.Load(background, func(store.Record) error { return nil })
	if err != nil {
		w.t.Fatalf("load: %v", err)
	}
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	if last.Rev == fresh.Rev {
		cancel() // there is no log
	}
	_ = memory.Follow(ctx, 0, func(b store.Batch) error {
		reached(b.Rev)
		ev, _, err := fold.Next(folded, b)
		if err != nil {
			w.t.Fatalf("fold: %v", err)
		}
		if _, _, err := fold.Next(ev.After, b); err == nil {
			w.t.Fatalf("a batch follows from itself")
		}
		folded = ev.After
		for _, op := range b.Ops {
			log.write(w.t, op)
		}
		if b.Rev == last.Rev {
			return errEnough
		}
		return nil
	})
	reached(last.Rev + 1)
	if len(revs) > 0 {
		w.t.Errorf("memory was at %v, which the log has not reached", revs)
	}
}

// write does what an op of the log says.
func (w world) write(t tester, op store.Op) {
	name, id, _ := strings.Cut(op.Key, "/")
	d := kinds.Named(name)
	if delete(w[d], id); op.Value == nil {
		return
	}
	rec, err := d.Decode(op.Value)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	w[d][id] = rec
}

// A subscriber sees the steps of memory, whoever makes them: two controllers
// write at random, alone and in groups, and it reads when it likes and falls
// behind.
func TestSubscribe(t *testing.T) {
	checks, resets, events := 0, 0, 0
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(rt *rapid.T) {
			checks++
			memory := storetest.NewMemory()
			defer pass()
			m := &machine{t: t, store: storetest.NewFaulty(memory), world: newWorld()}
			m.open(rt)
			defer m.st.Close()
			other, err := state.Open(t.Context(), memory.Another(), kinds, state.Options{Frozen: true, MaxBehind: 3000})
			if err != nil {
				rt.Fatalf("open: %v", err)
			}
			defer other.Close()
			here, there := watch(rt, m.st), watch(rt, other)
			read := func(w *watcher) func(*rapid.T) {
				return func(t *rapid.T) { w.read(rapid.IntRange(1, 5).Draw(t, "events")) }
			}
			rt.Repeat(map[string]func(*rapid.T){
				"write": m.write, "write again": m.write, "group": m.group, "remove": m.remove,
				"elsewhere": func(t *rapid.T) {
					synctest.Wait() // or the world would not know in which order they come
					near := m.st
					m.st = other
					m.write(t)
					m.st = near
					synctest.Wait()
				},
				"read here": read(here), "read there": read(there),
				"resume": func(*rapid.T) {
					if here.world != nil {
						here.resume()
					}
				},
				"load": func(t *rapid.T) {
					s := rapid.SampledFrom([]*state.State{nil, nil, m.st, other}).Draw(t, "which")
					if s != nil {
						must(m.t, s.Reload(m.t.Context()))
					}
				},
			})
			synctest.Wait()
			for _, w := range []*watcher{here, there} {
				w.finish()
				w.exact(memory)
				resets, events = resets+w.resets, events+len(w.events)
			}
		})
	})
	// 200 are beginnings; of fewer checks that show races this cannot be said.
	if checks >= 100 && (resets < 250 || events < 200) {
		t.Errorf("there were %d resets and %d events: the test shows nothing", resets, events)
	}
}

// Two controllers write at the same time. Both tell their subscribers the same
// of it: the same batches in the same order, with the same authors.
func TestSubscribersAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, states := openSeveral(t, 2)
		create(t, states[0], places.Def, &place{Meta: kind.Meta{ID: "hall"}})
		createVisit(t, states[0], &visit{Meta: kind.Meta{ID: "v"}})
		synctest.Wait()
		watchers := []*watcher{watch(t, states[0]), watch(t, states[1])}
		for _, w := range watchers {
			w.read(1) // the beginning
		}
		var wg sync.WaitGroup
		for i, s := range states {
			for n := range 40 {
				by := state.Author{Kind: "person", ID: fmt.Sprint(i, "-", n), Operation: "write"}
				wg.Go(func() {
					err := insist(func() error {
						if n%2 == 0 {
							return s.Update(t.Context(), by, func(tx *state.Tx) error {
								return places.Edit(tx, "hall", func(p *place) error { p.Count++; return nil })
							})
						}
						return s.UpdateSessions(t.Context(), by, func(tx *state.Tx) error {
							return visits.Create(tx, &visit{Person: ""})
						})
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		sameAsStore(t, memory, states...)
		for _, w := range watchers {
			w.finish()
			w.exact(memory)
			if w.resets != 1 {
				t.Errorf("a subscriber that kept up was reset %d times", w.resets)
			}
		}
		if !slices.Equal(watchers[0].events, watchers[1].events) {
			t.Errorf("one was told\n%s\nand the other\n%s", strings.Join(watchers[0].events, "\n"), strings.Join(watchers[1].events, "\n"))
		}
		all := strings.Join(watchers[0].events, " ")
		for i := range states {
			for n := range 40 {
				if by := fmt.Sprintf("person:%d-%d ", i, n); strings.Count(all, by) != 1 {
					t.Errorf("%s wrote %d times", by, strings.Count(all, by))
				}
			}
		}
	})
}

// An event tells all there is to know of a write.
func TestEvent(t *testing.T) {
	memory := storetest.NewMemory()
	s := open(t, memory, state.Options{})
	sub := s.Subscribe()
	next := func() state.Event {
		t.Helper()
		ev, err := sub.Next(t.Context())
		must(t, err)
		return ev
	}
	if ev := next(); ev.Reset != s.Snapshot() || ev.Rev != s.Snapshot().Rev || ev.Writes != nil {
		t.Errorf("the beginning is %+v", ev)
	}
	by := state.Author{Kind: "person", ID: "1", Name: "ann", Operation: "createPlace", Request: "2", Source: "192.0.2.1"}
	rec := &place{Meta: kind.Meta{ID: "x"}}
	must(t, s.Update(t.Context(), by, func(tx *state.Tx) error { return places.Create(tx, rec) }))
	snap, ev := s.Snapshot(), next()
	if ev.Rev != snap.Rev || !ev.Time.Equal(snap.Time) || ev.Reset != nil || len(ev.Writes) != 1 || ev.Writes[0].Author != by {
		t.Errorf("a create at %d, %v is told as %+v", snap.Rev, snap.Time, ev)
	}
	one := func(changes []state.Change, before, after kind.Record) bool {
		return len(changes) == 1 && changes[0].Ref == state.Ref{Def: places.Def, ID: "x"} && changes[0].Before == before && changes[0].After == after
	}
	if got := ev.Writes[0].Changes; !one(got, nil, rec) {
		t.Errorf("a create is told as %+v", got)
	}
	must(t, s.Delete(t.Context(), by, places.Def, "x"))
	if got := next().Writes[0].Changes; !one(got, rec, nil) {
		t.Errorf("a delete is told as %+v", got)
	}
	// A batch without authors, as older versions wrote them, and one of a
	// kind that nobody knows.
	_, err := memory.Put(t.Context(), store.Head{}, []store.Op{{Key: "visit/y", Value: []byte(`{"id":"y"}`)}, {Key: "gadget/1", Value: []byte(`{}`)}})
	must(t, err)
	if ev := next(); len(ev.Writes) != 1 || ev.Writes[0].Author != (state.Author{}) || len(ev.Writes[0].Changes) != 1 || ev.Writes[0].Changes[0].ID != "y" {
		t.Errorf("a batch without authors is told as %+v", ev)
	}
	at, err := memory.Put(t.Context(), store.Head{}, []store.Op{{Key: "gadget/2", Value: []byte(`{}`)}})
	must(t, err)
	if ev := next(); ev.Rev != at.Rev || len(ev.Writes) != 0 {
		t.Errorf("what nobody knows is told as %+v", ev)
	}
}

// A subscriber that never reads holds nobody up and takes no memory beyond its
// bound.
func TestSubscriberAsleep(t *testing.T) {
	const writes, size, bound = 4000, 10_000, 1 << 20
	synctest.Test(t, func(t *testing.T) {
		s, err := state.Open(t.Context(), &only{Store: storetest.NewMemory()}, kinds, state.Options{MaxBehind: bound})
		must(t, err)
		defer s.Close()
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		create(t, s, places.Def, &place{Meta: kind.Meta{ID: "hall"}})
		sub := s.Subscribe()
		_, err = sub.Next(t.Context())
		must(t, err)
		before, start := heap(), time.Now()
		for n := range writes {
			must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
				return places.Edit(tx, "hall", func(p *place) error {
					p.Name = strings.Repeat(string(rune('a'+n%26)), size)
					return nil
				})
			}))
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("writers waited for %s", took)
		}
		if grown := heap() - before; grown > 3*bound {
			t.Errorf("memory grew by %d bytes, for %d bytes that may wait", grown, bound)
		}
		ev, err := sub.Next(t.Context())
		must(t, err)
		if ev.Reset != s.Snapshot() {
			t.Errorf("what comes then is %+v", ev)
		}
		runtime.KeepAlive(sub)
	})
}

// A feed can begin where another has ended, for as long as what follows is not
// forgotten.
func TestSubscribeAt(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{MaxBehind: 10_000})
	revs := []store.Rev{s.Snapshot().Rev}
	for i := range 5 {
		create(t, s, places.Def, &place{Name: fmt.Sprint(i)})
		revs = append(revs, s.Snapshot().Rev)
	}
	next := func(sub *state.Subscription) state.Event {
		t.Helper()
		ev, err := sub.Next(t.Context())
		must(t, err)
		return ev
	}
	for i, rev := range revs {
		sub := s.SubscribeAt(rev)
		for _, want := range revs[i+1:] {
			if ev := next(sub); ev.Rev != want || ev.Reset != nil {
				t.Errorf("after %d, where %d follows, comes %+v", rev, want, ev)
			}
		}
	}
	last := s.Snapshot().Rev
	if ev := next(s.SubscribeAt(last + 1)); ev.Reset != s.Snapshot() {
		t.Errorf("what has not been yet begins with %+v", ev)
	}
	waiting := s.SubscribeAt(last)
	for i := range 100 {
		create(t, s, places.Def, &place{Name: strings.Repeat("long", 100) + fmt.Sprint(i)})
	}
	for name, sub := range map[string]*state.Subscription{"forgotten": s.SubscribeAt(last), "left behind": waiting} {
		if ev := next(sub); ev.Reset != s.Snapshot() {
			t.Errorf("%s: it begins with %+v", name, ev)
		}
	}
	sub := s.SubscribeAt(s.Snapshot().Rev)
	must(t, s.Reload(t.Context()))
	if ev := next(sub); ev.Reset != s.Snapshot() {
		t.Errorf("after a load comes %+v", ev)
	}
}

// Who needs no snapshots may be further behind than who does.
func TestSubscribeBare(t *testing.T) {
	const writes = 1500
	s := open(t, storetest.NewMemory(), state.Options{})
	begin := s.Snapshot().Rev
	for i := range writes {
		create(t, s, places.Def, &place{Name: fmt.Sprint(i)})
	}
	whole, bare := s.SubscribeAt(begin), s.SubscribeAt(begin).Bare()
	if ev, err := whole.Next(t.Context()); err != nil || ev.Reset != s.Snapshot() {
		t.Errorf("with snapshots it begins with %+v (%v)", ev, err)
	}
	for i := range writes {
		ev, err := bare.Next(t.Context())
		must(t, err)
		if ev.After != nil || ev.Reset != nil || len(ev.Writes) != 1 || ev.Writes[0].Changes[0].After.(*place).Name != fmt.Sprint(i) {
			t.Fatalf("write %d is told as %+v", i, ev)
		}
	}
}

// Who wants to know of some kinds is not woken for others, and is not left
// behind by them.
func TestSubscribeKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := state.Open(t.Context(), storetest.NewMemory(), kinds, state.Options{MaxBehind: 5000})
		must(t, err)
		defer s.Close()
		var got []string
		var wg sync.WaitGroup
		defer wg.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wg.Go(func() {
			sub := s.Subscribe(people.Def, visits.Def)
			for {
				ev, err := sub.Next(ctx)
				if err != nil {
					return
				}
				if ev.Reset != nil {
					got = append(got, "reset")
					continue
				}
				for _, w := range ev.Writes {
					for _, c := range w.Changes {
						got = append(got, c.ID)
					}
				}
			}
		})
		synctest.Wait()
		for i := range 100 { // far more than is kept
			create(t, s, places.Def, &place{Meta: kind.Meta{ID: fmt.Sprint("place", i)}, Name: strings.Repeat("long", 100) + fmt.Sprint(i)})
			synctest.Wait()
			if i%40 == 0 {
				createVisit(t, s, &visit{Meta: kind.Meta{ID: fmt.Sprint("visit", i)}})
				synctest.Wait()
			}
		}
		if want := []string{"reset", "visit0", "visit40", "visit80"}; !slices.Equal(got, want) {
			t.Errorf("it was told of %q, want %q", got, want)
		}
	})
}

// The feed ends with its subscriber's patience and with the State.
func TestSubscriptionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, storetest.NewMemory(), state.Options{})
		sub := s.Subscribe()
		_, err := sub.Next(t.Context())
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := sub.Next(ctx); err != context.DeadlineExceeded {
			t.Errorf("when patience ends: %v", err)
		}
		create(t, s, places.Def, &place{})
		s.Close()
		if _, err := sub.Next(t.Context()); err != nil {
			t.Errorf("what was there before the end: %v", err)
		}
		_, err = sub.Next(t.Context())
		unavailable(t, err)
	})
}
