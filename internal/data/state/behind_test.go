package state_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"weak"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
)

// sameSnapshot compares what two snapshots hold, and where: records, revisions,
// ordinals, attributes and indexes.
func sameSnapshot(t *testing.T, got, want *state.Snapshot) {
	t.Helper()
	if got.Rev != want.Rev || !got.Time.Equal(want.Time) {
		t.Fatalf("it is of revision %d at %v, not of %d at %v", got.Rev, got.Time, want.Rev, want.Time)
	}
	for _, d := range kinds.Defs {
		if got.Len(d) != want.Len(d) {
			t.Fatalf("revision %d has %d of %s, not %d", want.Rev, got.Len(d), d.Name, want.Len(d))
		}
		for rec, rev := range want.Stored(d) {
			id := rec.Base().ID
			is, _ := got.Lookup(d, id)
			if is != rec || got.RevOf(d, id) != rev {
				t.Fatalf("at %d, %s %s is %+v of %d, not %+v of %d", want.Rev, d.Name, id, is, got.RevOf(d, id), rec, rev)
			}
		}
	}
	for p := range people.All(want) {
		is, _ := got.Ordinal(people.Def, p.ID)
		was, _ := want.Ordinal(people.Def, p.ID)
		named, ok := people.Find(got, "name", p.Name)
		if is != was || !ok || named != p {
			t.Fatalf("at %d, %s has number %d, not %d, and its name leads to %v", want.Rev, p.ID, is, was, named)
		}
	}
	for _, trait := range []string{"", "red", "tall", "old"} {
		is, was := got.Tagged(people.Def, trait), want.Tagged(people.Def, trait)
		if is == nil || was == nil { // nobody has it
			if is != was {
				t.Fatalf("at %d, %q is about %v, not %v", want.Rev, trait, is, was)
			}
			continue
		}
		if fmt.Sprint(ids(got.At(people.Def, was))) != fmt.Sprint(ids(want.At(people.Def, was))) || !is.Equals(was) {
			t.Fatalf("at %d, %q is about %v, not %v", want.Rev, trait, is, was)
		}
	}
}

// TestSubscriberBehind follows from far behind, where no snapshots are kept any
// more: each step has the snapshot that it led to all the same, to the last number
// of a record, whoever reads all of them, some kinds or from somewhere on.
func TestSubscriberBehind(t *testing.T) {
	const writes = 900
	s := open(t, storetest.NewMemory(), state.Options{})
	was := map[store.Rev]*state.Snapshot{}
	s.Attend(func(_, after *state.Snapshot, _ []state.Ref) { was[after.Rev] = after })
	all, some := s.Subscribe(), s.Subscribe(visits.Def)
	for _, sub := range []*state.Subscription{all, some} {
		_, err := sub.Next(t.Context())
		must(t, err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	churn := func() {
		must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error { return change(tx, r.IntN(40), r.IntN(40), r.IntN(4)) }))
		if r.IntN(8) == 0 {
			must(t, s.UpdateSessions(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
				return visits.Create(tx, &visit{Token: fmt.Sprint(r.Uint64())})
			}))
		}
	}
	for range writes / 2 {
		churn()
	}
	middle := s.Snapshot().Rev
	for range writes / 2 {
		churn()
	}
	for name, sub := range map[string]*state.Subscription{"all": all, "some": some, "from the middle": s.SubscribeAt(middle), "some from the middle": s.SubscribeAt(middle, visits.Def)} {
		steps := 0
		for last := store.Rev(0); last < s.Snapshot().Rev-40; steps++ {
			ev, err := sub.Next(t.Context())
			must(t, err)
			if ev.Reset != nil {
				t.Fatalf("%s: after %d steps it begins anew", name, steps)
			}
			sameSnapshot(t, ev.After, was[ev.Rev])
			last = ev.Rev
		}
		if steps < 30 {
			t.Errorf("%s: there were only %d steps", name, steps)
		}
	}
}

// TestSubscribersBehindShare has readers at one place far behind get the very same
// snapshots: each is made for the first of them, and nothing keeps it once they
// are done with it.
func TestSubscribersBehindShare(t *testing.T) {
	const readers, writes, kept = 20, 400, 64
	s := open(t, storetest.NewMemory(), state.Options{})
	begin := s.Snapshot().Rev
	for n := range writes {
		must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error { return change(tx, n%40, n%37, n%4) }))
	}
	var mu sync.Mutex
	shown := map[store.Rev]map[*state.Snapshot]bool{}
	var done sync.WaitGroup
	for range readers {
		sub := s.SubscribeAt(begin)
		done.Go(func() {
			for range writes {
				ev, err := sub.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if shown[ev.Rev] == nil {
					shown[ev.Rev] = map[*state.Snapshot]bool{}
				}
				shown[ev.Rev][ev.After] = true
				mu.Unlock()
			}
		})
	}
	done.Wait()
	made := 0
	for _, snapshots := range shown {
		made += len(snapshots)
	}
	// Two may make the same at the same moment, on the way to different steps.
	if len(shown) != writes || made > writes*3/2 {
		t.Errorf("%d readers of %d steps were shown %d snapshots of %d steps", readers, writes, made, len(shown))
	}
	var left []weak.Pointer[state.Snapshot]
	for rev, snapshots := range shown {
		for is := range snapshots {
			if rev < s.Snapshot().Rev-2*kept { // the others are those that the ring keeps anyway
				left = append(left, weak.Make(is))
			}
		}
	}
	shown = nil
	runtime.GC()
	left = slices.DeleteFunc(left, func(p weak.Pointer[state.Snapshot]) bool { return p.Value() == nil })
	if len(left) > 0 {
		t.Errorf("%d snapshots are kept that nobody reads any more", len(left))
	}
}

// change deletes people and makes others, who get the numbers of those that are
// gone, or gives one other traits.
func change(tx *state.Tx, one, other, traits int) error {
	a, b := fmt.Sprint(one), fmt.Sprint(other)
	all := []string{"red", "tall", "old"}
	for _, id := range []string{a, b} {
		if _, there := people.Get(tx, id); there && traits != 3 {
			if err := people.Delete(tx, id); err != nil {
				return err
			}
		}
	}
	return people.Upsert(tx, b, func(p *person) { p.Name, p.Traits = "person "+b, all[:traits] })
}
