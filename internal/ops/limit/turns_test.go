package limit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"netkeep.internal/internal/ops/limit"
)

// line is who waits for a turn, and who had one.
type line struct {
	*limit.Turns
	all  sync.WaitGroup
	mu   sync.Mutex
	had  []string
	errs []error
}

// ask has a party wait and note its turn.
func (l *line) ask(ctx context.Context, p limit.Party) {
	l.all.Go(func() {
		done, err := l.Wait(ctx, p)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil {
			l.errs = append(l.errs, err)
			return
		}
		l.had = append(l.had, p.ID)
		done()
	})
	synctest.Wait()
}

func named(id string) limit.Party { return limit.Party{ID: id} }

// TestTurns has one party ask often, and others now and then.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{Turns: &limit.Turns{Max: 1, Queue: 100}}
		done, err := l.Wait(t.Context(), named("first"))
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			l.ask(t.Context(), named("a"))
		}
		l.ask(t.Context(), named("b"))
		l.ask(t.Context(), named("c"))
		l.ask(t.Context(), named("b"))
		if l.Waiting() != 7 || len(l.had) != 0 {
			t.Errorf("%d wait and %d had their turn", l.Waiting(), len(l.had))
		}
		done()
		done() // once is enough
		l.all.Wait()
		if want := []string{"a", "b", "c", "a", "b", "a", "a"}; !slices.Equal(l.had, want) {
			t.Errorf("the turns are %v, want %v", l.had, want)
		}
	})
}

// TestTurnsOverflow has more wait than may: it is the one who asks most that
// goes short.
func TestTurnsOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{Turns: &limit.Turns{Max: 1, Queue: 3}}
		done, err := l.Wait(t.Context(), named("first"))
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			l.ask(t.Context(), named("a"))
		}
		if len(l.errs) != 2 {
			t.Errorf("%d are turned away, want 2", len(l.errs))
		}
		l.ask(t.Context(), named("b"))
		l.ask(t.Context(), named("c"))
		if len(l.errs) != 4 {
			t.Errorf("%d are turned away, want 4", len(l.errs))
		}
		done()
		l.all.Wait()
		if want := []string{"a", "b", "c"}; !slices.Equal(l.had, want) {
			t.Errorf("the turns are %v, want %v", l.had, want)
		}
		for _, err := range l.errs {
			if !errors.Is(err, limit.ErrFull) {
				t.Errorf("one is turned away with %v", err)
			}
		}
	})
}

// TestTurnsGivenUp has somebody leave the queue.
func TestTurnsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{Turns: &limit.Turns{Max: 1, Queue: 3}}
		done, err := l.Wait(t.Context(), named("first"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		l.ask(ctx, named("a"))
		l.ask(t.Context(), named("b"))
		leave()
		synctest.Wait()
		if len(l.errs) != 1 || !errors.Is(l.errs[0], context.Canceled) || l.Waiting() != 1 {
			t.Errorf("%d wait, and who left has %v", l.Waiting(), l.errs)
		}
		done()
		l.all.Wait()
		if len(l.had) != 1 || l.had[0] != "b" {
			t.Errorf("the turns are %v", l.had)
		}
	})
}
