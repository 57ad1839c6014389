package state_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// asked is a store that counts how often it is asked how far it is, and takes its
// time to say so.
type asked struct {
	store.Store
	times atomic.Int64
}

func (a *asked) Last(ctx context.Context) (store.Rev, error) {
	a.times.Add(1)
	time.Sleep(time.Millisecond)
	return a.Store.Last(ctx)
}

// TestLooks has many ask for a second whether they are behind: each is answered
// with all that there was when it asked, and the store is asked a few times.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		counted := &asked{Store: memory.Another()}
		writer, st := open(t, memory.Another(), state.Options{}), open(t, counted, state.Options{})
		create(t, writer, places.Def, &place{Meta: kind.Meta{ID: "hall"}})
		looks := state.NewLooks(st)
		ctx, cancel := context.WithCancel(t.Context())
		var running, askers sync.WaitGroup
		running.Go(func() { looks.Run(ctx) })
		for range 100 {
			must(t, increment(t, writer))
			there := writer.Snapshot().Rev
			for range 50 {
				askers.Go(func() {
					snap, err := looks.Current(t.Context())
					if err != nil || snap.Rev < there {
						t.Errorf("who asks at revision %d is told %v of %v", there, err, snap)
					}
				})
			}
			time.Sleep(10 * time.Millisecond)
		}
		askers.Wait()
		if n := counted.times.Load(); n < 10 || n > 25 {
			t.Errorf("5000 who asked within a second had the store asked %d times", n)
		}
		cancel()
		running.Wait()
		late, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if snap, err := looks.Current(late); err == nil {
			t.Errorf("who asks when it is over is told %v", snap)
		}
	})
}
