package state_test

import (
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// TestAdopt takes records from elsewhere: they are what they were, and what is there has
// rules for them too.
func TestAdopt(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{})
	made, changed := kind.MomentOf(time.Date(2019, 1, 2, 3, 4, 5, 6000, time.UTC)), kind.MomentOf(time.Date(2021, 1, 2, 3, 4, 5, 0, time.UTC))
	must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		must(t, places.Create(tx, &place{Meta: kind.Meta{ID: ".-1"}, Name: "made here"}))
		must(t, tx.Adopt(places.Def, &place{Meta: kind.Meta{ID: ".-1", CreatedAt: made, UpdatedAt: changed}, Name: "ann"}))
		must(t, tx.Adopt(places.Def, &place{Meta: kind.Meta{CreatedAt: made}, Name: "bob"}))
		if tx.Adopt(places.Def, &place{Name: "bob"}) == nil {
			t.Error("a name is taken twice")
		}
		if tx.Adopt(people.Def, &person{Name: "eve", Home: "nowhere"}) == nil {
			t.Error("what it refers to is not there")
		}
		return nil
	}))
	ann, _ := places.Get(s.Snapshot(), ".-1")
	if ann == nil || ann.Name != "ann" || !ann.CreatedAt.Equal(made) || !ann.UpdatedAt.Equal(changed) {
		t.Errorf("got %+v", ann)
	}
	if bob, ok := places.Find(s.Snapshot(), "name", "bob"); !ok || bob.ID == "" || !bob.UpdatedAt.Equal(made) {
		t.Errorf("got %+v", bob)
	}
}
