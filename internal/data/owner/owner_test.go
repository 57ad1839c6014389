package owner_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/data/owner"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
)

// TestClaim has several claim a store at the same time. All are told the same
// one, who is there for good.
func TestClaim(t *testing.T) {
	st := storetest.NewMemory()
	if root, err := owner.Root(t.Context(), st); root != "" || err != nil {
		t.Fatalf("a new store belongs to %q: %v", root, err)
	}
	if empty, err := owner.Empty(t.Context(), st); !empty || err != nil {
		t.Errorf("a new store is not empty: %v", err)
	}
	told := make([]string, 8)
	var all sync.WaitGroup
	for i := range told {
		all.Go(func() {
			var err error
			if told[i], err = owner.Claim(t.Context(), st, strings.Repeat("a", i+1), time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	root, err := owner.Root(t.Context(), st)
	if err != nil || root == "" {
		t.Fatalf("it belongs to %q: %v", root, err)
	}
	for i, got := range told {
		if got != root {
			t.Errorf("claimant %d was told %q, not %q", i, got, root)
		}
	}
	if empty, err := owner.Empty(t.Context(), st); empty || err != nil {
		t.Errorf("it is empty: %v", err)
	}
}

// TestForget has a store forget whose it is, for the next one to claim it.
func TestForget(t *testing.T) {
	st := storetest.NewMemory()
	for i, root := range []string{"aa", "bb"} {
		free, err := owner.Free(t.Context(), st)
		if !free || err != nil {
			t.Errorf("it is not free: %v", err)
		}
		if got, err := owner.Claim(t.Context(), st, root, time.Now()); got != root || err != nil {
			t.Errorf("claim %d: it belongs to %q: %v", i, got, err)
		}
		if free, err := owner.Free(t.Context(), st); free || err != nil {
			t.Errorf("it is free, though claimed: %v", err)
		}
		if was, err := owner.Forget(t.Context(), st, time.Now()); was != root || err != nil {
			t.Errorf("it belonged to %q: %v", was, err)
		}
		if was, err := owner.Forget(t.Context(), st, time.Now()); was != "" || err != nil {
			t.Errorf("again: it belonged to %q: %v", was, err)
		}
	}
}

// TestForgetUnnamed is a store of before stores said whose they are.
func TestForgetUnnamed(t *testing.T) {
	st := storetest.NewMemory()
	if _, err := st.Put(t.Context(), store.Head{}, []store.Op{{Key: "service/1", Value: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	if free, err := owner.Free(t.Context(), st); free || err != nil {
		t.Errorf("it is free: %v", err)
	}
	if was, err := owner.Forget(t.Context(), st, time.Now()); was != "unknown" || err != nil {
		t.Errorf("it belonged to %q: %v", was, err)
	}
	if free, err := owner.Free(t.Context(), st); !free || err != nil {
		t.Errorf("it is not free: %v", err)
	}
}

func TestUnreadable(t *testing.T) {
	for _, value := range []string{"", "{", `{"root":""}`, `{"root":1}`} {
		st := storetest.NewMemory()
		if _, err := st.Put(t.Context(), store.Head{}, []store.Op{{Key: owner.Key, Value: []byte(value)}}); err != nil {
			t.Fatal(err)
		}
		if root, err := owner.Root(t.Context(), st); err == nil {
			t.Errorf("%q is read as %q", value, root)
		}
	}
}

// TestSuccession has root CAs take one another's place and retire, some of them
// twice. The network keeps its name, and forgets them with it.
func TestSuccession(t *testing.T) {
	st := storetest.NewMemory()
	note := func(known, retired []string) {
		t.Helper()
		if err := owner.Note(t.Context(), st, owner.Succession{Known: known, Retired: retired}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(known, retired []string) {
		t.Helper()
		if got, err := owner.Successors(t.Context(), st); !slices.Equal(got.Known, known) || !slices.Equal(got.Retired, retired) || err != nil {
			t.Errorf("what is known: %+v: %v", got, err)
		}
	}
	note([]string{"bb"}, []string{"aa"})
	wants(nil, nil) // it is a store of nobody
	if _, err := owner.Claim(t.Context(), st, "aa", time.Now()); err != nil {
		t.Fatal(err)
	}
	note([]string{"aa"}, nil)
	wants(nil, nil) // the first is known by its name
	note([]string{"bb", "aa"}, nil)
	wants([]string{"bb"}, nil)
	note([]string{"bb"}, []string{"aa"})
	note([]string{"cc", "bb"}, []string{"aa"})
	note([]string{"cc"}, []string{"aa", "bb"})
	wants([]string{"bb", "cc"}, []string{"aa", "bb"})
	if root, err := owner.Root(t.Context(), st); root != "aa" || err != nil {
		t.Errorf("it belongs to %q: %v", root, err)
	}
	if _, err := owner.Forget(t.Context(), st, time.Now()); err != nil {
		t.Fatal(err)
	}
	wants(nil, nil)
}
