package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// keeping is where a State of a test keeps what it has in memory.
func keeping(t testing.TB) state.Keeping {
	return state.Keeping{File: filepath.Join(t.TempDir(), "checkpoint"), Build: "this", Network: "ours", Least: 1}
}

// keep has a State keep what it has now, in the time of a bubble.
func keep(t fataler, s *state.State, file string) {
	before := written(t, file)
	ctx, stop := context.WithCancel(background)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Keep(ctx)
	}()
	defer func() {
		stop()
		<-ended
	}()
	for range 4000 {
		<-time.After(time.Second)
		if now := written(t, file); now != "" && now != before {
			return
		}
	}
	t.Fatalf("nothing is kept")
}

type fataler interface{ Fatalf(string, ...any) }

// written is what a file has, "" for none.
func written(t fataler, file string) string {
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v", err)
	}
	return string(b)
}

// loadsNothing is a store that cannot be loaded.
type loadsNothing struct{ store.Store }

func (loadsNothing) Load(context.Context, func(store.Record) error) (store.Mark, error) {
	return store.Mark{}, storetest.ErrInjected
}

// TestRestore begins with what was kept and what came after it, by whomever it was written,
// without a look at the records of the store.
func TestRestore(t *testing.T) {
	file := keeping(t)
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(rt *rapid.T) {
			defer pass()
			_ = os.Remove(file.File)
			memory := storetest.NewMemory()
			m := &machine{t: t, store: storetest.NewFaulty(memory), world: newWorld(), keeping: file}
			m.open(rt)
			write := func(what string) {
				for range rapid.IntRange(1, 10).Draw(rt, what) {
					m.write(rt)
				}
			}
			write("before")
			must(t, createPlace(m.st, background, "surely", "surely")) // so that there is something to keep
			m.world[places.Def]["surely"] = &place{Meta: kind.Meta{ID: "surely"}, Name: "surely"}
			keep(rt, m.st, file.File)
			write("after")
			m.st.Close()
			if rapid.Bool().Draw(rt, "by another") {
				m.keeping = state.Keeping{}
				m.open(rt)
				write("of another")
				m.st.Close()
				m.keeping = file
			}
			st, err := state.Open(t.Context(), loadsNothing{memory.Another()}, kinds, state.Options{Frozen: true, Keeping: file})
			if err != nil {
				rt.Fatalf("open: %v", err)
			}
			m.st = st
			defer func() { m.st.Close() }()
			m.check(rt)
			m.other = open2(rt, memory.Another())
			defer m.other.Close()
			same(rt, m.st.Snapshot(), m.other.Snapshot())
			write("at last")
			m.check(rt)
		})
	})
}

// open2 opens a State that keeps nothing.
func open2(t fataler, st store.Store) *state.State {
	s, err := state.Open(background, st, kinds, state.Options{Frozen: true})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// same fails if two snapshots of one revision do not have the same records, written at the
// same revisions, found in the same ways.
func same(t fataler, a, b *state.Snapshot) {
	if a.Rev != b.Rev || !a.Time.Equal(b.Time) || a.JournalEnd() != b.JournalEnd() {
		t.Fatalf("at %d of %v (%q), want %d of %v (%q)", a.Rev, a.Time, a.JournalEnd(), b.Rev, b.Time, b.JournalEnd())
	}
	for _, d := range allKinds {
		if a.Len(d) != b.Len(d) {
			t.Fatalf("%d records of %s, want %d", a.Len(d), d.Name, b.Len(d))
		}
		for rec, rev := range b.Stored(d) {
			got, ok := a.Lookup(d, rec.Base().ID)
			if !ok || plain(d, got) != plain(d, rec) || a.RevOf(d, rec.Base().ID) != rev {
				t.Fatalf("%s %s is %v of %d, want %v of %d", d.Name, rec.Base().ID, got, a.RevOf(d, rec.Base().ID), rec, rev)
			}
		}
		for id, right := range a.Filing(d) {
			if !right {
				t.Fatalf("%s %s is not found as it should be", d.Name, id)
			}
		}
	}
}

// TestRestoreRefused reads all records, takes the file away and says why, where what was kept
// is not of this program, network or log, or is not whole.
func TestRestoreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		// do makes the checkpoint useless; it may return another store.
		do     func(t *testing.T, m *storetest.Memory, k *state.Keeping, before []byte) store.Store
		reason string
	}{
		"build": {func(_ *testing.T, _ *storetest.Memory, k *state.Keeping, _ []byte) store.Store {
			k.Build = "another"
			return nil
		}, "another version"},
		"network": {func(_ *testing.T, _ *storetest.Memory, k *state.Keeping, _ []byte) store.Store {
			k.Network = "theirs"
			return nil
		}, "another network"},
		"damaged": {func(t *testing.T, _ *storetest.Memory, k *state.Keeping, _ []byte) store.Store {
			b := []byte(written(t, k.File))
			b[len(b)/2] ^= 1
			must(t, os.WriteFile(k.File, b, 0o600))
			return nil
		}, "damaged"},
		"cut": {func(t *testing.T, _ *storetest.Memory, k *state.Keeping, _ []byte) store.Store {
			must(t, os.Truncate(k.File, int64(len(written(t, k.File))-9)))
			return nil
		}, "damaged"},
		"forgotten": {func(t *testing.T, m *storetest.Memory, _ *state.Keeping, _ []byte) store.Store {
			s := open(t, m.Another(), state.Options{})
			create(t, s, places.Def, &place{Meta: kind.Meta{ID: "later"}, Name: "later"})
			last, err := m.Last(t.Context())
			must(t, err)
			must(t, m.Compact(t.Context(), last))
			return nil
		}, "forgotten"},
		"older": {func(t *testing.T, _ *storetest.Memory, _ *state.Keeping, before []byte) store.Store {
			m, err := storetest.RestoreMemory(bytes.NewReader(before))
			must(t, err)
			return m
		}, "older"},
		"parted": {func(t *testing.T, m *storetest.Memory, _ *state.Keeping, before []byte) store.Store {
			last, err := m.Last(t.Context())
			must(t, err)
			parted, err := storetest.RestoreMemory(bytes.NewReader(before))
			must(t, err)
			s := open(t, parted.Another(), state.Options{})
			for i := 0; ; i++ { // until it has come as far
				if at, err := parted.Last(t.Context()); err != nil || at >= last+1 {
					must(t, err)
					return parted
				}
				create(t, s, places.Def, &place{Meta: kind.Meta{ID: fmt.Sprint("parted", i)}, Name: fmt.Sprint("parted ", i)})
			}
		}, "another store"},
	} {
		t.Run(name, func(t *testing.T) {
			file := keeping(t)
			synctest.Test(t, func(t *testing.T) {
				memory := storetest.NewMemory()
				s := open(t, memory, state.Options{Keeping: file})
				create(t, s, places.Def, &place{Meta: kind.Meta{ID: "hall"}, Name: "hall"})
				var before bytes.Buffer
				must(t, memory.Snapshot(t.Context(), &before))
				create(t, s, places.Def, &place{Meta: kind.Meta{ID: "yard"}, Name: "yard"}, &place{Meta: kind.Meta{ID: "attic"}, Name: "attic"})
				keep(t, s, file.File)
				s.Close()
				k := file
				st := tt.do(t, memory, &k, before.Bytes())
				if st == nil {
					st = memory.Another()
				}
				var said bytes.Buffer
				next := open(t, st, state.Options{Keeping: k, Logger: slog.New(slog.NewTextHandler(&said, nil))})
				stored(t, st).verify(t, next.Snapshot())
				if !strings.Contains(said.String(), "the checkpoint is not used") || !strings.Contains(said.String(), tt.reason) {
					t.Errorf("it says %s, want something of %q", said.String(), tt.reason)
				}
				if written(t, file.File) != "" {
					t.Error("the file is still there")
				}
			})
		})
	}
}

// TestRestoreAway fails where the store cannot be asked, and leaves the file for the next start.
func TestRestoreAway(t *testing.T) {
	file := keeping(t)
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		s := open(t, memory, state.Options{Keeping: file})
		create(t, s, places.Def, &place{Meta: kind.Meta{ID: "hall"}, Name: "hall"})
		keep(t, s, file.File)
		s.Close()
		away := storetest.NewFaulty(memory.Another())
		away.FailNext(storetest.Witness, storetest.ErrInjected)
		away.FailNext(storetest.Load, storetest.ErrInjected)
		if _, err := state.Open(t.Context(), away, kinds, state.Options{Keeping: file}); !errors.Is(err, storetest.ErrInjected) {
			t.Errorf("opened: %v", err)
		}
		if written(t, file.File) == "" {
			t.Error("the file is gone")
		}
		open(t, loadsNothing{memory.Another()}, state.Options{Keeping: file})
	})
}

// TestKeep keeps what changed, and neither what did not, nor so little that it is read as soon,
// nor what has a record that cannot be read.
func TestKeep(t *testing.T) {
	file := keeping(t)
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		k := file
		k.Least = 2
		s := open(t, memory, state.Options{Keeping: k})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Keep(ctx)
		}()
		defer func() {
			stop()
			<-ended
		}()
		wait := func(d time.Duration) string {
			<-time.After(d)
			synctest.Wait()
			return written(t, file.File)
		}
		create(t, s, places.Def, &place{Meta: kind.Meta{ID: "hall"}, Name: "hall"})
		if wait(3*time.Hour) != "" {
			t.Error("one record is kept")
		}
		create(t, s, places.Def, &place{Meta: kind.Meta{ID: "yard"}, Name: "yard"})
		first := wait(time.Minute)
		if first == "" {
			t.Fatal("two are not kept")
		}
		made, err := os.Stat(file.File)
		must(t, err)
		again := func() bool {
			now, err := os.Stat(file.File)
			must(t, err)
			return !os.SameFile(made, now)
		}
		if wait(3 * time.Hour); again() {
			t.Error("what did not change is kept again")
		}
		create(t, s, places.Def, &place{Meta: kind.Meta{ID: "attic"}, Name: "attic"})
		if wait(time.Hour); !again() {
			t.Error("what changed is not kept within an hour")
		}
		last := written(t, file.File)
		_, err = memory.Another().Put(t.Context(), store.Head{}, []store.Op{{Key: "place/bad", Value: []byte("{"), Prev: store.Any}})
		must(t, err)
		if wait(3*time.Hour) != last {
			t.Error("a store with a record that cannot be read is kept")
		}
	})
}

// TestKeepFails says once that nothing can be kept, and goes on without.
func TestKeepFails(t *testing.T) {
	file := keeping(t)
	file.File = filepath.Join(filepath.Dir(file.File), "missing", "checkpoint")
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		s := open(t, storetest.NewMemory(), state.Options{Keeping: file, Logger: slog.New(slog.NewTextHandler(&said, nil))})
		create(t, s, places.Def, &place{Meta: kind.Meta{ID: "hall"}, Name: "hall"})
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Hour)
		defer stop()
		s.Keep(ctx)
		if n := strings.Count(said.String(), "a checkpoint failed"); n != 1 {
			t.Errorf("it is said %d times: %s", n, said.String())
		}
	})
}
