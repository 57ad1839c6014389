package state_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// open starts a State that the test closes.
func open(t *testing.T, st store.Store, opt state.Options) *state.State {
	t.Helper()
	opt.Frozen = true
	s, err := state.Open(t.Context(), st, kinds, opt)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// openSeveral starts States on one store, each with a handle of its own.
func openSeveral(t *testing.T, n int) (*storetest.Memory, []*state.State) {
	t.Helper()
	memory := storetest.NewMemory()
	states := make([]*state.State, n)
	for i := range states {
		states[i] = open(t, memory.Another(), state.Options{})
	}
	return memory, states
}

// stored is the world as the store has it.
func stored(t tester, st store.Store) world {
	t.Helper()
	w := newWorld()
	_, err := st.Load(background, func(rec store.Record) error {
		for _, d := range kinds.Defs {
			if len(rec.Key) > len(d.Name) && rec.Key[:len(d.Name)+1] == d.Name+"/" {
				v, err := d.Decode(rec.Value)
				if err != nil {
					return err
				}
				w[d][v.Base().ID] = v
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return w
}

// sameAsStore tests, once the feed is through, that every State holds what
// the store does.
func sameAsStore(t tester, st store.Store, states ...*state.State) {
	t.Helper()
	synctest.Wait()
	w := stored(t, st)
	for _, s := range states {
		w.verify(t, s.Snapshot())
	}
}

// insist repeats a write that was not stored because others were faster. Only
// without faults is that the one reason for CodeUnavailable.
func insist(write func() error) error {
	for {
		if err := write(); !fault.Is(err, fault.CodeUnavailable) {
			return err
		}
	}
}

func TestOneWinner(t *testing.T) {
	const names = 40
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, states := openSeveral(t, n)
				var won [names]atomic.Int32
				var wg sync.WaitGroup
				for _, s := range states {
					for i := range names {
						wg.Go(func() {
							err := insist(func() error {
								return s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
									return people.Create(tx, &person{Name: fmt.Sprint(i), Traits: []string{"red"}})
								})
							})
							switch {
							case err == nil:
								won[i].Add(1)
							case !fault.Is(err, fault.CodeInvalid):
								t.Errorf("the loser of %d gets %v", i, err)
							}
						})
					}
				}
				wg.Wait()
				for i := range won {
					if got := won[i].Load(); got != 1 {
						t.Errorf("name %d was created %d times", i, got)
					}
				}
				sameAsStore(t, memory, states...)
				if got := states[0].Snapshot().Len(people.Def); got != names {
					t.Errorf("%d people, want %d", got, names)
				}
			})
		})
	}
}

func TestNoLostUpdate(t *testing.T) {
	const writers, each = 4, 25
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, states := openSeveral(t, n)
				create(t, states[0], places.Def, &place{Meta: kind.Meta{ID: "hall"}})
				createVisit(t, states[0], &visit{Meta: kind.Meta{ID: "v"}})
				synctest.Wait()
				var wg sync.WaitGroup
				for _, s := range states {
					for range writers {
						wg.Go(func() {
							for range each {
								if err := insist(func() error { return increment(t, s) }); err != nil {
									t.Error(err)
								}
							}
						})
						wg.Go(func() {
							for range each {
								if err := insist(func() error { return lengthen(t, s) }); err != nil {
									t.Error(err)
								}
							}
						})
						wg.Go(func() {
							for range each {
								if err := insist(func() error { return both(t, s) }); err != nil {
									t.Error(err)
								}
							}
						})
					}
				}
				wg.Wait()
				sameAsStore(t, memory, states...)
				hall, _ := places.Get(states[0].Snapshot(), "hall")
				if want := 2 * n * writers * each; hall.Count != want {
					t.Errorf("counted to %d, want %d", hall.Count, want)
				}
				v, _ := visits.Get(states[0].Snapshot(), "v")
				if want := 2 * n * writers * each; len(v.Token) != want {
					t.Errorf("the token has length %d, want %d", len(v.Token), want)
				}
			})
		})
	}
}

// increment counts in the model lane.
func increment(t *testing.T, s *state.State) error {
	return s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		return places.Edit(tx, "hall", func(p *place) error { p.Count++; return nil })
	})
}

// lengthen counts in the session lane.
func lengthen(t *testing.T, s *state.State) error {
	return s.UpdateSessions(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		return visits.Edit(tx, "v", func(v *visit) error { v.Token += "."; return nil })
	})
}

// both counts in both lanes with one write.
func both(t *testing.T, s *state.State) error {
	return s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		if err := places.Edit(tx, "hall", func(p *place) error { p.Count++; return nil }); err != nil {
			return err
		}
		return visits.Edit(tx, "v", func(v *visit) error { v.Token += "."; return nil })
	})
}

func create(t *testing.T, s *state.State, d *kind.Def, recs ...kind.Record) {
	t.Helper()
	err := s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		for _, rec := range recs {
			if err := tx.Create(d, d.Clone(rec)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func createVisit(t *testing.T, s *state.State, v *visit) {
	t.Helper()
	err := s.UpdateSessions(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		fresh := *v
		return visits.Create(tx, &fresh)
	})
	if err != nil {
		t.Fatal(err)
	}
}
