package state_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep/internal/fault"
	"netkeep/internal/kind"
	"netkeep/internal/state"
	"netkeep/internal/store"
	"netkeep/internal/store/storetest"
)

func createPlace(s *state.State, ctx context.Context, id, name string) error {
	return s.Update(ctx, "tester", func(tx *state.Tx) error {
		return places.Create(tx, &place{Meta: kind.Meta{ID: id}, Name: name})
	})
}

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
				return s.Update(t.Context(), fmt.Sprint("user", i%3), func(tx *state.Tx) error {
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
		err := memory.Follow(t.Context(), 0, func(b store.Batch) error {
			sizes = append(sizes, len(b.Ops))
			if len(sizes) == 2 && b.Head.Author != "user0,user1,user2" {
				t.Errorf("the author is %q", b.Head.Author)
			}
			if !b.Head.Time.Equal(time.Now().Truncate(time.Millisecond)) {
				t.Errorf("the time is %v, want %v", b.Head.Time, time.Now())
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
	})
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

// Create and delete of a record in one commit is nothing to the store, and a
// record that is deleted and created again is one change.
func TestComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faults := storetest.NewFaulty(memory)
		s := open(t, faults, state.Options{})
		create(t, s, places.Def, &place{Meta: kind.Meta{ID: "old"}}, &place{Meta: kind.Meta{ID: "older"}})
		remove := func(id string) func() error {
			return func() error { return s.Delete(t.Context(), "tester", places.Def, id) }
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
		must(t, s.Update(t.Context(), "tester", func(tx *state.Tx) error {
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
		must(t, s.UpdateSessions(t.Context(), "tester", func(tx *state.Tx) error {
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
				return s.Update(t.Context(), "tester", func(tx *state.Tx) error {
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

func TestPanicInWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		s := open(t, memory, state.Options{})
		err := s.Update(t.Context(), "tester", func(tx *state.Tx) error {
			must(t, places.Create(tx, &place{Name: "ann"}))
			panic("dear me")
		})
		if err == nil || !strings.Contains(err.Error(), "dear me") || codeOf(err) != fault.CodeUnhandled {
			t.Errorf("got %v", err)
		}
		err = s.UpdateSessions(t.Context(), "tester", func(tx *state.Tx) error { return places.Create(tx, &place{}) })
		if err == nil || !strings.Contains(err.Error(), "lane") {
			t.Errorf("a write in the wrong lane ends with %v", err)
		}
		must(t, createPlace(s, t.Context(), "1", "ann"))
		sameAsStore(t, memory, s)
	})
}

func TestWriteAfterEnd(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{})
	var leaked *state.Tx
	must(t, s.Update(t.Context(), "tester", func(tx *state.Tx) error {
		leaked = tx
		return places.Create(tx, &place{Name: "ann"})
	}))
	defer func() {
		if recover() == nil {
			t.Error("a Tx can be written to after its closure has ended")
		}
	}()
	_ = places.Create(leaked, &place{Name: "bob"})
}

// Frozen finds who writes to a shared record.
func TestFrozen(t *testing.T) {
	tests := map[string]func(s *state.State){
		"of a snapshot": func(s *state.State) {
			p, _ := places.Get(s.Snapshot(), "1")
			p.Count++
		},
		"after create": func(s *state.State) {
			mine := &place{Meta: kind.Meta{ID: "2"}}
			_ = s.Update(background, "tester", func(tx *state.Tx) error { return places.Create(tx, mine) })
			mine.Count++
		},
		"after edit": func(s *state.State) {
			var kept *place
			_ = s.Update(background, "tester", func(tx *state.Tx) error {
				return places.Edit(tx, "1", func(p *place) error { kept = p; return nil })
			})
			kept.Count++
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t, storetest.NewMemory(), state.Options{})
			must(t, createPlace(s, t.Context(), "1", ""))
			spoil(s)
			err := s.Update(t.Context(), "tester", func(tx *state.Tx) error {
				for _, id := range ids(tx.All(places.Def)) {
					if err := places.Edit(tx, id, func(*place) error { return nil }); err != nil {
						return err
					}
				}
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), "was written to") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faults := storetest.NewFaulty(memory)
		s := open(t, faults, state.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		gate, results := queue(t, s, faults,
			func() error { return createPlace(s, ctx, "1", "ann") },
			func() error { return createPlace(s, t.Context(), "2", "ann") },
		)
		cancel()
		if err := <-results[1]; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		gate.Open()
		must(t, <-results[0])
		must(t, <-results[2])
		err := s.Update(ctx, "tester", func(*state.Tx) error {
			t.Error("a write ran that nobody waits for")
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		sameAsStore(t, memory, s)
	})
}

// Who leaves while the closure runs gets its variables back first.
func TestCancelledWhileRunning(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := false
	err := s.Update(ctx, "tester", func(*state.Tx) error {
		cancel()
		for range 10_000 {
			runtime.Gosched() // time enough to return
		}
		ended = true
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if !ended {
		t.Error("Update returned before its closure")
	}
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faults := storetest.NewFaulty(memory)
		s := open(t, faults, state.Options{})
		gate, results := queue(t, s, faults)
		const most = 4096
		var wg sync.WaitGroup
		for i := range most {
			wg.Go(func() {
				if err := createPlace(s, t.Context(), fmt.Sprint(i), ""); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		unavailable(t, createPlace(s, t.Context(), "too many", ""))
		gate.Open()
		must(t, <-results[0])
		wg.Wait()
		sameAsStore(t, memory, s)
		if got := s.Snapshot().Len(places.Def); got != most+1 {
			t.Errorf("%d places, want %d", got, most+1)
		}
	})
}

// Close waits for the write that is being stored and refuses the others.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faults := storetest.NewFaulty(memory)
		s := open(t, faults, state.Options{})
		var waiting []func() error
		for i := range 200 {
			waiting = append(waiting, func() error { return createPlace(s, t.Context(), fmt.Sprint(i), "") })
		}
		gate, results := queue(t, s, faults, waiting...)
		closed := make(chan struct{})
		go func() { s.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("closed while a write is being stored")
		default:
		}
		gate.Open()
		<-closed
		must(t, <-results[0])
		for _, r := range results[1:] {
			unavailable(t, <-r)
		}
		unavailable(t, createPlace(s, t.Context(), "late", ""))
		s.Close()
		sameAsStore(t, memory, s)
		if got := ids(s.Snapshot().All(places.Def)); len(got) != 1 {
			t.Errorf("places are %q, want the first alone", got)
		}
	})
}

// A group that needs several commits is not finished once Close is called.
func TestCloseWithinGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemoryWithin(store.Limits{Ops: 1, Bytes: 1 << 20})
		faults := storetest.NewFaulty(memory)
		s := open(t, faults, state.Options{})
		gate, results := queue(t, s, faults,
			func() error { return createPlace(s, t.Context(), "1", "") },
			func() error { return createPlace(s, t.Context(), "2", "") },
			func() error { return createPlace(s, t.Context(), "3", "") },
		)
		next := faults.BlockNext(storetest.Commit)
		gate.Open()
		<-next.Reached()
		closed := make(chan struct{})
		go func() { s.Close(); close(closed) }()
		synctest.Wait()
		next.Open()
		<-closed
		must(t, <-results[0])
		must(t, <-results[1])
		unavailable(t, <-results[2])
		unavailable(t, <-results[3])
	})
}

// Close does not wait out a conflict or a load.
func TestCloseWhileBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.faults.HoldNext()
		must(t, increment(t, p.sound))
		result := make(chan error, 1)
		go func() { result <- increment(t, p.broken) }() // waits for the feed
		synctest.Wait()
		start := time.Now()
		p.broken.Close()
		unavailable(t, <-result)
		if took := time.Since(start); took > 0 {
			t.Errorf("closing took %v", took)
		}
	})
}

// The clock of commits does not go back, whatever the machine's does.
func TestTime(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 6_789_000, time.FixedZone("", 3600))
	s := open(t, storetest.NewMemory(), state.Options{Now: func() time.Time { return now }})
	var got []time.Time
	for _, shift := range []time.Duration{0, -time.Hour, 2 * time.Hour} {
		now = now.Add(shift)
		must(t, s.Update(t.Context(), "tester", func(tx *state.Tx) error {
			got = append(got, tx.Now())
			return places.Create(tx, &place{})
		}))
		if !s.Snapshot().Time.Equal(got[len(got)-1]) {
			t.Errorf("the snapshot's time is %v, the write's %v", s.Snapshot().Time, got[len(got)-1])
		}
	}
	first := time.Date(2030, 1, 2, 2, 4, 5, 6_000_000, time.UTC)
	if want := []time.Time{first, first, first.Add(time.Hour)}; !slices.Equal(got, want) {
		t.Errorf("times are %v, want %v", got, want)
	}
}

func TestCreateFillsIn(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{})
	rec, v := &place{}, &visit{}
	must(t, s.Update(t.Context(), "tester", func(tx *state.Tx) error { return places.Create(tx, rec) }))
	must(t, s.UpdateSessions(t.Context(), "tester", func(tx *state.Tx) error { return visits.Create(tx, v) }))
	if len(rec.ID) != 11 || rec.CreatedAt.IsZero() || !rec.CreatedAt.Equal(rec.UpdatedAt) {
		t.Errorf("got %+v", rec)
	}
	if len(v.ID) != 25 || v.ID[0] != 'c' {
		t.Errorf("the session's id is %q", v.ID)
	}
	later := rec.UpdatedAt
	must(t, s.Update(t.Context(), "tester", func(tx *state.Tx) error {
		return places.Edit(tx, rec.ID, func(p *place) error {
			p.ID = "another"
			return nil
		})
	}))
	p, ok := places.Get(s.Snapshot(), rec.ID)
	if !ok || p.ID != rec.ID || p.UpdatedAt.Before(later) || !p.CreatedAt.Equal(rec.CreatedAt) {
		t.Errorf("after the edit it is %+v", p)
	}
}

// Session ids sort by time, so that those of one time are near each other.
func TestSessionIDsSort(t *testing.T) {
	now := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	s := open(t, storetest.NewMemory(), state.Options{Now: func() time.Time { return now }})
	var made []string
	for range 50 {
		now = now.Add(400 * 24 * time.Hour)
		must(t, s.UpdateSessions(t.Context(), "tester", func(tx *state.Tx) error {
			made = append(made, tx.NewSessionID())
			return nil
		}))
	}
	if !slices.IsSorted(made) {
		t.Errorf("%q do not sort", made)
	}
}

// Ordinals stay dense, and those of the dead lead nowhere.
func TestOrdinals(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{})
	for i := range 10 {
		create(t, s, people.Def, &person{Meta: kind.Meta{ID: fmt.Sprint(i)}, Traits: []string{"red"}})
	}
	before := s.Snapshot()
	all := before.Tagged(people.Def, "")
	for i := range 100 {
		id := fmt.Sprint(i % 10)
		ord, _ := s.Snapshot().Ordinal(people.Def, id)
		must(t, s.Delete(t.Context(), "tester", people.Def, id))
		if got := ids(s.Snapshot().At(people.Def, all)); len(got) != 9 || slices.Contains(got, id) {
			t.Fatalf("after %s is gone, %q are there", id, got)
		}
		create(t, s, people.Def, &person{Meta: kind.Meta{ID: id}})
		if got, _ := s.Snapshot().Ordinal(people.Def, id); got != ord {
			t.Fatalf("the ordinal of %s is %d, and %d is free", id, got, ord)
		}
	}
	if got := before.Tagged(people.Def, "red").GetCardinality(); got != 10 {
		t.Errorf("in the old snapshot %d are red, want 10", got)
	}
}
