package state_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// estate is a person with n items, each with a crate with two labels, and n
// more items that the person keeps.
func estate(t *testing.T, s *state.State, n int) {
	t.Helper()
	create(t, s, people.Def, &person{Meta: kind.Meta{ID: "p"}})
	for i := range n {
		id := fmt.Sprint(i)
		create(t, s, items.Def,
			&item{Meta: kind.Meta{ID: "own" + id}, Owner: "p"},
			&item{Meta: kind.Meta{ID: "keep" + id}, Keepers: []string{"p"}})
		create(t, s, labels.Def, &label{Meta: kind.Meta{ID: "1-" + id}}, &label{Meta: kind.Meta{ID: "2-" + id}})
		create(t, s, crates.Def, &crate{Meta: kind.Meta{ID: id}, Item: "own" + id, Labels: []string{"1-" + id, "2-" + id}})
	}
	create(t, s, rules.Def, &rule{Meta: kind.Meta{ID: "r"}, Who: []string{"@p", "#red"}})
}

// dangling returns a reference that leads nowhere, or a crate's label that is
// gone or left behind.
func dangling(w world) string {
	for _, f := range fields {
		if f.target == nil {
			continue
		}
		for id, rec := range w[f.def] {
			for _, key := range f.keys(rec) {
				target, isID := strings.CutPrefix(key, "@")
				if f.roles && !isID {
					continue
				}
				if _, ok := w[f.target][target]; !ok {
					return fmt.Sprintf("%s %s holds %s, which is gone", f.def.Name, id, key)
				}
			}
		}
	}
	labelled := 0
	for id, rec := range w[crates.Def] {
		for _, l := range rec.(*crate).Labels {
			labelled++
			if _, ok := w[labels.Def][l]; !ok {
				return fmt.Sprintf("crate %s has lost label %s", id, l)
			}
		}
	}
	if labelled != len(w[labels.Def]) {
		return fmt.Sprintf("%d labels for crates that have %d", len(w[labels.Def]), labelled)
	}
	return ""
}

// everyBatch replays the log and hands out the world after each batch.
func everyBatch(t *testing.T, memory *storetest.Memory, from store.Rev, fn func(store.Batch, world)) {
	t.Helper()
	mark, err := memory.Load(t.Context(), func(store.Record) error { return nil })
	must(t, err)
	w := newWorld()
	if mark.Rev == from {
		return
	}
	_ = memory.Follow(t.Context(), 0, func(b store.Batch) error {
		for _, op := range b.Ops {
			name, id, _ := strings.Cut(op.Key, "/")
			d := kinds.Named(name)
			if op.Value == nil {
				delete(w[d], id)
				continue
			}
			rec, err := d.Decode(op.Value)
			must(t, err)
			w[d][id] = rec
		}
		if b.Rev > from {
			fn(b, w)
		}
		if b.Rev == mark.Rev {
			return errEnough
		}
		return nil
	})
}

func TestDeleteInSeveralCommits(t *testing.T) {
	const n = 20
	for _, limits := range []store.Limits{{Ops: 1000, Bytes: 1 << 20}, {Ops: 30, Bytes: 1 << 20}, {Ops: 8, Bytes: 1 << 20}, {Ops: 1000, Bytes: 2000}} {
		t.Run(fmt.Sprint(limits), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := storetest.NewMemoryWithin(limits)
				s := open(t, memory, state.Options{})
				estate(t, s, n)
				before := s.Snapshot().Rev
				must(t, s.Delete(t.Context(), state.Program("tester"), people.Def, "p"))
				commits := 0
				everyBatch(t, memory, before, func(b store.Batch, w world) {
					commits++
					if problem := dangling(w); problem != "" {
						t.Errorf("after commit %d: %s", commits, problem)
					}
				})
				if whole := limits.Ops == 1000 && limits.Bytes > 2000; whole != (commits == 1) {
					t.Errorf("it took %d commits", commits)
				}
				sameAsStore(t, memory, s)
				left := stored(t, memory)
				if len(left[people.Def]) != 0 || len(left[items.Def]) != n || len(left[crates.Def]) != 0 || len(left[labels.Def]) != 0 {
					t.Errorf("left are %v", left)
				}
			})
		})
	}
}

// A delete that breaks off leaves nothing dangling and can be made again.
func TestDeleteBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemoryWithin(store.Limits{Ops: 8, Bytes: 1 << 20})
		faults := storetest.NewFaulty(memory)
		s := open(t, faults, state.Options{})
		estate(t, s, 10)
		for range 3 {
			faults.BlockNext(storetest.Commit).Open() // this many pass
		}
		faults.FailNext(storetest.Commit, storetest.ErrInjected)
		unavailable(t, s.Delete(t.Context(), state.Program("tester"), people.Def, "p"))
		w := stored(t, memory)
		if problem := dangling(w); problem != "" {
			t.Error(problem)
		}
		if got := len(w[items.Def]); got == 20 || len(w[people.Def]) != 1 {
			t.Errorf("%d items are left, and %d people", got, len(w[people.Def]))
		}
		must(t, s.Delete(t.Context(), state.Program("tester"), people.Def, "p"))
		sameAsStore(t, memory, s)
	})
}

// A delete that is refused deep in the cascade deletes nothing, however many
// commits it would have taken.
func TestDeleteRefused(t *testing.T) {
	for _, ops := range []int{1000, 8} {
		t.Run(fmt.Sprint(ops), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := storetest.NewMemoryWithin(store.Limits{Ops: ops, Bytes: 1 << 20})
				s := open(t, memory, state.Options{})
				estate(t, s, 10)
				create(t, s, items.Def, &item{Meta: kind.Meta{ID: "part"}, Whole: "own9"})
				create(t, s, rules.Def, &rule{Meta: kind.Meta{ID: "keeper"}, Item: "part"})
				before := s.Snapshot().Rev
				err := s.Delete(t.Context(), state.Program("tester"), people.Def, "p")
				if !fault.Is(err, fault.CodeReferenced) {
					t.Errorf("got %v, want %s", err, fault.CodeReferenced)
				}
				if got := s.Snapshot().Rev; got != before {
					t.Error("something was written")
				}
			})
		})
	}
}

func TestDeleteCycles(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{})
	link := func(id, whole string) {
		must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			return items.Edit(tx, id, func(i *item) error { i.Whole = whole; return nil })
		}))
	}
	create(t, s, items.Def, &item{Meta: kind.Meta{ID: "a"}}, &item{Meta: kind.Meta{ID: "b"}, Whole: "a"},
		&item{Meta: kind.Meta{ID: "c"}, Whole: "b"}, &item{Meta: kind.Meta{ID: "self"}})
	link("a", "c")
	link("self", "self")
	create(t, s, people.Def, &person{Meta: kind.Meta{ID: "p"}})
	must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		return people.Edit(tx, "p", func(p *person) error { p.Boss = "p"; return nil })
	}))
	create(t, s, rules.Def, &rule{Meta: kind.Meta{ID: "r"}})
	create(t, s, items.Def, &item{Meta: kind.Meta{ID: "lawful"}, Law: "r"})
	must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		return rules.Edit(tx, "r", func(r *rule) error { r.Item = "lawful"; return nil })
	}))
	create(t, s, items.Def, &item{Meta: kind.Meta{ID: "i"}}, &item{Meta: kind.Meta{ID: "j"}})
	create(t, s, crates.Def, &crate{Meta: kind.Meta{ID: "1"}, Item: "i", Only: true},
		&crate{Meta: kind.Meta{ID: "2"}, Item: "j", Only: true})
	for _, end := range []state.Ref{
		{Def: items.Def, ID: "b"}, {Def: items.Def, ID: "self"}, {Def: people.Def, ID: "p"},
		{Def: rules.Def, ID: "r"},                             // its item goes with it, so that may hold it
		{Def: items.Def, ID: "i"}, {Def: crates.Def, ID: "2"}, // each takes the other along
	} {
		if err := s.Delete(t.Context(), state.Program("tester"), end.Def, end.ID); err != nil {
			t.Errorf("delete %s %s: %v", end.Def.Name, end.ID, err)
		}
	}
	newWorld().verify(t, s.Snapshot())
}

// A model delete leaves sessions alone; a session delete does not.
func TestDeleteAndLanes(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{})
	create(t, s, people.Def, &person{Meta: kind.Meta{ID: "p"}})
	createVisit(t, s, &visit{Meta: kind.Meta{ID: "host"}, Person: "p"})
	createVisit(t, s, &visit{Meta: kind.Meta{ID: "guest"}, Host: "host"})
	must(t, s.Delete(t.Context(), state.Program("tester"), people.Def, "p"))
	if got := s.Snapshot().Len(visits.Def); got != 2 {
		t.Fatalf("%d visits are left, want 2", got)
	}
	must(t, s.Delete(t.Context(), state.Program("tester"), visits.Def, "host"))
	newWorld().verify(t, s.Snapshot())
	if err := s.Delete(t.Context(), state.Program("tester"), visits.Def, "host"); !fault.Is(err, fault.CodeNotFound) {
		t.Errorf("got %v, want %s", err, fault.CodeNotFound)
	}
}
