package state_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// spark is in no store.
type spark struct {
	kind.Meta
	Place string `json:"place" kind:"server,ref=place:cascade"`
}

// TestVolatileIsNotStored has a volatile kind be neither written nor read, and
// not in the way of a delete of what its records refer to.
func TestVolatileIsNotStored(t *testing.T) {
	sparks := kind.Define(kind.Spec[spark]{Name: "spark", Path: "sparks", Lane: kind.Volatile})
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		// What somebody put there is of no kind that this version stores.
		_, err := memory.Put(t.Context(), store.Head{}, []store.Op{{Key: "spark/1", Value: []byte(`{"id":"1"}`), Prev: store.Any}})
		must(t, err)
		s, err := state.Open(t.Context(), memory, kind.NewCatalog(places.Def, sparks.Def), state.Options{Frozen: true})
		must(t, err)
		t.Cleanup(s.Close)
		if _, there := sparks.Get(s.Snapshot(), "1"); there || s.Snapshot().Len(sparks.Def) != 0 {
			t.Error("a volatile record was read from the store")
		}
		if n, _ := s.Unreadable(); n != 0 {
			t.Errorf("%d records cannot be read", n)
		}
		create(t, s, places.Def, &place{Meta: kind.Meta{ID: "hall"}})
		err = s.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
			return sparks.Create(tx, &spark{Meta: kind.Meta{ID: "2"}, Place: "hall"})
		})
		if err == nil || !strings.Contains(err.Error(), "wrong lane") {
			t.Errorf("a write of a volatile record ends with %v", err)
		}
		must(t, s.Delete(t.Context(), state.Program("test"), places.Def, "hall"))
	})
}
