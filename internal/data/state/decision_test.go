package state_test

import (
	"context"
	"errors"
	"fmt"
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

// leisurely is a store that takes its time before it writes and after.
type leisurely struct {
	store.Store
	before, after time.Duration
}

func (l leisurely) Commit(ctx context.Context, prev store.Rev, head store.Head, ops []store.Op) (store.Written, error) {
	time.Sleep(l.before)
	defer time.Sleep(l.after)
	return l.Store.Commit(ctx, prev, head, ops)
}

// TestDeadlines has the time of writes end at any moment: before their turn,
// while they are stored and after. Each is told what became of it.
func TestDeadlines(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		span := rapid.IntRange(0, 900)
		slow := func(what string) time.Duration { return time.Duration(span.Draw(rt, what)) * time.Millisecond }
		before, after := slow("before"), slow("after")
		n := rapid.IntRange(1, 6).Draw(rt, "writes")
		deadlines := make([]time.Duration, n)
		for i := range n {
			deadlines[i] = 1 + 3*slow("deadline")
		}
		synctest.Test(t, func(t *testing.T) {
			memory := storetest.NewMemory()
			s := open(t, leisurely{memory, before, after}, state.Options{Patience: time.Minute})
			answers := make([]chan error, n)
			for i := range n {
				answers[i] = make(chan error, 1)
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), deadlines[i])
					defer cancel()
					answers[i] <- s.Update(ctx, state.Program("tester"), func(tx *state.Tx) error {
						return places.Create(tx, &place{Meta: kind.Meta{ID: fmt.Sprint(i)}, Name: fmt.Sprint(i)})
					})
				}()
			}
			for i := range n {
				err := <-answers[i]
				_, there := stored(t, memory)[places.Def][fmt.Sprint(i)]
				switch {
				case err == nil && there, errors.Is(err, context.DeadlineExceeded) && !there:
				default:
					t.Errorf("write %d is told %v, and it is stored: %t", i, err, there)
				}
			}
			time.Sleep(time.Minute)
			for i := range n {
				if _, there := stored(t, memory)[places.Def][fmt.Sprint(i)]; there != (func() bool { _, ok := places.Get(s.Snapshot(), fmt.Sprint(i)); return ok }()) {
					t.Errorf("memory and store differ in %d", i)
				}
			}
		})
	})
}

// Once something is stored, the rest of what was asked for follows, though its
// time is over; before that, nothing does.
func TestDeciding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		s := open(t, leisurely{memory, time.Second, 0}, state.Options{})
		write := func(ctx context.Context, id string) error { return createPlace(s, ctx, id, id) }
		limited := func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 500*time.Millisecond)
		}
		ctx, cancel := limited()
		defer cancel()
		ctx = state.Deciding(ctx)
		must(t, write(ctx, "1"))
		must(t, write(ctx, "2"))
		if err := write(ctx, "1"); !fault.Is(err, fault.CodeInvalid) {
			t.Errorf("got %v", err)
		}
		late, cancel := limited()
		defer cancel()
		late = state.Deciding(late)
		<-late.Done()
		if err := write(late, "3"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		sameAsStore(t, memory, s)
	})
}

// A delete that takes several commits goes on to its end, though the time of
// whoever asked for it ends after the first.
func TestDeleteGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemoryWithin(store.Limits{Ops: 8, Bytes: 1 << 20})
		estate(t, open(t, memory.Another(), state.Options{}), 10)
		s := open(t, leisurely{memory, time.Second, 0}, state.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		must(t, s.Delete(ctx, state.Program("tester"), people.Def, "p"))
		if w := stored(t, memory); len(w[people.Def]) != 0 || len(w[items.Def]) != 10 {
			t.Errorf("%d people and %d items are left", len(w[people.Def]), len(w[items.Def]))
		}
	})
}
