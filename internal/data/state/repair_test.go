package state_test

import (
	"context"
	"testing"
	"testing/synctest"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// TestDiscard takes out what cannot be read, of both lanes, and nothing that
// was written since.
func TestDiscard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storetest.NewMemory()
		s, err := state.Open(t.Context(), mem, kinds, state.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, d := range []*kind.Def{places.Def, visits.Def} {
			key := d.Name + "/x"
			put := func(value string) store.Rev {
				t.Helper()
				at, err := mem.Put(t.Context(), store.Head{}, []store.Op{{Key: key, Value: []byte(value), Prev: store.Any}})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				return at.Rev
			}
			old := put("?")
			rev := put("??")
			if err := s.Discard(t.Context(), state.Program("test"), d, "x", old); !fault.Is(err, fault.CodeUnavailable) {
				t.Errorf("%s of an older revision: %v", key, err)
			}
			if err := s.Discard(t.Context(), state.Program("test"), d, "x", rev); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			if _, there, err := mem.Get(t.Context(), key); there || err != nil {
				t.Errorf("%s is still there: %v", key, err)
			}
			rev = put(`{"id":"x"}`)
			if err := s.Discard(t.Context(), state.Program("test"), d, "x", rev); !fault.Is(err, fault.CodeUnavailable) {
				t.Errorf("%s can be read: %v", key, err)
			}
			if _, there := s.Snapshot().Lookup(d, "x"); !there {
				t.Errorf("%s is gone from memory", key)
			}
		}
	})
}

// TestReload has several ask for a load at once, while the store fails the
// first attempt.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := storetest.NewMemory()
		faulty := storetest.NewFaulty(mem)
		s, err := state.Open(t.Context(), faulty, kinds, state.Options{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		faulty.DropNext()
		if _, err := mem.Another().Put(t.Context(), store.Head{}, []store.Op{{Key: "place/x", Value: []byte(`{"id":"x"}`), Prev: 0}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s.Snapshot().Len(places.Def) != 0 {
			t.Fatal("memory missed nothing")
		}
		faulty.FailNext(storetest.Load, storetest.ErrInjected)
		results := make(chan error)
		for range 3 {
			go func() { results <- s.Reload(context.Background()) }()
		}
		for range 3 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if s.Snapshot().Len(places.Def) != 1 {
			t.Error("memory was not loaded again")
		}
		s.Close()
		if err := s.Reload(context.Background()); err == nil {
			t.Error("a closed state was loaded")
		}
	})
}
