package etcdstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"netkeep.internal/internal/data/store"
)

// TestGap starts a member whose log was cut, or is one of before: it says so at once, in
// place of waiting for what it never finds, and is whole again with the right log.
func TestGap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	fill := func(from, to int) {
		t.Helper()
		s, err := Open(t.Context(), Options{Dir: dir, Logger: testLogger(t)})
		if err != nil {
			t.Fatal(err)
		}
		for i := from; i < to; i++ {
			if _, err := s.Put(t.Context(), store.Head{}, set(fmt.Sprint("k/", i), 100)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	fill(0, 20)
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	older, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	fill(20, 40)
	whole, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(whole, "\x00"))
	for name, log := range map[string][]byte{
		"an older log": older, "the half": whole[:used/2], "nine of ten": whole[:used*9/10], "a beginning": whole[:used/20],
	} {
		if err := os.WriteFile(logs[0], log, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		s, err := Open(ctx, Options{Dir: dir, Logger: testLogger(t)})
		cancel()
		if err == nil {
			t.Errorf("%s: it starts", name)
			_ = s.Close()
		} else if !errors.Is(err, errGap) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(logs[0], whole, 0o600); err != nil {
		t.Fatal(err)
	}
	fill(40, 41)
	s, err := Open(t.Context(), Options{Dir: dir, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	if _, err := s.Load(t.Context(), func(store.Record) error { n++; return nil }); err != nil || n != 41 {
		t.Errorf("there are %d records: %v", n, err)
	}
}

// TestDamagedPages starts a member whose database has a page that is none, or is cut: it
// says so, and goes on with the right one.
func TestDamagedPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	open := func() error {
		s, err := Open(t.Context(), Options{Dir: dir, Logger: testLogger(t)})
		if err != nil {
			return err
		}
		for i := range 200 {
			if _, err := s.Put(t.Context(), store.Head{}, set(fmt.Sprint("k/", i), 1000)); err != nil {
				t.Fatal(err)
			}
		}
		return s.Close()
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "member", "snap", "db")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	refused, pages := 0, len(bytes.TrimRight(whole, "\x00"))/page
	for at := 4 * page; at < pages*page; at += max(1, pages/16) * page {
		zeroed := bytes.Clone(whole)
		clear(zeroed[at:min(len(zeroed), at+2*page)])
		for _, damaged := range [][]byte{zeroed, whole[:at]} {
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			// Some of what is in the file is free, and not missed by anybody.
			if _, err := inDatabase(file, true); err != nil {
				refused++
				if err := open(); !errors.Is(err, errDamaged) {
					t.Fatalf("damaged at %d it opens with: %v", at, err)
				}
			}
		}
	}
	if refused == 0 {
		t.Error("no damage was seen")
	}
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Error(err)
	}
}
