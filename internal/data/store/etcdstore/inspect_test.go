package etcdstore

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"netkeep.internal/internal/data/store"
)

// TestInspect reads a snapshot back: the position is that of a Load.
func TestInspect(t *testing.T) {
	s := startTest(t, testLogger(t), asIs).handle("", func() error { return nil })
	defer s.Close()
	head, err := s.Commit(t.Context(), 0, store.Head{Time: time.Unix(1, 0).UTC()}, []store.Op{{Key: "k/1", Value: []byte("v")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"v", "w"} {
		if _, err := s.Put(t.Context(), store.Head{}, []store.Op{{Key: "s/1", Value: []byte(value), Prev: store.Any}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Put(t.Context(), store.Head{}, []store.Op{{Key: "s/2", Value: []byte("v")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), store.Head{}, []store.Op{{Key: "s/2", Prev: store.Any}}); err != nil {
		t.Fatal(err)
	}
	want, err := s.Load(t.Context(), func(store.Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "snapshot")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := s.Snapshot(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{"k/1": "v", "s/1": "w", "s/2": "", "s/3": ""} {
		got, all, err := Inspect(t.Context(), path, "", "k/1", key)
		has := all[key]
		if string(all["k/1"]) != "v" {
			t.Errorf("beside %s, k/1 is %q", key, all["k/1"])
		}
		if err != nil || got != want || got.Head != head.Rev || string(has) != value || (has == nil) != (value == "") {
			t.Errorf("it holds %+v, want %+v, and %s is %q: %v", got, want, key, has, err)
		}
	}
	if _, _, err := Inspect(t.Context(), path, "another", "k/1"); err == nil || !strings.Contains(err.Error(), "holds no network") {
		t.Errorf("with another prefix: %v", err)
	}
}

// TestInspectRefuses gives files whose checksum is right and that are no
// snapshots nevertheless.
func TestInspectRefuses(t *testing.T) {
	database := func(fill func(*bolt.Tx) error) []byte {
		t.Helper()
		path := filepath.Join(t.TempDir(), "db")
		db, err := bolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Update(fill); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	record := func(key, value string) func(*bolt.Tx) error {
		return func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte("key"))
			if err != nil {
				return err
			}
			return b.Put([]byte(key), []byte(value))
		}
	}
	for name, data := range map[string][]byte{
		"text":                []byte("just a text"),
		"no bucket":           database(func(*bolt.Tx) error { return nil }),
		"no revision":         database(record("x", "")),
		"no record":           database(record("\x00\x00\x00\x00\x00\x00\x00\x01_\x00\x00\x00\x00\x00\x00\x00\x00", "\xff")),
		"no head":             database(record("\x00\x00\x00\x00\x00\x00\x00\x01_\x00\x00\x00\x00\x00\x00\x00\x00", "")),
		"head of another day": database(record("\x00\x00\x00\x00\x00\x00\x00\x01_\x00\x00\x00\x00\x00\x00\x00\x00", "\x0a\x04head\x2a\x01?")),
	} {
		t.Run(name, func(t *testing.T) {
			sum := sha256.Sum256(data)
			path := filepath.Join(t.TempDir(), "snapshot")
			if err := os.WriteFile(path, append(data, sum[:]...), 0o600); err != nil {
				t.Fatal(err)
			}
			if mark, _, err := Inspect(t.Context(), path, "", "k/1"); err == nil {
				t.Errorf("it holds %+v", mark)
			}
		})
	}
}
