package integrity_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"netkeep.internal/internal/data/integrity"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/model"
)

// BenchmarkScan scans a network of 100,000 identities, kept by the real store.
func BenchmarkScan(b *testing.B) {
	ctx := context.Background()
	st, err := etcdstore.Open(ctx, etcdstore.Options{Dir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	s, err := state.Open(ctx, st, model.All, state.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const identities, batch = 100_000, 500
	for from := 0; from < identities; from += batch {
		err := s.Update(ctx, state.Program("bench"), func(tx *state.Tx) error {
			if err := model.Seed(tx); err != nil {
				return err
			}
			for i := from; i < from+batch; i++ {
				if err := addIdentity(tx, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	scanner := &integrity.Scanner{State: s, Store: st, Quarantine: b.TempDir(), Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	run, stop := context.WithCancel(ctx)
	defer stop()
	go scanner.Run(run)
	for b.Loop() {
		if err := scanner.Start(state.Program("test"), false); err != nil {
			b.Fatal(err)
		}
		for scanner.Report().Running {
			<-time.After(time.Millisecond)
		}
		if r := scanner.Report(); len(r.Findings) > 0 || r.Error != "" {
			b.Fatalf("the scan reports %+v", r)
		}
	}
}

func addIdentity(tx *state.Tx, i int) error {
	identity := &model.Identity{
		Name: fmt.Sprintf("identity %d", i), Type: "Device", RoleAttributes: []string{fmt.Sprint(i % 10), fmt.Sprint(i % 100)},
	}
	return model.Identities.Create(tx, identity)
}
