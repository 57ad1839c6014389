package state_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// queue submits writes that wait behind one that the store holds up, each in
// its place, and returns where their results will be.
func queue(t *testing.T, s *state.State, faults *storetest.Faulty, writes ...func() error) (*storetest.Gate, []<-chan error) {
	t.Helper()
	gate := faults.BlockNext(storetest.Commit)
	first := func() error { return createPlace(s, t.Context(), "first", "") }
	var results []<-chan error
	for _, w := range slices.Concat([]func() error{first}, writes) {
		result := make(chan error, 1)
		results = append(results, result)
		go func() { result <- w() }()
		synctest.Wait()
	}
	return gate, results
}

// Waiting writes share a commit, which says who made them and when.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faults := storetest.NewFaulty(memory)
		s := open(t, faults, state.Options{})
		var writes []func() error
		for i := range 100 {
			writes = append(writes, func() error {
				by := state.Author{Kind: "person", ID: fmt.Sprint(i), Operation: "createPlace", Request: fmt.Sprint("request", i), Source: "192.0.2.1"}
				return s.Update(t.Context(), by, func(tx *state.Tx) error {
					return places.Create(tx, &place{Name: fmt.Sprint(i)})
				})
			})
		}
		gate, results := queue(t, s, faults, writes...)
		gate.Open()
		for _, r := range results {
			must(t, <-r)
		}
		var sizes []int
		var records int
		var authors []store.Write
		err := memory.Follow(t.Context(), 0, func(b store.Batch) error {
			sizes = append(sizes, len(b.Ops))
			authors = append(authors, b.Head.Writes...)
			records += len(b.Ops) // each is a microsecond later than the one before
			if want := time.Now().Add(time.Duration(records-1) * time.Microsecond); !b.Head.Time.Equal(want) {
				t.Errorf("the time is %v, want %v", b.Head.Time, want)
			}
			if len(sizes) == 3 {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
		if want := []int{1, 64, 36}; !slices.Equal(sizes, want) {
			t.Errorf("the commits have %d ops, want %d", sizes, want)
		}
		for i, w := range authors[1:] {
			want := store.Author{Kind: "person", ID: fmt.Sprint(i), Operation: "createPlace", Request: fmt.Sprint("request", i), Source: "192.0.2.1"}
			if w.Author != want || w.Ops != 1 {
				t.Errorf("write %d is %+v, want one op by %+v", i, w, want)
			}
		}
	})
}

// batches returns the first n batches of a store.
func batches(t *testing.T, st store.Store, n int) (list []store.Batch) {
	t.Helper()
	err := st.Follow(t.Context(), 0, func(b store.Batch) error {
		if list = append(list, b); len(list) == n {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	return list
}

// No two writes of a commit change the same record, so that each change has
// one author, in both lanes.
func TestOneAuthorEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faults := storetest.NewFaulty(memory)
		s := open(t, faults, state.Options{})
		create(t, s, places.Def, &place{Meta: kind.Meta{ID: "hall"}})
		count := func(who string, more ...string) func() error {
			return func() error {
				return s.Update(t.Context(), state.Author{Kind: "person", ID: who}, func(tx *state.Tx) error {
					for _, id := range more {
						if err := places.Create(tx, &place{Meta: kind.Meta{ID: id}}); err != nil {
							return err
						}
					}
					return places.Edit(tx, "hall", func(p *place) error { p.Count++; return nil })
				})
			}
		}
		nothing := func() error {
			return s.Update(t.Context(), state.Author{Kind: "person", ID: "nobody"}, func(*state.Tx) error { return nil })
		}
		gate, results := queue(t, s, faults, count("ann", "1", "2"), nothing, count("bob"), func() error { return createPlace(s, t.Context(), "3", "") })
		gate.Open()
		for _, r := range results {
			must(t, <-r)
		}
		must(t, s.UpdateSessions(t.Context(), state.Author{Kind: "person", ID: "cid"}, func(tx *state.Tx) error {
			return visits.Create(tx, &visit{Token: "x"})
		}))
		var got []string
		for _, b := range batches(t, memory, 5) {
			line := ""
			for _, w := range b.Head.Writes {
				line += fmt.Sprintf("%s %d ", w.Author, w.Ops)
			}
			got = append(got, line)
		}
		want := []string{"program:tester 1 ", "program:tester 1 ", "person:ann 3 ", "person:bob 1 program:tester 1 ", "person:cid 1 "}
		if !slices.Equal(got, want) {
			t.Errorf("the batches are by %q, want %q", got, want)
		}
		sameAsStore(t, memory, s)
	})
}

// Nobody writes without saying who it is.
func TestNoAuthor(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{})
	create := func(tx *state.Tx) error { return places.Create(tx, &place{}) }
	for name, err := range map[string]error{
		"Update":         s.Update(t.Context(), state.Author{}, create),
		"UpdateSessions": s.UpdateSessions(t.Context(), state.Author{ID: "x", Name: "x"}, create),
		"Delete":         s.Delete(t.Context(), state.Author{}, places.Def, "x"),
		"Discard":        s.Discard(t.Context(), state.Author{}, places.Def, "x", 1),
	} {
		if err == nil || !strings.Contains(err.Error(), "must say who") {
			t.Errorf("%s without an author: %v", name, err)
		}
	}
}

var errEnough = errors.New("enough")

// A refusal that rests on a write which is not stored yet is not given before
// that is certain.
func TestRefusalWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.NewFaulty(storetest.NewMemory())
		s := open(t, faults, state.Options{})
		gate, results := queue(t, s, faults,
			func() error { return createPlace(s, t.Context(), "1", "ann") },
			func() error { return createPlace(s, t.Context(), "2", "ann") },
		)
		faults.FailNext(storetest.Commit, storetest.ErrInjected) // of the group
		gate.Open()
		must(t, <-results[0])
		unavailable(t, <-results[1])
		unavailable(t, <-results[2])
		must(t, createPlace(s, t.Context(), "2", "ann"))
	})
}

// A record that comes and goes while writes wait ends up as the last of them
// left it; one that comes and goes in the same write is nothing to the store.
func TestComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faults := storetest.NewFaulty(memory)
		s := open(t, faults, state.Options{})
		create(t, s, places.Def, &place{Meta: kind.Meta{ID: "old"}}, &place{Meta: kind.Meta{ID: "older"}})
		remove := func(id string) func() error {
			return func() error { return s.Delete(t.Context(), state.Program("tester"), places.Def, id) }
		}
		gate, results := queue(t, s, faults,
			func() error { return createPlace(s, t.Context(), "1", "ann") },
			remove("1"),
			func() error { return createPlace(s, t.Context(), "1", "bob") },
			remove("1"),
			remove("old"),
			func() error { return createPlace(s, t.Context(), "old", "bob") },
			remove("old"),
			remove("older"),
			func() error { return createPlace(s, t.Context(), "older", "cid") },
		)
		gate.Open()
		for _, r := range results {
			must(t, <-r)
		}
		must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			rec := &place{}
			if err := places.Create(tx, rec); err != nil {
				return err
			}
			return places.Delete(tx, rec.ID)
		}))
		sameAsStore(t, memory, s)
		if got := ids(s.Snapshot().All(places.Def)); !slices.Equal(got, []string{"first", "older"}) {
			t.Errorf("places are %q, want first and older", got)
		}
	})
}

// The same for sessions, whose every record is guarded.
func TestSessionComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		s := open(t, memory, state.Options{})
		createVisit(t, s, &visit{Meta: kind.Meta{ID: "v"}})
		runs := 0
		must(t, s.UpdateSessions(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			runs++
			if err := visits.Delete(tx, "v"); err != nil {
				return err
			}
			return visits.Create(tx, &visit{Meta: kind.Meta{ID: "v"}, Token: "again"})
		}))
		if runs != 1 {
			t.Errorf("it took %d runs", runs)
		}
		sameAsStore(t, memory, s)
	})
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemoryWithin(store.Limits{Ops: 4, Bytes: 1000})
		faults := storetest.NewFaulty(memory)
		s := open(t, faults, state.Options{})
		several := func(n int, name string) func() error {
			return func() error {
				return s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
					for i := range n {
						if err := places.Create(tx, &place{Name: fmt.Sprint(name, i)}); err != nil {
							return err
						}
					}
					return nil
				})
			}
		}
		gate, results := queue(t, s, faults,
			several(3, "a"), several(5, "b"), several(1, strings.Repeat("c", 1000)),
			several(4, "d"), several(2, "e"), several(2, "f"), several(1, strings.Repeat("g", 700)), several(1, "h"),
		)
		gate.Open()
		want := []fault.Code{none, none, fault.CodeTooLarge, fault.CodeTooLarge, none, none, none, none, none}
		for i, r := range results {
			if got := codeOf(<-r); got != want[i] {
				t.Errorf("write %d ends with %q, want %q", i, got, want[i])
			}
		}
		sameAsStore(t, memory, s)
		if got, want := s.Snapshot().Len(places.Def), 1+3+4+2+2+1+1; got != want {
			t.Errorf("there are %d places, want %d", got, want)
		}
	})
}

// A store that takes less than it says costs those their write that are too
// large, and nobody else.
func TestStoreTakesLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := storetest.NewFaulty(storetest.NewMemory())
		s := open(t, faults, state.Options{})
		gate, results := queue(t, s, faults,
			func() error { return createPlace(s, t.Context(), "1", "ann") },
			func() error { return createPlace(s, t.Context(), "2", "bob") },
			func() error { return createPlace(s, t.Context(), "3", "cid") },
		)
		faults.FailNext(storetest.Commit, store.ErrTooLarge) // all of them
		faults.FailNext(storetest.Commit, store.ErrTooLarge) // ann alone
		gate.Open()
		for i, want := range []fault.Code{none, fault.CodeTooLarge, none, none} {
			if got := codeOf(<-results[i]); got != want {
				t.Errorf("write %d ends with %q, want %q", i, got, want)
			}
		}
	})
}
