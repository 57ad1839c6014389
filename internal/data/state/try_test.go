package state_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// TestTry has a write tried: it sees what it does, and nobody else does.
func TestTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		s := open(t, memory, state.Options{})
		must(t, createPlace(s, t.Context(), "1", "home"))
		must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			return people.Create(tx, &person{Meta: kind.Meta{ID: "ann"}, Name: "ann", Traits: []string{"tall"}})
		}))
		before := s.Snapshot()
		step, err := s.Try(t.Context(), state.Nobody, before, func(tx *state.Tx) error {
			if err := people.Create(tx, &person{Meta: kind.Meta{ID: "bob"}, Name: "bob", Home: "1", Traits: []string{"tall"}}); err != nil {
				return err
			}
			return people.Delete(tx, "ann")
		})
		must(t, err)
		if step.Before != before || len(step.Changed) != 2 || step.Changed[0].ID != "bob" || step.Changed[1].ID != "ann" {
			t.Errorf("it changed %v", step.Changed)
		}
		if _, ok := people.Get(step.After, "bob"); !ok || step.After.Tagged(people.Def, "tall").GetCardinality() != 1 {
			t.Error("the trial does not show its own outcome")
		}
		if s.Snapshot() != before || before.Tagged(people.Def, "tall").GetCardinality() != 1 {
			t.Error("others see a trial")
		}
		if _, ok := people.Get(before, "ann"); !ok {
			t.Error("a trial deleted a record")
		}
		sameAsStore(t, memory, s)
		_, err = s.Try(t.Context(), state.Nobody, before, func(tx *state.Tx) error { return places.Create(tx, &place{Name: "home"}) })
		if codeOf(err) != fault.CodeInvalid {
			t.Errorf("a rule is judged as %v", err)
		}
		if _, err := s.Try(t.Context(), state.Nobody, before, func(*state.Tx) error { panic("dear me") }); err == nil {
			t.Error("a panic in a trial ends with nothing")
		}
	})
}

// TestTryBesideWrites has many try at the same time as others write, all of
// them on tables that everybody shares.
func TestTryBesideWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		s := open(t, memory, state.Options{})
		add := func(name string) func(tx *state.Tx) error {
			return func(tx *state.Tx) error {
				return people.Create(tx, &person{Meta: kind.Meta{ID: name}, Name: name, Traits: []string{"tall"}})
			}
		}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for j := range 50 {
					name := fmt.Sprint("p", i, ".", j)
					on := s.Snapshot()
					step, err := s.Try(t.Context(), state.Nobody, on, add(name))
					if err != nil || step.After.Len(people.Def) != on.Len(people.Def)+1 {
						t.Errorf("try %s: %v", name, err)
					}
					if err := s.Update(t.Context(), state.Program("tester"), add(name)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if n := s.Snapshot().Len(people.Def); n != 200 {
			t.Errorf("there are %d people", n)
		}
		sameAsStore(t, memory, s)
	})
}

// TestSame asks in a write whether what somebody saw before is still so.
func TestSame(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{})
	seen := s.Snapshot()
	same := func(kinds ...*kind.Def) (same bool) {
		must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			same = tx.Same(seen, kinds...)
			return nil
		}))
		return same
	}
	must(t, createPlace(s, t.Context(), "1", "home"))
	if same(people.Def, places.Def) || !same(people.Def) {
		t.Error("a new place is not seen, or seen as a person")
	}
}

// TestAmend changes a record, and then to what it is.
func TestAmend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		s := open(t, memory, state.Options{})
		must(t, createPlace(s, t.Context(), "1", "home"))
		for _, want := range []bool{true, false} {
			before := s.Snapshot()
			old, _ := places.Get(before, "1")
			var different bool
			must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) (err error) {
				different, err = tx.Amend(places.Def, "1", func(rec kind.Record) error { rec.(*place).Count = 7; return nil })
				return err
			}))
			now, _ := places.Get(s.Snapshot(), "1")
			if different != want || (s.Snapshot().Rev != before.Rev) != want || now.UpdatedAt.After(old.UpdatedAt) != want || now.Count != 7 {
				t.Errorf("it is different: %v, as %+v", different, now)
			}
		}
		err := s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			_, err := tx.Amend(places.Def, "2", func(kind.Record) error { return nil })
			return err
		})
		if codeOf(err) != fault.CodeNotFound {
			t.Errorf("a record that is not there: %v", err)
		}
		sameAsStore(t, memory, s)
	})
}

// TestDoom deletes records one after the other, said before and not: it comes
// to the same, and what refers to all of them is changed once.
func TestDoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		s := open(t, memory, state.Options{})
		ids := []string{"ann", "bob", "cid", "dan"}
		must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			for _, id := range ids {
				p := &person{Meta: kind.Meta{ID: id}, Name: id}
				if id != "ann" {
					p.Boss = "ann"
				}
				must(t, people.Create(tx, p))
			}
			must(t, items.Create(tx, &item{Meta: kind.Meta{ID: "own"}, Owner: "bob"}))
			must(t, items.Create(tx, &item{Meta: kind.Meta{ID: "kept"}, Keepers: ids}))
			return rules.Create(tx, &rule{Meta: kind.Meta{ID: "law"}, Who: []string{"#tall", "@ann", "@bob", "@cid", "@dan"}})
		}))
		var outcomes []string
		var times []time.Duration
		for _, doom := range []bool{false, true} {
			step, err := s.Try(t.Context(), state.Nobody, s.Snapshot(), func(tx *state.Tx) error {
				if doom {
					tx.Doom([]state.Ref{{Def: people.Def, ID: "ann"}, {Def: people.Def, ID: "bob"}, {Def: people.Def, ID: "cid"}})
				}
				for _, id := range ids[:3] {
					if err := people.Delete(tx, id); err != nil {
						return err
					}
				}
				return nil
			})
			must(t, err)
			kept, _ := items.Get(step.After, "kept")
			law, _ := rules.Get(step.After, "law")
			dan, _ := people.Get(step.After, "dan")
			_, own := items.Get(step.After, "own")
			outcomes = append(outcomes, fmt.Sprintf("%d %v %v %q %v", step.After.Len(people.Def), kept.Keepers, law.Who, dan.Boss, own))
			times = append(times, law.UpdatedAt.Time().Sub(s.Snapshot().Time))
		}
		if want := `1 [dan] [#tall @dan] "" false`; outcomes[0] != want || outcomes[1] != want {
			t.Errorf("it comes to %q, want %q", outcomes, want)
		}
		if times[1] >= times[0] { // a tick for each record that was written before
			t.Errorf("what refers to all is changed as often: %v", times)
		}
	})
}
