package upgrade_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/test/servertest"
	"netkeep.internal/test/upgrade/fixture"
)

// TestUpgradeAndBack starts on old data. It has the format of this version then,
// and beside it is a snapshot of what it was.
func TestUpgradeAndBack(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	fixture.Restore(t, fixture.First, data)
	for range 2 { // which the second time finds nothing to do
		s, err := servertest.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		rec, _, err := s.Store().Get(t.Context(), format.Key)
		if err != nil || string(rec.Value) != `{"format":7,"release":"v0.1.0"}` {
			t.Errorf("the store says %s: %v", rec.Value, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(filepath.Join(data, "snapshots"))
	if err != nil || len(files) != 1 {
		t.Fatalf("there are the snapshots %v: %v", files, err)
	}
	was := filepath.Join(dir, "was")
	fixture.Restore(t, fixture.First, was)
	back := filepath.Join(dir, "back")
	if _, _, err := server.Restore(t.Context(), back, filepath.Join(data, "snapshots", files[0].Name())); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(records(t, was), records(t, back)); d != "" {
		t.Errorf("the snapshot is not what it was:\n%s", d)
	}
}

// records is everything in the store of a data directory.
func records(t *testing.T, data string) map[string]string {
	t.Helper()
	st, err := etcdstore.Open(t.Context(), etcdstore.Options{Dir: filepath.Join(data, "store")})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	all := map[string]string{}
	if _, err := st.Load(t.Context(), func(r store.Record) error { all[r.Key] = string(r.Value); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestOutgrown has a newer version take over the store that a controller uses.
// The controller says so and stops.
func TestOutgrown(t *testing.T) {
	s, err := servertest.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // not with Close: that it is logged is right
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	op := store.Op{Key: format.Key, Value: []byte(`{"format":99,"release":"v9.0.0","from":98}`), Prev: store.Any}
	if _, err := s.Store().Put(t.Context(), store.Head{}, []store.Op{op}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.Failed():
		const want = "the store has format 99, which netkeep v9.0.0 and newer can read; this version reads formats up to 7"
		if err.Error() != want {
			t.Errorf("it says %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}
