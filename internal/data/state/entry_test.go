package state_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// noted makes a place and an entry of it, in one write.
func noted(ctx context.Context, s *state.State, text string) error {
	return s.Update(ctx, state.Program("tester"), func(tx *state.Tx) error {
		if err := places.Create(tx, &place{Name: text}); err != nil {
			return err
		}
		return tx.Append(notes.Def, &note{Text: text})
	})
}

// texts reads all entries.
func texts(t *testing.T, s *state.State, in state.Stretch, most int, newest bool) (all []string, more bool) {
	t.Helper()
	entries, more, err := s.Entries(t.Context(), notes.Def, in, most, newest)
	must(t, err)
	for _, rec := range entries {
		all = append(all, rec.(*note).Text)
	}
	return all, more
}

// Entries are stored with what they belong to, whichever controller writes, are
// told to subscribers, and are not in memory.
func TestEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, states := openSeveral(t, 2)
		subs := []*state.Subscription{states[0].Subscribe(notes.Def), states[1].Subscribe(notes.Def)}
		for _, sub := range subs {
			_, err := sub.Next(t.Context())
			must(t, err)
		}
		var want []string
		start := time.Now()
		for i := range 20 {
			want = append(want, fmt.Sprint("note ", i))
			must(t, noted(t.Context(), states[i%2], want[i]))
			create(t, states[i%2], people.Def, &person{})
			synctest.Wait()
			time.Sleep(time.Minute)
		}
		for i, sub := range subs {
			for _, text := range want {
				ev, err := sub.Next(t.Context())
				must(t, err)
				if len(ev.Writes) != 1 || len(ev.Writes[0].Changes) != 1 || len(ev.Writes[0].Entries) != 1 || ev.Writes[0].Entries[0].Record.(*note).Text != text {
					t.Fatalf("controller %d tells of %q as %+v", i, text, ev)
				}
			}
			if n := states[i].Snapshot().Len(notes.Def); n != 0 {
				t.Errorf("controller %d has %d entries in memory", i, n)
			}
		}
		s := states[1]
		if got, more := texts(t, s, state.Stretch{}, 100, false); !slices.Equal(got, want) || more {
			t.Errorf("the entries are %q (more: %t), want %q", got, more, want)
		}
		if got, more := texts(t, s, state.Stretch{}, 2, true); !slices.Equal(got, []string{"note 19", "note 18"}) || !more {
			t.Errorf("the newest entries are %q (more: %t)", got, more)
		}
		between := state.Stretch{From: start.Add(5 * time.Minute), Before: start.Add(8 * time.Minute)}
		if got, more := texts(t, s, between, 100, false); !slices.Equal(got, want[5:8]) || more {
			t.Errorf("between are %q (more: %t), want %q", got, more, want[5:8])
		}
		entries, _, err := s.Entries(t.Context(), notes.Def, between, 1, false)
		must(t, err)
		between.After = entries[0].Base().ID
		if got, _ := texts(t, s, between, 100, false); !slices.Equal(got, want[6:8]) {
			t.Errorf("after %q come %q, want %q", between.After, got, want[6:8])
		}
		for _, other := range states {
			if n, err := other.Forget(t.Context(), state.Program("tester"), notes.Def, state.Stretch{Before: start.Add(3 * time.Minute)}, 2); err != nil || n > 2 {
				t.Errorf("forgetting: %d, %v", n, err)
			}
		}
		if got, _ := texts(t, states[0], state.Stretch{}, 100, false); !slices.Equal(got, want[3:]) {
			t.Errorf("left are %q, want %q", got, want[3:])
		}
		must(t, noted(t.Context(), states[0], "last")) // memory has followed
	})
}

// There is no change without its entry and no entry without its change, whatever
// the store does.
func TestEntriesWithChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faulty := storetest.NewFaulty(memory)
		s, err := state.Open(t.Context(), faulty, kinds, state.Options{})
		must(t, err)
		defer s.Close()
		for i := range 40 {
			switch i % 4 {
			case 1:
				faulty.FailNext(storetest.Commit, storetest.ErrInjected)
			case 2:
				faulty.LoseNext(storetest.Commit, storetest.ErrInjected)
			case 3: // another controller writes first
				at, err := memory.Load(t.Context(), func(store.Record) error { return nil })
				must(t, err)
				_, err = memory.Commit(t.Context(), at.Head, store.Head{}, []store.Op{{Key: fmt.Sprint("person/", i), Value: fmt.Appendf(nil, `{"id":"%d"}`, i)}})
				must(t, err)
			}
			_ = noted(t.Context(), s, fmt.Sprint(i))
			synctest.Wait()
		}
		var made []string
		for rec := range s.Snapshot().All(places.Def) {
			made = append(made, rec.(*place).Name)
		}
		told, _ := texts(t, s, state.Stretch{}, 100, false)
		slices.Sort(made)
		slices.Sort(told)
		if !slices.Equal(made, told) || len(made) != 30 {
			t.Errorf("made were %q, entries tell of %q", made, told)
		}
	})
}

// An entry that cannot be read is left out and harms nothing.
func TestEntryUnreadable(t *testing.T) {
	memory := storetest.NewMemory()
	s := open(t, memory, state.Options{})
	must(t, noted(t.Context(), s, "one"))
	sub := s.Subscribe(notes.Def)
	_, err := sub.Next(t.Context())
	must(t, err)
	_, err = memory.Put(t.Context(), store.Head{}, []store.Op{{Key: "+note/5", Value: []byte(`{`)}, {Key: "+gadget/1", Value: []byte(`{}`)}})
	must(t, err)
	must(t, noted(t.Context(), s, "two"))
	if ev, err := sub.Next(t.Context()); err != nil || ev.Writes[0].Entries[0].Record.(*note).Text != "two" {
		t.Errorf("next comes %+v (%v)", ev, err)
	}
	if got, _ := texts(t, s, state.Stretch{}, 100, false); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("the entries are %q", got)
	}
	if n, one := s.Unreadable(); n != 0 {
		t.Errorf("%d records cannot be read, as %s", n, one)
	}
	err = s.Update(t.Context(), state.Nobody, func(tx *state.Tx) error { return tx.Create(notes.Def, &note{Meta: kind.Meta{ID: "x"}}) })
	if err == nil {
		t.Error("an entry can be made as if it were a record")
	}
}
