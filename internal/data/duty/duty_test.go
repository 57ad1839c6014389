package duty_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/duty"
	"netkeep.internal/internal/data/store"
)

// kept keeps the leases that it gives.
type kept struct {
	store.Claims
	mu     sync.Mutex
	leases []store.Lease
}

func (k *kept) Lease(ctx context.Context, life time.Duration) (store.Lease, error) {
	l, err := k.Claims.Lease(ctx, life)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leases = append(k.leases, l)
	return l, err
}

// worker is one of those that share a store.
type worker struct {
	*duty.Duties
	*kept
	stop context.CancelFunc
	does atomic.Int32 // what it does at present
	done atomic.Int32 // how often it has begun
}

// TestOneAtATime has three share what is to be done once: one does it, and another
// when that one stops or is not heard of any more.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claims := store.NewAlone()
		var together, most atomic.Int32
		var all []*worker
		var jobs sync.WaitGroup
		defer jobs.Wait()
		for _, name := range []string{"a", "b", "c"} {
			ctx, stop := context.WithCancel(t.Context())
			w := &worker{kept: &kept{Claims: claims}, stop: stop}
			w.Duties = duty.New(w.kept, name, slog.New(slog.DiscardHandler), "sweep", "copy")
			all = append(all, w)
			defer stop()
			jobs.Go(func() { w.Run(ctx) })
			jobs.Go(func() {
				w.Do(ctx, "sweep", func(ctx context.Context) {
					w.done.Add(1)
					w.does.Store(1)
					most.Store(max(most.Load(), together.Add(1)))
					<-ctx.Done()
					<-time.After(time.Second) // it takes a while to stop
					together.Add(-1)
					w.does.Store(0)
				})
			})
		}
		who := func() (found *worker) {
			t.Helper()
			<-time.After(10 * time.Second)
			synctest.Wait()
			for _, w := range all {
				if w.Mine("sweep") != (w.does.Load() == 1) {
					t.Error("who has the duty does not do it")
				}
				if w.Mine("sweep") {
					if found != nil {
						t.Fatal("two have one duty")
					}
					found = w
				}
			}
			if found == nil {
				t.Fatal("nobody has the duty")
			}
			return found
		}
		first := who()
		if who() != first || first.done.Load() != 1 {
			t.Error("the duty has gone from one to another for nothing")
		}
		first.stop()
		second := who()
		if second == first {
			t.Error("one that stopped has the duty")
		}
		// One that is not heard of has to stop before others begin.
		second.mu.Lock()
		lease := second.leases[len(second.leases)-1]
		second.mu.Unlock()
		if err := lease.Close(); err != nil {
			t.Fatal(err)
		}
		if second.Mine("sweep") || second.Mine("copy") {
			t.Error("one whose lease is over thinks that it has the duty")
		}
		who()
	})
}
