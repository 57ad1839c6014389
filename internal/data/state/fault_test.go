package state_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// pair is two States on one store. What reaches the first can be broken.
type pair struct {
	memory *storetest.Memory
	faults *storetest.Faulty
	broken *state.State
	sound  *state.State
}

func newPair(t *testing.T) pair {
	t.Helper()
	p := pair{memory: storetest.NewMemory()}
	p.faults = storetest.NewFaulty(p.memory.Another())
	p.broken = open(t, p.faults, state.Options{})
	p.sound = open(t, p.memory.Another(), state.Options{})
	create(t, p.sound, places.Def, &place{Meta: kind.Meta{ID: "hall"}})
	createVisit(t, p.sound, &visit{Meta: kind.Meta{ID: "v"}})
	synctest.Wait()
	return p
}

// counts tests what both lanes have counted to, in the store and both States.
func (p pair) counts(t *testing.T, model, session int) {
	t.Helper()
	sameAsStore(t, p.memory, p.broken, p.sound)
	hall, _ := places.Get(p.sound.Snapshot(), "hall")
	v, _ := visits.Get(p.sound.Snapshot(), "v")
	if hall.Count != model || len(v.Token) != session {
		t.Fatalf("counted to %d and %d, want %d and %d", hall.Count, len(v.Token), model, session)
	}
}

func unavailable(t *testing.T, err error) {
	t.Helper()
	if !fault.Is(err, fault.CodeUnavailable) {
		t.Fatalf("got %v, want %s", err, fault.CodeUnavailable)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWriteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.faults.FailNext(storetest.Commit, storetest.ErrInjected)
		p.faults.FailNext(storetest.Put, storetest.ErrInjected)
		unavailable(t, increment(t, p.broken))
		unavailable(t, lengthen(t, p.broken))
		p.counts(t, 0, 0)
		must(t, increment(t, p.broken))
		must(t, lengthen(t, p.broken))
		p.counts(t, 1, 1)
	})
}

// A write whose answer was lost is in memory as soon as the feed shows it,
// once, and later writes build on it.
func TestAnswerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.faults.LoseNext(storetest.Commit, storetest.ErrInjected)
		unavailable(t, increment(t, p.broken))
		p.counts(t, 1, 0)
		p.faults.LoseNext(storetest.Put, storetest.ErrInjected)
		unavailable(t, lengthen(t, p.broken))
		p.counts(t, 1, 1)
		must(t, increment(t, p.broken))
		must(t, lengthen(t, p.broken))
		p.counts(t, 2, 2)
	})
}

func TestAnswerLostAndFeedLate(t *testing.T) {
	for _, lane := range []struct {
		method storetest.Method
		write  func(*testing.T, *state.State) error
		model  int
		put    int
	}{
		{storetest.Commit, increment, 2, 0},
		{storetest.Put, lengthen, 0, 2},
	} {
		t.Run(string(lane.method), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				gate := p.faults.HoldNext()
				p.faults.LoseNext(lane.method, storetest.ErrInjected)
				unavailable(t, lane.write(t, p.broken))
				again := make(chan error)
				go func() { again <- lane.write(t, p.broken) }()
				synctest.Wait()
				select {
				case err := <-again:
					t.Fatalf("the write ended before the one before it was known: %v", err)
				default:
				}
				gate.Open()
				must(t, <-again)
				p.counts(t, lane.model, lane.put)
			})
		})
	}
}

// If the feed shows no winner, memory is loaded.
func TestFeedSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		gate := p.faults.HoldNext()
		must(t, increment(t, p.sound))
		must(t, lengthen(t, p.sound))
		must(t, increment(t, p.broken))
		must(t, lengthen(t, p.broken))
		gate.Open()
		p.counts(t, 2, 2)
	})
}

func TestFeedBreaks(t *testing.T) {
	tests := []struct {
		name   string
		inject func(*storetest.Faulty)
	}{
		{"drop", func(f *storetest.Faulty) { f.DropNext() }},
		{"drop, then load fails", func(f *storetest.Faulty) {
			f.DropNext()
			f.FailNext(storetest.Load, storetest.ErrInjected)
			f.FailNext(storetest.Load, storetest.ErrInjected)
		}},
		{"repeat", func(f *storetest.Faulty) { f.RepeatNext(); f.RepeatNext() }},
		{"compacted", func(f *storetest.Faulty) { f.EndNext(store.ErrCompacted) }},
		{"gap", func(f *storetest.Faulty) { f.EndNext(store.ErrGap) }},
		{"compacted, then load fails", func(f *storetest.Faulty) {
			f.EndNext(store.ErrCompacted)
			f.FailNext(storetest.Load, storetest.ErrInjected)
		}},
		{"end", func(f *storetest.Faulty) { f.EndNext(storetest.ErrInjected) }},
		{"end for long", func(f *storetest.Faulty) {
			f.EndNext(storetest.ErrInjected)
			for range 10 {
				f.FailNext(storetest.Follow, storetest.ErrInjected)
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				test.inject(p.faults)
				must(t, increment(t, p.sound))
				synctest.Wait()
				must(t, lengthen(t, p.sound))
				must(t, increment(t, p.sound))
				settle()
				p.counts(t, 2, 1)
				must(t, increment(t, p.broken))
				must(t, lengthen(t, p.broken))
				p.counts(t, 3, 2)
			})
		})
	}
}

// settle lets every pause in the bubble pass.
func settle() {
	synctest.Wait()
	<-time.After(time.Minute)
	synctest.Wait()
}

// An interruption costs no load: the feed goes on from where it was.
func TestFeedResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		before := p.broken.Snapshot()
		gate := p.faults.BlockNext(storetest.Load)
		must(t, increment(t, p.broken)) // nor does its own write coming back
		must(t, lengthen(t, p.broken))
		synctest.Wait()
		must(t, p.memory.Compact(t.Context(), p.broken.Snapshot().Rev)) // from before, it could not
		p.faults.EndNext(storetest.ErrInjected)
		must(t, increment(t, p.sound))
		settle()
		p.counts(t, 2, 1)
		select {
		case <-gate.Reached():
			t.Error("everything was loaded again")
		default:
		}
		gate.Open()
		if p.broken.Snapshot() == before {
			t.Error("nothing was applied")
		}
	})
}

// poisoned is a store whose feed cannot get past something until all is
// loaded again.
type poisoned struct {
	store.Store
	loads atomic.Int32
}

func (p *poisoned) Load(ctx context.Context, fn func(store.Record) error) (store.Mark, error) {
	p.loads.Add(1)
	return p.Store.Load(ctx, fn)
}

func (p *poisoned) Follow(ctx context.Context, rev store.Rev, fn func(store.Batch) error) error {
	if p.loads.Load() < 2 {
		return storetest.ErrInjected
	}
	return p.Store.Follow(ctx, rev, fn)
}

func TestFeedPoisoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		s := open(t, &poisoned{Store: memory.Another()}, state.Options{})
		writer := open(t, memory, state.Options{})
		create(t, writer, places.Def, &place{Meta: kind.Meta{ID: "hall"}})
		settle()
		sameAsStore(t, memory, s)
	})
}

// What the feed shows after a load, of the time before, is old news.
func TestFeedBehindLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		first, second := p.faults.HoldNext(), p.faults.HoldNext()
		must(t, lengthen(t, p.sound))
		must(t, lengthen(t, p.sound))
		must(t, increment(t, p.sound))
		must(t, increment(t, p.broken)) // loads, since the feed says nothing
		first.Open()
		<-second.Reached()
		synctest.Wait()
		if v, _ := visits.Get(p.broken.Snapshot(), "v"); v.Token != ".." {
			t.Errorf("the token is %q again", v.Token)
		}
		second.Open()
		p.counts(t, 2, 2)
	})
}

// The feed repeats what was put here. By then it may be gone again.
func TestOwnPutsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		gate := p.faults.HoldNext()
		p.faults.RepeatNext()
		p.faults.RepeatNext()
		must(t, lengthen(t, p.broken))
		createVisit(t, p.broken, &visit{Meta: kind.Meta{ID: "x"}})
		must(t, p.broken.Delete(t.Context(), state.Program("tester"), visits.Def, "x"))
		gone := func() {
			t.Helper()
			if x, ok := visits.Get(p.broken.Snapshot(), "x"); ok {
				t.Fatalf("%+v is back", x)
			}
		}
		gone()
		later := p.faults.HoldNext() // after all of the above
		gate.Open()
		must(t, lengthen(t, p.sound))
		<-later.Reached()
		gone()
		later.Open()
		p.counts(t, 0, 2)
	})
}

// Another controller had a record of the same id, here and gone before ours.
func TestOwnPutAheadOfFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		first, second := p.faults.HoldNext(), p.faults.HoldNext()
		x := &visit{Meta: kind.Meta{ID: "x"}, Token: "theirs"}
		createVisit(t, p.sound, x)
		must(t, p.sound.Delete(t.Context(), state.Program("tester"), visits.Def, "x"))
		y := &visit{Meta: kind.Meta{ID: "x"}, Token: "ours"}
		createVisit(t, p.broken, y)
		first.Open()
		<-second.Reached()
		synctest.Wait()
		if got, ok := visits.Get(p.broken.Snapshot(), "x"); !ok || got.Token != "ours" {
			t.Fatalf("the visit is %+v, %t", got, ok)
		}
		must(t, p.broken.Delete(t.Context(), state.Program("tester"), visits.Def, "x"))
		second.Open()
		synctest.Wait()
		if got, ok := visits.Get(p.broken.Snapshot(), "x"); ok {
			t.Fatalf("%+v is back", got)
		}
		p.counts(t, 0, 0)
	})
}

// A caller whose time ends while the store has its write is told what became of
// the write: that it was stored, or that it lost and was not made again.
func TestSlowStore(t *testing.T) {
	for _, lane := range []struct {
		method storetest.Method
		write  func(context.Context, *state.State, *int) error
		other  func(*testing.T, *state.State) error
		counts [2]int
	}{
		{storetest.Commit, func(ctx context.Context, s *state.State, runs *int) error {
			return s.Update(ctx, state.Program("tester"), func(tx *state.Tx) error {
				*runs++
				return places.Edit(tx, "hall", func(p *place) error { p.Count++; return nil })
			})
		}, increment, [2]int{1, 0}},
		{storetest.Put, func(ctx context.Context, s *state.State, runs *int) error {
			return s.UpdateSessions(ctx, state.Program("tester"), func(tx *state.Tx) error {
				*runs++
				return visits.Edit(tx, "v", func(v *visit) error { v.Token += "x"; return nil })
			})
		}, lengthen, [2]int{0, 1}},
	} {
		for _, loses := range []bool{false, true} {
			t.Run(fmt.Sprint(lane.method, " loses ", loses), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPair(t)
					gate := p.faults.BlockNext(lane.method)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					runs, ended := 0, make(chan error, 1)
					go func() { ended <- lane.write(ctx, p.broken, &runs) }()
					<-gate.Reached()
					<-ctx.Done()
					synctest.Wait()
					select {
					case err := <-ended:
						t.Fatalf("it ended with %v before the store had answered", err)
					default:
					}
					if loses {
						must(t, lane.other(t, p.sound))
					}
					gate.Open()
					if err := <-ended; loses != errors.Is(err, context.DeadlineExceeded) || !loses && err != nil {
						t.Errorf("got %v", err)
					}
					if runs != 1 {
						t.Errorf("the closure ran %d times", runs)
					}
					p.counts(t, lane.counts[0], lane.counts[1])
				})
			})
		}
	}
}

func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.faults.BlockNext(storetest.Commit) // for ever
		start := time.Now()
		unavailable(t, increment(t, p.broken))
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("it took %v to give up", took)
		}
		must(t, increment(t, p.broken))
		p.counts(t, 1, 0)
	})
}

func TestLosesTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		runs := 0
		err := p.broken.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
			runs++
			must(t, increment(t, p.sound)) // somebody is always faster
			return places.Edit(tx, "hall", func(p *place) error { p.Count++; return nil })
		})
		unavailable(t, err)
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("the cause is %v, want %v", err, store.ErrConflict)
		}
		if runs != 65 {
			t.Errorf("the closure ran %d times, want 65", runs)
		}
		p.counts(t, runs, 0)
	})
}

// swapped is a store that can be replaced by another one, as when a backup is
// restored under a running controller.
type swapped struct {
	store.Store
	now atomic.Pointer[storetest.Memory]
}

func (s *swapped) Load(ctx context.Context, fn func(store.Record) error) (store.Mark, error) {
	return s.now.Load().Load(ctx, fn)
}

func (s *swapped) Follow(ctx context.Context, rev store.Rev, fn func(store.Batch) error) error {
	return s.now.Load().Follow(ctx, rev, fn)
}

func TestStoreGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		writer := open(t, memory, state.Options{})
		create(t, writer, places.Def, &place{Meta: kind.Meta{ID: "hall"}})
		createVisit(t, writer, &visit{Meta: kind.Meta{ID: "v"}})
		backup := backupOf(t, memory)
		for range 10 {
			must(t, increment(t, writer))
		}

		s := &swapped{Store: memory}
		s.now.Store(memory)
		faults := storetest.NewFaulty(s)
		st := open(t, faults, state.Options{})
		synctest.Wait()
		s.now.Store(backup)
		faults.EndNext(storetest.ErrInjected)
		must(t, lengthen(t, st)) // its last write, and now it never was
		settle()
		sameAsStore(t, backup, st)
		must(t, lengthen(t, open(t, backup, state.Options{}))) // at an earlier revision than that
		sameAsStore(t, backup, st)
	})
}

func backupOf(t *testing.T, memory *storetest.Memory) *storetest.Memory {
	t.Helper()
	r, w := io.Pipe()
	go func() { w.CloseWithError(memory.Snapshot(background, w)) }()
	backup, err := storetest.RestoreMemory(r)
	if err != nil {
		t.Fatal(err)
	}
	return backup
}

func TestOpenFails(t *testing.T) {
	faults := storetest.NewFaulty(storetest.NewMemory())
	faults.FailNext(storetest.Load, storetest.ErrInjected)
	if _, err := state.Open(t.Context(), faults, kinds, state.Options{}); !errors.Is(err, storetest.ErrInjected) {
		t.Fatalf("got %v, want %v", err, storetest.ErrInjected)
	}
}
