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

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

func createPlace(s *state.State, ctx context.Context, id, name string) error {
	return s.Update(ctx, state.Program("tester"), func(tx *state.Tx) error {
		return places.Create(tx, &place{Meta: kind.Meta{ID: id}, Name: name})
	})
}

func TestPanicInWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		s := open(t, memory, state.Options{})
		err := s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			must(t, places.Create(tx, &place{Name: "ann"}))
			panic("dear me")
		})
		if err == nil || !strings.Contains(err.Error(), "dear me") || codeOf(err) != fault.CodeUnhandled {
			t.Errorf("got %v", err)
		}
		err = s.UpdateSessions(t.Context(), state.Program("tester"), func(tx *state.Tx) error { return places.Create(tx, &place{}) })
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
	must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
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
			_ = s.Update(background, state.Program("tester"), func(tx *state.Tx) error { return places.Create(tx, mine) })
			mine.Count++
		},
		"after edit": func(s *state.State) {
			var kept *place
			_ = s.Update(background, state.Program("tester"), func(tx *state.Tx) error {
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
			err := s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
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
		err := s.Update(ctx, state.Program("tester"), func(*state.Tx) error {
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
	err := s.Update(ctx, state.Program("tester"), func(*state.Tx) error {
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

// The clock of commits goes on with each of them, whatever the machine's does.
func TestTime(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 6_789_000, time.FixedZone("", 3600))
	s := open(t, storetest.NewMemory(), state.Options{Now: func() time.Time { return now }})
	var got []time.Time
	var before time.Time
	for _, shift := range []time.Duration{0, -time.Hour, 2 * time.Hour} {
		now = now.Add(shift)
		must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			got = append(got, tx.Now())
			return places.Create(tx, &place{})
		}))
		at := s.Snapshot().Time
		if !at.Truncate(time.Millisecond).Equal(got[len(got)-1]) || !at.After(before) {
			t.Errorf("the snapshot's time is %v, the write's %v, the time before %v", at, got[len(got)-1], before)
		}
		before = at
	}
	first := time.Date(2030, 1, 2, 2, 4, 5, 6_000_000, time.UTC)
	if want := []time.Time{first, first, first.Add(time.Hour)}; !slices.Equal(got, want) {
		t.Errorf("times are %v, want %v", got, want)
	}
}

func TestCreateFillsIn(t *testing.T) {
	s := open(t, storetest.NewMemory(), state.Options{})
	rec, v := &place{}, &visit{}
	must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error { return places.Create(tx, rec) }))
	must(t, s.UpdateSessions(t.Context(), state.Program("tester"), func(tx *state.Tx) error { return visits.Create(tx, v) }))
	if len(rec.ID) != 11 || rec.CreatedAt.IsZero() || !rec.CreatedAt.Equal(rec.UpdatedAt) {
		t.Errorf("got %+v", rec)
	}
	if len(v.ID) != 25 || v.ID[0] != 'c' {
		t.Errorf("the session's id is %q", v.ID)
	}
	later := rec.UpdatedAt
	must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
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
		must(t, s.UpdateSessions(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
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
		must(t, s.Delete(t.Context(), state.Program("tester"), people.Def, id))
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

// Whoever writes is answered after everyone who must know has been told, with
// what was and what is; what another controller writes is told alike.
func TestAttend(t *testing.T) {
	type told struct {
		before, after *state.Snapshot
		changed       []state.Ref
	}
	memory := storetest.NewMemory()
	var mu sync.Mutex
	var here, there []told
	note := func(list *[]told) func(before, after *state.Snapshot, changed []state.Ref) {
		return func(before, after *state.Snapshot, changed []state.Ref) {
			mu.Lock()
			defer mu.Unlock()
			*list = append(*list, told{before, after, changed})
		}
	}
	a, b := open(t, memory, state.Options{}), open(t, memory, state.Options{})
	a.Attend(note(&here))
	b.Attend(note(&there))
	rec := &place{Name: "x"}
	must(t, a.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error { return places.Create(tx, rec) }))
	mu.Lock()
	last := here[len(here)-1]
	if here[0].before != nil || here[0].changed != nil {
		t.Errorf("the beginning is told as %+v", here[0])
	}
	mu.Unlock()
	want := []state.Ref{{Def: places.Def, ID: rec.ID}}
	if _, had := last.before.Lookup(places.Def, rec.ID); had || last.after != a.Snapshot() || !slices.Equal(last.changed, want) {
		t.Errorf("a create is told as %+v", last)
	}
	second := &place{Name: "y"}
	must(t, b.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		fresh := *second
		err := places.Create(tx, &fresh)
		second.ID = fresh.ID
		return err
	}))
	mu.Lock()
	defer mu.Unlock()
	if len(there) != 3 {
		t.Fatalf("the other controller is told %d times, want the beginning, the first create and its own", len(there))
	}
	for i, id := range []string{rec.ID, second.ID} {
		step := there[i+1]
		_, has := step.after.Lookup(places.Def, id)
		if !has || step.before != there[i].after || !slices.Equal(step.changed, []state.Ref{{Def: places.Def, ID: id}}) {
			t.Errorf("step %d is told as %+v", i, step)
		}
	}
}
