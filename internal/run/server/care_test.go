package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// compacted notes how far history was forgotten.
type compacted struct {
	store.Store
	mu    sync.Mutex
	calls []store.Rev
}

func (c *compacted) Compact(ctx context.Context, rev store.Rev) error {
	err := c.Store.Compact(ctx, rev)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, rev)
	return err
}

// TestCompact forgets history while a controller writes and another follows.
// The other misses nothing and need not load anything again.
func TestCompact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storetest.NewMemory()
		st := &compacted{Store: mem}
		loads := 0
		writer, err := state.Open(t.Context(), st, model.All, state.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Close()
		follower, err := state.Open(t.Context(), mem.Another(), model.All, state.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer follower.Close()
		follower.Attend(func(before, _ *state.Snapshot, _ []state.Ref) {
			if before == nil {
				loads++
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() {
			compact(ctx, st, writer, compactEvery, always, slog.New(slog.DiscardHandler))
		})
		var reached []store.Rev
		for i := range 5 {
			synctest.Wait()
			reached = append(reached, writer.Snapshot().Rev)
			err := writer.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
				id := string(rune('a' + i))
				return model.IdentityTypes.Create(tx, &model.IdentityType{Meta: kind.Meta{ID: id}, Name: id})
			})
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(compactEvery)
		}
		synctest.Wait()
		stop()
		done.Wait()
		if loads != 1 || follower.Snapshot().Len(model.IdentityTypes.Def) != 5 {
			t.Errorf("the follower loaded %d times and has %d records", loads, follower.Snapshot().Len(model.IdentityTypes.Def))
		}
		if len(st.calls) != 5 || st.calls[0] != reached[0] {
			t.Fatalf("history was forgotten up to %v; before the writes were %v", st.calls, reached)
		}
		for i, rev := range st.calls[1:] {
			if rev != reached[i+1] {
				t.Errorf("history was forgotten up to %d; an interval before was %d", rev, reached[i+1])
			}
		}
	})
}

// opened is the memory of a store.
func opened(t *testing.T, st store.Store) *state.State {
	s, err := state.Open(t.Context(), st, model.All, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestCompactWaits has somebody want history of long ago: it is kept for some
// intervals and no longer.
func TestCompactWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &compacted{Store: storetest.NewMemory()}
		s := opened(t, st)
		var reached []store.Rev // at each interval
		write := func() {
			reached = append(reached, s.Snapshot().Rev)
			err := s.UpdateSessions(t.Context(), state.Program("test"), func(tx *state.Tx) error {
				return model.APISessions.Create(tx, &model.APISession{TokenHash: fmt.Sprint(len(reached))})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		var done sync.WaitGroup
		defer done.Wait()
		defer stop()
		done.Go(func() { compact(ctx, st, s, compactEvery, always, slog.New(slog.DiscardHandler)) })
		synctest.Wait()
		cursor := s.Cursor(s.Snapshot().Rev)
		for range compactWaits + 3 {
			write()
			<-time.After(compactEvery)
			synctest.Wait()
		}
		for i, rev := range st.calls {
			if want := reached[max(0, i+1-compactWaits)]; rev != want {
				t.Errorf("at interval %d history was forgotten up to %d, want %d of %v", i, rev, want, reached)
			}
		}
		cursor.Move(s.Snapshot().Rev)
		other := s.Cursor(reached[len(reached)-2])
		write()
		<-time.After(compactEvery)
		synctest.Wait()
		if last := st.calls[len(st.calls)-1]; last != reached[len(reached)-3] {
			t.Errorf("history was forgotten up to %d, and somebody wants it from %d on", last, reached[len(reached)-3])
		}
		other.Close()
		cursor.Close()
		write()
		<-time.After(compactEvery)
		synctest.Wait()
		if last := st.calls[len(st.calls)-1]; last != reached[len(reached)-1] {
			t.Errorf("history was forgotten up to %d, and nobody wants it before %d", last, reached[len(reached)-1])
		}
	})
}

func always() bool { return true }

// TestCompactByOne has another controller be the one that forgets history, and
// then this one.
func TestCompactByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &compacted{Store: storetest.NewMemory()}
		ctx, stop := context.WithTimeout(t.Context(), 3*compactEvery+time.Second)
		defer stop()
		n := 0
		compact(ctx, st, opened(t, st), compactEvery, func() bool { n++; return n == 3 }, slog.New(slog.DiscardHandler))
		if len(st.calls) != 1 || n != 3 {
			t.Errorf("history was forgotten %d times by who had to once, of %d", len(st.calls), n)
		}
	})
}

// TestCompactRefused is a user of a cluster who may not forget its history.
func TestCompactRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := storetest.NewFaulty(storetest.NewMemory())
		faulty.FailNext(storetest.Compact, fmt.Errorf("compact: %w", rpctypes.ErrPermissionDenied))
		st := &compacted{Store: faulty}
		compact(t.Context(), st, opened(t, st), compactEvery, always, slog.New(slog.DiscardHandler))
		if len(st.calls) != 1 {
			t.Errorf("it was tried %d times", len(st.calls))
		}
	})
}

// TestCompactGoesOn has forgetting fail once.
func TestCompactGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := storetest.NewFaulty(storetest.NewMemory())
		faulty.FailNext(storetest.Compact, storetest.ErrInjected)
		st := &compacted{Store: faulty}
		ctx, stop := context.WithTimeout(t.Context(), 2*compactEvery+time.Second)
		defer stop()
		compact(ctx, st, opened(t, st), compactEvery, always, slog.New(slog.DiscardHandler))
		if len(st.calls) != 2 {
			t.Errorf("it was tried %d times", len(st.calls))
		}
	})
}
