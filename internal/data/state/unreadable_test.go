package state_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
)

// What this version cannot read is left out, whether it is loaded or
// followed, and does not stop anything.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		mark, err := p.memory.Load(t.Context(), func(store.Record) error { return nil })
		must(t, err)
		_, err = p.memory.Commit(t.Context(), mark.Head, store.Head{Time: mark.Time}, []store.Op{
			{Key: "place/hall", Value: []byte(`{"id":"hall","name":7}`), Prev: store.Any},
			{Key: "place/other", Value: []byte(`{"id":"another"}`)},
			{Key: "gadget/1", Value: []byte(`{}`)},
			{Key: "place", Value: []byte(`{}`)},
			{Key: "place/good", Value: []byte(`{"id":"good"}`)},
		})
		must(t, err)
		synctest.Wait()
		fresh := open(t, p.memory, state.Options{})
		for _, s := range []*state.State{p.sound, p.broken, fresh} {
			if got := strings.Join(ids(s.Snapshot().All(places.Def)), " "); got != "good" {
				t.Errorf("places are %q, want the good one", got)
			}
			if n, one := s.Unreadable(); n != 2 || one != "place/hall" && one != "place/other" {
				t.Errorf("%d records cannot be read, %s is one", n, one)
			}
		}
		create(t, p.sound, places.Def, &place{Meta: kind.Meta{ID: "next"}})
	})
}

// TestReadableAgain has records of both lanes that cannot be read, until they
// are written anew, deleted by another controller, or discarded.
func TestReadableAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		put := func(key, value string) store.Rev {
			t.Helper()
			op := store.Op{Key: key, Prev: store.Any}
			if value != "" {
				op.Value = []byte(value)
			}
			at, err := p.memory.Put(t.Context(), store.Head{}, []store.Op{op})
			must(t, err)
			synctest.Wait()
			return at.Rev
		}
		wants := func(when string, n int, keys ...string) {
			t.Helper()
			synctest.Wait()
			for _, s := range []*state.State{p.sound, p.broken, open(t, p.memory, state.Options{})} {
				if got, one := s.Unreadable(); got != n || n > 0 && !slices.Contains(keys, one) {
					t.Errorf("%s: %d records cannot be read, %q is one; want %d of %v", when, got, one, n, keys)
				}
			}
		}
		wants("at first", 0)
		put("place/hall", "?")
		put("place/yard", "?")
		rev := put("visit/x", "?")
		wants("of three", 3, "place/hall", "place/yard", "visit/x")
		put("place/hall", `{"id":"hall"}`)
		wants("one is whole", 2, "place/yard", "visit/x")
		put("place/yard", "")
		wants("one is deleted", 1, "visit/x")
		must(t, p.broken.Discard(t.Context(), state.Program("test"), visits.Def, "x", rev))
		wants("one is discarded", 0)
		put("place/attic", "?")
		create(t, p.sound, places.Def, &place{Meta: kind.Meta{ID: "attic"}})
		wants("one is created again", 0)
		put("place/attic", "?")
		must(t, p.sound.Reload(t.Context()))
		must(t, p.broken.Reload(t.Context()))
		wants("everything is loaded again", 1, "place/attic")
	})
}
