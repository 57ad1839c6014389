package state_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// createMany creates places in one write.
func createMany(ctx context.Context, s *state.State, n int, name string) error {
	return s.Update(ctx, state.Program("tester"), func(tx *state.Tx) error {
		for i := range n {
			if err := places.Create(tx, &place{Name: fmt.Sprint(name, i)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// A write that is larger than is quick has a commit of its own, and the others
// share commits that are quick.
func TestLargeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faults := storetest.NewFaulty(memory.WithQuick(store.Limits{Ops: 4, Bytes: 1 << 20}))
		s := open(t, faults, state.Options{})
		before := s.Snapshot().Rev
		several := func(n int, name string) func() error {
			return func() error { return createMany(t.Context(), s, n, name) }
		}
		gate, results := queue(t, s, faults, several(2, "a"), several(2, "b"), several(1, "c"), several(9, "d"), several(1, "e"), several(3, "f"))
		gate.Open()
		for _, r := range results {
			must(t, <-r)
		}
		var sizes []int
		everyBatch(t, memory, before, func(b store.Batch, _ world) { sizes = append(sizes, len(b.Ops)) })
		if got, want := fmt.Sprint(sizes), "[1 4 1 9 4]"; got != want {
			t.Errorf("the commits have %s changes, want %s", got, want)
		}
		sameAsStore(t, memory, s)
	})
}

// Who makes a large write waits for it for longer. All others do not.
func TestLargePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.NewFaulty(storetest.NewMemory().WithQuick(store.Limits{Ops: 4, Bytes: 1 << 20}))
		s := open(t, faults, state.Options{Patience: 3 * time.Second})
		gate := faults.BlockNext(storetest.Commit)
		large, small := make(chan error, 1), make(chan error, 1)
		go func() { large <- createMany(t.Context(), s, 9, "a") }()
		<-gate.Reached()
		start := time.Now()
		go func() { small <- createMany(t.Context(), s, 1, "b") }()
		if err := <-small; !fault.Is(err, fault.CodeUnavailable) || time.Since(start) != 3*time.Second {
			t.Errorf("a small write ends after %v with %v", time.Since(start), err)
		}
		time.Sleep(30 * time.Second)
		gate.Open()
		must(t, <-large)

		faults.BlockNext(storetest.Commit)
		start = time.Now()
		if err := createMany(t.Context(), s, 9, "c"); !fault.Is(err, fault.CodeUnavailable) || time.Since(start) > 2*time.Minute {
			t.Errorf("a large write that never ends does after %v, with %v", time.Since(start), err)
		}
	})
}

// What the closure of a write takes is not held against the store.
func TestSlowClosure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, storetest.NewMemory(), state.Options{Patience: 3 * time.Second})
		must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			time.Sleep(10 * time.Second)
			return places.Create(tx, &place{Meta: kind.Meta{ID: "1"}, Name: "slow"})
		}))
	})
}

// cluster starts an etcd server with the limits that it has by default.
func cluster(t *testing.T) (address string) {
	t.Helper()
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	at := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{at}, []url.URL{at}
	peer := url.URL{Scheme: "http", Host: "localhost:1"} // there is none
	c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{peer}
	c.InitialCluster = c.Name + "=" + peer.String()
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(c)
	must(t, err)
	t.Cleanup(e.Close)
	<-e.Server.ReadyNotify()
	return e.Clients[0].Addr().String()
}

// TestTenThousand creates and deletes ten thousand records, each time in one
// write, in a cluster whose transactions hold a hundred. Another controller sees
// each as one step.
func TestTenThousand(t *testing.T) {
	const n = 10000
	address := cluster(t)
	dial := func() *etcdstore.Store {
		st, err := etcdstore.Dial(t.Context(), etcdstore.Options{Endpoints: []string{address}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		must(t, err)
		t.Cleanup(func() { st.Close() })
		return st
	}
	var stored time.Duration
	ours, err := state.Open(t.Context(), dial(), kinds, state.Options{Stored: func(s state.Stored) { stored = s.Took }})
	must(t, err)
	defer ours.Close()
	theirs, err := state.Open(t.Context(), dial(), kinds, state.Options{})
	must(t, err)
	defer theirs.Close()
	sub := theirs.Subscribe()
	_, err = sub.Next(t.Context()) // all that there is
	must(t, err)

	all := func(change func(tx *state.Tx, i int) error) {
		t.Helper()
		start := time.Now()
		must(t, ours.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			for i := range n {
				if err := change(tx, i); err != nil {
					return err
				}
			}
			return nil
		}))
		took := time.Since(start)
		ev, err := sub.Next(t.Context())
		must(t, err)
		changes := 0
		for _, w := range ev.Writes {
			changes += len(w.Changes)
		}
		if ev.Rev != ours.Snapshot().Rev || changes != n {
			t.Errorf("another saw %d changes at %d, want %d at %d", changes, ev.Rev, n, ours.Snapshot().Rev)
		}
		t.Logf("%d changes took %v, %v of them to store, and another saw them %v later", n, took, stored, time.Since(start)-took)
		// Both can go on from there.
		must(t, createMany(t.Context(), theirs, 1, fmt.Sprint("theirs", ev.Rev)))
		must(t, createMany(t.Context(), ours, 1, fmt.Sprint("ours", ev.Rev)))
		for range 2 {
			_, err := sub.Next(t.Context())
			must(t, err)
		}
	}
	id := func(i int) string { return fmt.Sprintf("p%05d", i) }
	all(func(tx *state.Tx, i int) error {
		return places.Create(tx, &place{Meta: kind.Meta{ID: id(i)}, Name: fmt.Sprint("a place ", i)})
	})
	all(func(tx *state.Tx, i int) error { return places.Delete(tx, id(i)) })
}
