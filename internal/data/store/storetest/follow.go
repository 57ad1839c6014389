package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"netkeep.internal/internal/data/store"
)

func followFromAnywhere(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	j.commit(set("k/1", "one"), set("k/2", "two"), set("a/1", "after k in the batch"))
	j.put(set("s/1", "put"))
	j.commit(del("k/2"), set("k/1", ""), set("k/3", "three"))
	j.put(expecting(j.batches[1].Rev, del("s/1")), expecting(0, set("s/2", "put")))
	j.commit(set("k/1", "four"))
	reader := open(t, o)
	from := j.base
	for i, b := range j.batches {
		diff(t, fmt.Sprintf("batches after %d", from), follow(t, reader, from, j.last()), j.batches[i:])
		from = b.Rev
	}
}

// followLive has several handles write while several follow.
func followLive(t *testing.T, o Opener) {
	const writers, each, followers = 4, 10, 3
	s := open(t, o)
	_, mark := load(t, s)
	ctx, cancel := context.WithCancelCause(testContext(t))
	defer cancel(nil)

	var following sync.WaitGroup
	seen := make([][]store.Batch, followers)
	for f := range followers {
		h := s // two share a handle
		if f > 1 {
			h = open(t, o)
		}
		following.Go(func() {
			err := h.Follow(ctx, mark.Rev, func(b store.Batch) error {
				seen[f] = append(seen[f], b)
				if len(seen[f]) == 2*writers*each {
					return errEnough
				}
				return nil
			})
			if err != errEnough {
				t.Errorf("follower %d: %v after %d batches", f, err, len(seen[f]))
			}
		})
	}
	wrote := writeMany(ctx, t, o, writers, each)
	following.Wait()

	for f, batches := range seen {
		var revs []store.Rev
		var head store.Rev
		for _, b := range batches {
			revs = append(revs, b.Rev)
			if !b.Commit {
				continue
			}
			if b.Head.Prev != head || b.Head.Ops != len(b.Ops) {
				t.Errorf("follower %d: commit %d has prev %d and %d ops, want %d and %d", f, b.Rev, b.Head.Prev, b.Head.Ops, head, len(b.Ops))
			}
			head = b.Rev
		}
		diff(t, fmt.Sprintf("revisions of follower %d", f), revs, slices.Sorted(maps.Keys(wrote)))
		for _, b := range batches {
			diff(t, fmt.Sprintf("ops of %d", b.Rev), b.Ops, wrote[b.Rev])
		}
	}
}

// writeMany commits and puts from several handles at once, and returns what
// went into each revision.
func writeMany(ctx context.Context, t *testing.T, o Opener, writers, each int) map[store.Rev][]store.Op {
	var mu sync.Mutex
	wrote := make(map[store.Rev][]store.Op)
	var wg sync.WaitGroup
	for w := range writers {
		s := open(t, o)
		wg.Go(func() {
			for n := range each {
				ops := []store.Op{set(fmt.Sprintf("k/%d", w), fmt.Sprint(n)), set("k/all", fmt.Sprint(w, n))}
				at, err := commitAlways(ctx, s, ops)
				sops := []store.Op{set(fmt.Sprintf("s/%d-%d", w, n), "put")}
				sat, serr := s.Put(ctx, store.Head{}, sops)
				if err != nil || serr != nil {
					t.Errorf("writer %d: %v, %v", w, err, serr)
					return
				}
				mu.Lock()
				wrote[at.Rev], wrote[sat.Rev] = without(ops), without(sops)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return wrote
}

// without returns ops as a batch has them, with no guards.
func without(ops []store.Op) []store.Op {
	bare := slices.Clone(ops)
	for i := range bare {
		bare[i].Prev = 0
	}
	return bare
}

// commitAlways commits on whatever the head is.
func commitAlways(ctx context.Context, s store.Store, ops []store.Op) (store.Written, error) {
	for {
		mark, err := s.Load(ctx, func(store.Record) error { return nil })
		if err != nil {
			return store.Written{}, err
		}
		at, err := s.Commit(ctx, mark.Head, store.Head{}, ops)
		if !errors.Is(err, store.ErrConflict) {
			return at, err
		}
	}
}

// followLarge reads back batches that together, and some alone, are larger
// than engines like to send at once.
func followLarge(t *testing.T, o Opener) {
	s := open(t, o)
	l := s.Limits()
	j := newJournal(t, s)
	for n := range 4 {
		var ops []store.Op
		size := min(l.Bytes, 2<<20)/100 - 100
		for i := range 100 {
			ops = append(ops, set(fmt.Sprintf("k/%d", i), strings.Repeat(string(rune('A'+(n+i)%50)), size)))
		}
		if n%2 == 0 {
			j.commit(ops...)
		} else {
			for i := range ops {
				ops[i].Prev = store.Any
			}
			j.put(ops...)
		}
		j.put(expecting(store.Any, set("s/between", fmt.Sprint(n))))
	}
	j.check(open(t, o))
}

func followStops(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	j.commit(set("k/1", "one"))
	j.commit(set("k/1", "two"))
	calls := 0
	err := s.Follow(j.ctx, j.base, func(store.Batch) error {
		calls++
		return errEnough
	})
	if err != errEnough || calls != 1 {
		t.Errorf("Follow returned %v after %d calls, want the error of the first", err, calls)
	}

	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	err = s.Follow(ctx, j.base, func(b store.Batch) error {
		if b.Rev == j.last() {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Follow returned %v after its context ended", err)
	}
}

// followFuture is what happens after a restored backup: memory is ahead.
func followFuture(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	err := s.Follow(j.ctx, j.commit(set("k/1", "one"))+1000, func(store.Batch) error { return nil })
	if !errors.Is(err, store.ErrGap) {
		t.Errorf("Follow from a revision to come: %v, want ErrGap", err)
	}
}

func closeEndsAll(t *testing.T, o Opener) {
	other := open(t, o)
	j := newJournal(t, other)
	before := goleak.IgnoreCurrent()
	s := o.Open(t)
	following, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.Follow(j.ctx, j.base, func(store.Batch) error {
			close(following)
			return nil
		})
	}()
	j.commit(set("k/1", "one"))
	select {
	case <-following:
	case err := <-ended:
		t.Fatalf("Follow: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Errorf("Follow ended with %v, want ErrClosed", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if err := goleak.Find(append([]goleak.Option{before}, o.Around...)...); err != nil {
		t.Error(err)
	}
	for method, call := range calls(j.ctx, s, j.head) {
		if err := call(); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", method, err)
		}
	}
	j.commit(set("k/2", "the other handle is open"))
	j.check(other)
}

func canceled(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	j.commit(set("k/1", "one"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for method, call := range calls(ctx, s, j.head) {
		for range 100 { // nor may it succeed by chance
			if err := call(); !errors.Is(err, context.Canceled) {
				t.Fatalf("%s with an ended context: %v", method, err)
			}
		}
	}
	j.check(s)
}

// calls has one call of every method that can fail.
func calls(ctx context.Context, s store.Store, prev store.Rev) map[Method]func() error {
	return map[Method]func() error{
		Load: func() error {
			_, err := s.Load(ctx, func(store.Record) error { return nil })
			return err
		},
		Commit: func() error {
			_, err := s.Commit(ctx, prev, store.Head{}, []store.Op{set("k/late", "late")})
			return err
		},
		Put: func() error {
			_, err := s.Put(ctx, store.Head{}, []store.Op{expecting(1<<40, set("k/late", "late"))})
			return err
		},
		Get: func() error {
			_, _, err := s.Get(ctx, "k/1")
			return err
		},
		Follow:   func() error { return s.Follow(ctx, prev, func(store.Batch) error { return nil }) },
		Compact:  func() error { return s.Compact(ctx, 1) },
		Snapshot: func() error { return s.Snapshot(ctx, io.Discard) },
	}
}

func compact(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	j.commit(set("k/1", "one"), set("k/2", "two"))
	j.commit(set("k/1", "changed"))
	cut := j.put(set("s/1", "put"))
	j.commit(set("k/3", "three"))
	kept, _ := load(t, s)
	if err := s.Compact(j.ctx, cut); err != nil {
		t.Fatalf("Compact: %v", err)
	}
	reader := open(t, o)
	for _, from := range []store.Rev{0, j.base, j.batches[0].Rev, cut - 1} {
		if err := reader.Follow(j.ctx, from, func(store.Batch) error { return errEnough }); !errors.Is(err, store.ErrCompacted) {
			t.Errorf("Follow(%d) after Compact(%d): %v, want ErrCompacted", from, cut, err)
		}
	}
	diff(t, "batches after the cut", follow(t, reader, cut, j.last()), j.batches[3:])
	now, mark := load(t, reader)
	diff(t, "records", now, kept)
	if mark.Head != j.head {
		t.Errorf("head is %d, want %d", mark.Head, j.head)
	}
	for _, again := range []store.Rev{cut, cut - 1, 0} {
		if err := s.Compact(j.ctx, again); err != nil {
			t.Errorf("Compact(%d) again: %v", again, err)
		}
	}
	if err := s.Compact(j.ctx, j.last()+1000); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("Compact of a revision to come: %v, want ErrInvalid", err)
	}
	j.commit(set("k/1", "still writable"))
	diff(t, "batches after the cut", follow(t, reader, cut, j.last()), j.batches[3:])
}

// compactAtDelete cuts exactly at a batch that deletes. What is left of it
// must not pass for the batch.
func compactAtDelete(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	j.commit(set("k/1", "one"), set("s/1", "put"))
	for _, cut := range []func() store.Rev{
		func() store.Rev { return j.put(expecting(store.Any, del("s/1")), expecting(0, set("s/2", "put"))) },
		func() store.Rev { return j.commit(del("k/1"), set("k/2", "two")) },
	} {
		before := j.last()
		at := cut()
		if err := s.Compact(j.ctx, at); err != nil {
			t.Fatalf("Compact: %v", err)
		}
		if err := s.Follow(j.ctx, before, func(store.Batch) error { return errEnough }); !errors.Is(err, store.ErrCompacted) {
			t.Errorf("Follow(%d) after Compact(%d): %v, want ErrCompacted", before, at, err)
		}
		after := len(j.batches)
		j.commit(set("k/3", fmt.Sprint(at)))
		diff(t, "batches after the cut", follow(t, s, at, j.last()), j.batches[after:])
	}
}

// compactWhileFollowing takes the history from behind a follower that has
// seen it.
func compactWhileFollowing(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	seen, ended := make(chan store.Batch), make(chan error, 1)
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	go func() {
		ended <- s.Follow(ctx, j.base, func(b store.Batch) error {
			seen <- b
			return nil
		})
	}()
	for n := range 5 {
		rev := j.commit(set("k/1", fmt.Sprint(n)))
		select {
		case b := <-seen:
			diff(t, "batch", b, j.batches[n])
		case err := <-ended:
			t.Fatalf("Follow: %v", err)
		}
		if err := s.Compact(j.ctx, rev); err != nil {
			t.Fatalf("Compact: %v", err)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Follow: %v", err)
	}
}
