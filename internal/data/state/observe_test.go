package state_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// lagAfter returns how far memory is behind once some time has passed.
func lagAfter(s *state.State, passed time.Duration) time.Duration {
	<-time.After(passed)
	synctest.Wait()
	return s.Lag().Round(time.Second)
}

func wantLag(t *testing.T, when string, got, want time.Duration) {
	t.Helper()
	if got != want {
		t.Errorf("%s: memory is %s behind, want %s", when, got, want)
	}
}

// TestLagOfHeldFeed has the feed keep our own writes back.
func TestLagOfHeldFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		wantLag(t, "at rest", lagAfter(p.broken, time.Minute), 0)
		gate := p.faults.HoldNext()
		must(t, increment(t, p.broken))
		wantLag(t, "after the first write", lagAfter(p.broken, 20*time.Second), 20*time.Second)
		must(t, lengthen(t, p.broken))
		wantLag(t, "after the second", lagAfter(p.broken, 10*time.Second), 30*time.Second)
		gate.Open()
		wantLag(t, "when the feed moves again", lagAfter(p.broken, time.Second), 0)
		wantLag(t, "of another controller", p.sound.Lag(), 0)
		p.counts(t, 1, 1)
	})
}

// TestLagOfMovingFeed counts from the last write that is awaited.
func TestLagOfMovingFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		first, second := p.faults.HoldNext(), p.faults.HoldNext()
		must(t, increment(t, p.broken))
		must(t, increment(t, p.broken))
		wantLag(t, "before it moves", lagAfter(p.broken, 20*time.Second), 20*time.Second)
		first.Open()
		wantLag(t, "after the first of two", lagAfter(p.broken, 5*time.Second), 5*time.Second)
		second.Open()
		wantLag(t, "after both", lagAfter(p.broken, 0), 0)
	})
}

// TestLagOfBrokenFeed has the feed break off, come back, and stay away.
func TestLagOfBrokenFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.faults.EndNext(storetest.ErrInjected)
		p.faults.FailNext(storetest.Follow, storetest.ErrInjected)
		gate := p.faults.BlockNext(storetest.Load) // after three failures
		p.faults.FailNext(storetest.Follow, storetest.ErrInjected)
		must(t, increment(t, p.sound))
		<-gate.Reached()
		wantLag(t, "without a feed", lagAfter(p.broken, 30*time.Second), 30*time.Second)
		gate.Open()
		wantLag(t, "with a quiet feed that lasts", lagAfter(p.broken, 2*time.Second), 0)
		p.counts(t, 1, 0)
	})
}

// TestLagOfFailedLoad has the load fail that a gap makes necessary.
func TestLagOfFailedLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.faults.DropNext()
		for range 15 { // one a second
			p.faults.FailNext(storetest.Load, storetest.ErrInjected)
		}
		must(t, increment(t, p.sound))
		must(t, increment(t, p.sound)) // does not follow from what is known
		wantLag(t, "while loads fail", lagAfter(p.broken, 14*time.Second), 14*time.Second)
		wantLag(t, "when one succeeds", lagAfter(p.broken, 2*time.Second), 0)
		p.counts(t, 2, 0)
	})
}

// TestStored tells of every attempt, and for whom it was made.
func TestStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var seen []state.Stored
		var whose []any
		memory := storetest.NewMemory()
		faults := storetest.NewFaulty(memory)
		s := open(t, faults, state.Options{Stored: func(w state.Stored) {
			seen = append(seen, w)
			for ctx := range w.Contexts() {
				whose = append(whose, ctx.Value(key{}))
			}
		}})
		write := func(who string) error {
			return s.Update(context.WithValue(t.Context(), key{}, who), state.Program("test"), func(tx *state.Tx) error {
				return places.Create(tx, &place{Name: who})
			})
		}
		gate := faults.BlockNext(storetest.Commit)
		done := make(chan error)
		go func() { done <- write("first") }()
		<-gate.Reached()
		for _, who := range []string{"second", "third"} {
			go func() { done <- write(who) }()
			synctest.Wait()
		}
		if got := s.Waiting(kind.Model); got != 2 || s.Waiting(kind.Session) != 0 {
			t.Errorf("%d writes wait, want 2", got)
		}
		<-time.After(3 * time.Second)
		gate.Open()
		for range 3 {
			must(t, <-done)
		}
		faults.FailNext(storetest.Commit, store.ErrClosed)
		unavailable(t, write("fourth"))
		synctest.Wait()
		if len(seen) != 3 {
			t.Fatalf("%d attempts, want 3", len(seen))
		}
		if got := []int{seen[0].Writes, seen[1].Writes, seen[2].Writes}; !slices.Equal(got, []int{1, 2, 1}) {
			t.Errorf("attempts with %v writes", got)
		}
		if seen[0].Took != 3*time.Second || seen[0].Err != nil || !errors.Is(seen[2].Err, store.ErrClosed) {
			t.Errorf("the first took %s and ended with %v, the last with %v", seen[0].Took, seen[0].Err, seen[2].Err)
		}
		if !slices.Equal(whose, []any{"first", "second", "third", "fourth"}) {
			t.Errorf("they were made for %v", whose)
		}
	})
}
