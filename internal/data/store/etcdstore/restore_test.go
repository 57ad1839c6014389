package etcdstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"netkeep.internal/internal/data/store"
)

func TestRestoreRefuses(t *testing.T) {
	s := startTest(t, testLogger(t), asIs).handle("", func() error { return nil })
	defer s.Close()
	if _, err := s.Put(t.Context(), store.Head{}, set("k/1", 1000)); err != nil {
		t.Fatal(err)
	}
	var good bytes.Buffer
	if err := s.Snapshot(t.Context(), &good); err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(good.Bytes())
	flipped[len(flipped)/2] ^= 1
	// A right checksum of no database.
	body := bytes.Repeat([]byte("no database "), 1024)
	sum := sha256.Sum256(body)
	for name, data := range map[string][]byte{
		"empty":     nil,
		"short":     good.Bytes()[:20],
		"cut":       good.Bytes()[:good.Len()-1],
		"cut block": good.Bytes()[:good.Len()-512],
		"flipped":   flipped,
		"other":     append(body, sum[:]...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := Restore(t.Context(), bytes.NewReader(data), dir); err == nil {
				t.Error("restored")
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}

	t.Run("directory in use", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Restore(t.Context(), bytes.NewReader(good.Bytes()), dir); err == nil {
			t.Error("restored")
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("left %v, %v", left, err)
		}
	})

	t.Run("canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Restore(ctx, bytes.NewReader(good.Bytes()), t.TempDir()); !errors.Is(err, context.Canceled) {
			t.Errorf("Restore: %v", err)
		}
	})
}
