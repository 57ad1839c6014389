package state_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// mishap is what happens to one call or one batch.
type mishap int

const (
	fine mishap = iota
	slow
	failed    // the call does not reach the store, the batch breaks the feed off
	lost      // the answer is lost, or the batch if it is a commit
	repeated  // the batch comes twice
	compacted // the feed ends with store.ErrCompacted
	gap       // and with store.ErrGap
	mishaps
)

// chaos is a store with mishaps, until it is healed.
type chaos struct {
	store.Store
	mu       sync.Mutex
	upcoming []mishap
	healed   bool
}

func (c *chaos) next() mishap {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.healed || len(c.upcoming) == 0 {
		return fine
	}
	m := c.upcoming[0]
	c.upcoming = c.upcoming[1:]
	return m
}

func (c *chaos) plan(m []mishap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.upcoming = append(c.upcoming, m...)
}

func (c *chaos) heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.healed = true
}

// call makes a call with a mishap.
func call[T any](c *chaos, do func() (T, error)) (v T, err error) {
	m := c.next()
	switch m {
	case slow:
		<-time.After(3 * time.Second)
	case failed, gap:
		return v, storetest.ErrInjected
	case lost, compacted:
		_, _ = do()
		return v, storetest.ErrInjected
	}
	return do()
}

func (c *chaos) Load(ctx context.Context, fn func(store.Record) error) (store.Mark, error) {
	return call(c, func() (store.Mark, error) { return c.Store.Load(ctx, fn) })
}

func (c *chaos) Commit(ctx context.Context, prev store.Rev, head store.Head, ops []store.Op) (store.Written, error) {
	return call(c, func() (store.Written, error) { return c.Store.Commit(ctx, prev, head, ops) })
}

func (c *chaos) Put(ctx context.Context, head store.Head, ops []store.Op) (store.Written, error) {
	return call(c, func() (store.Written, error) { return c.Store.Put(ctx, head, ops) })
}

// Follow never loses a Put: stores must notice that themselves, since only
// commits carry a proof.
func (c *chaos) Follow(ctx context.Context, rev store.Rev, fn func(store.Batch) error) error {
	return c.Store.Follow(ctx, rev, func(b store.Batch) error {
		switch m := c.next(); {
		case m == slow:
			<-time.After(3 * time.Second)
		case m == failed:
			return storetest.ErrInjected
		case m == lost && b.Commit:
			return nil
		case m == repeated:
			if err := fn(b); err != nil {
				return err
			}
		case m == compacted:
			return store.ErrCompacted
		case m == gap:
			return store.ErrGap
		}
		return fn(b)
	})
}

// tally counts what writers were told.
type tally struct {
	mu      sync.Mutex
	stored  map[string]int // writes that succeeded, by what they wrote
	unknown map[string]int // writes of which it is not known
}

func (y *tally) note(what string, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if err == nil {
		y.stored[what]++
	} else {
		y.unknown[what]++
	}
}

// mayhem is States that write through chaos.
type mayhem struct {
	t      *testing.T
	memory *storetest.Memory
	chaos  []*chaos
	states []*state.State
	tally  tally
	made   int
	// watchers follow the States, one for each.
	watchers []*watcher
}

func newMayhem(t *testing.T, rt *rapid.T) *mayhem {
	m := &mayhem{t: t, memory: storetest.NewMemory(), tally: tally{stored: map[string]int{}, unknown: map[string]int{}}}
	for range 3 {
		c := &chaos{Store: m.memory.Another()}
		s, err := state.Open(t.Context(), c, kinds, state.Options{Frozen: true, MaxBehind: 2000})
		if err != nil {
			rt.Fatalf("open: %v", err)
		}
		m.watchers = append(m.watchers, watch(rt, s))
		m.chaos, m.states = append(m.chaos, c), append(m.states, s)
	}
	must(t, m.states[0].Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		return places.Create(tx, &place{Meta: kind.Meta{ID: "hall"}})
	}))
	must(t, m.states[0].UpdateSessions(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		return visits.Create(tx, &visit{Meta: kind.Meta{ID: "v"}})
	}))
	synctest.Wait()
	return m
}

func (m *mayhem) close() {
	for _, s := range m.states {
		s.Close()
	}
}

// burst has several States write several things at once.
func (m *mayhem) burst(rt *rapid.T) {
	var wg sync.WaitGroup
	for i, s := range m.states {
		m.chaos[i].plan(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) mishap {
			return mishap(rapid.IntRange(int(fine), int(mishaps)-1).Draw(t, "mishap"))
		}), 0, 4).Draw(rt, "mishaps"))
		for range rapid.IntRange(0, 2).Draw(rt, "writes") {
			m.made++
			what := rapid.SampledFrom([]string{"count", "lengthen", "both", "create", "visit"}).Draw(rt, "what")
			id := fmt.Sprintf("%s%d", what, m.made)
			wg.Go(func() { m.write(rt, s, what, id) })
		}
	}
	wg.Wait()
	for i, s := range m.states {
		m.watchers[i].read(rapid.IntRange(0, 8).Draw(rt, "read"))
		if rapid.IntRange(0, 9).Draw(rt, "reload") == 0 {
			_ = s.Reload(m.t.Context())
		}
	}
}

func (m *mayhem) write(rt *rapid.T, s *state.State, what, id string) {
	var err error
	var seen func(*state.Snapshot) bool
	switch what {
	case "count":
		err = increment(m.t, s)
	case "lengthen":
		err = lengthen(m.t, s)
	case "both":
		err = both(m.t, s)
		m.tally.note("count", err)
		what = "lengthen"
	case "create":
		what = id
		err = s.Update(m.t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			return people.Create(tx, &person{Meta: kind.Meta{ID: id}, Traits: []string{"red"}})
		})
		seen = func(snap *state.Snapshot) bool { _, ok := people.Get(snap, id); return ok }
	case "visit":
		what = id
		err = s.UpdateSessions(m.t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			return visits.Create(tx, &visit{Meta: kind.Meta{ID: id}})
		})
		seen = func(snap *state.Snapshot) bool { _, ok := visits.Get(snap, id); return ok }
	}
	if err != nil && !fault.Is(err, fault.CodeUnavailable) {
		rt.Errorf("%s ends with %v", what, err)
	}
	if err == nil && seen != nil && !seen(s.Snapshot()) {
		rt.Errorf("%s was stored and is not in the snapshot", what)
	}
	m.tally.note(what, err)
}

// check heals the stores and compares everything.
func (m *mayhem) check(rt *rapid.T) {
	for _, c := range m.chaos {
		c.heal()
	}
	settle()
	err := insist(func() error { return increment(m.t, m.states[0]) }) // shows every gap
	m.tally.note("count", err)
	settle()
	sameAsStore(rt, m.memory, m.states...)
	for _, w := range m.watchers {
		w.finish()
	}
	snap := m.states[0].Snapshot()
	found := map[string]int{}
	for p := range people.All(snap) {
		found[p.ID]++
	}
	for v := range visits.All(snap) {
		found[v.ID]++
	}
	delete(found, "v")
	hall, _ := places.Get(snap, "hall")
	v, _ := visits.Get(snap, "v")
	found["count"], found["lengthen"] = hall.Count, len(v.Token)
	for what, n := range found {
		if least := m.tally.stored[what]; n < least || n > least+m.tally.unknown[what] {
			rt.Errorf("%s is there %d times, but %d were stored and %d perhaps", what, n, least, m.tally.unknown[what])
		}
	}
	for what, n := range m.tally.stored {
		if found[what] < n {
			rt.Errorf("%s was stored %d times and is there %d times", what, n, found[what])
		}
	}
}

func TestChaos(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(rt *rapid.T) {
			m := newMayhem(t, rt)
			defer m.close()
			for range rapid.IntRange(1, 12).Draw(rt, "bursts") {
				m.burst(rt)
			}
			m.check(rt)
		})
	})
}
