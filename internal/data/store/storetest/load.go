package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"netkeep.internal/internal/data/store"
)

func loadEmpty(t *testing.T, o Opener) {
	s := open(t, o)
	records, mark := load(t, s)
	if len(records) != 0 || mark.Head != 0 || !mark.Time.IsZero() {
		t.Errorf("empty store has %d records and mark %+v", len(records), mark)
	}
	j := newJournal(t, s)
	j.commit(set("k/1", "one"))
	diff(t, "batches after the mark of an empty store", follow(t, s, mark.Rev, j.last()), j.batches)
}

func loadOrder(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	for _, n := range rand.Perm(40) {
		key := fmt.Sprintf("kind%d/%d", n%3, n)
		if n%2 == 0 {
			j.commit(set(key, "committed"), set(key+"x", "also"))
		} else {
			j.put(expecting(0, set(key, "put")))
		}
	}
	j.commit(del("kind0/0"), set("kind1/1", "changed"))
	j.check(s)
	j.check(open(t, o))

	_, mark := load(t, s)
	if want := j.batches[len(j.batches)-1].Head; !mark.Time.Equal(want.Time) || mark.End != want.End {
		t.Errorf("mark has time %v and end %q, want %v and %q", mark.Time, mark.End, want.Time, want.End)
	}
}

// loadOneRevision loads more than a page while two keys far apart change
// together.
func loadOneRevision(t *testing.T, o Opener) {
	s, writer := open(t, o), open(t, o)
	j := newJournal(t, writer)
	var fill []store.Op
	for n := range 600 {
		fill = append(fill, set(fmt.Sprintf("m/%03d", n), "filler"))
		if len(fill) == 100 {
			j.put(fill...)
			fill = nil
		}
	}
	j.commit(set("a/first", "0"), set("z/last", "0"))

	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		head := j.head
		for n := 1; ; n++ {
			v := fmt.Sprint(n)
			at, err := writer.Commit(j.ctx, head, store.Head{}, []store.Op{set("z/last", v), set("a/first", v)})
			if err != nil {
				stopped <- err
				return
			}
			head = at.Rev
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
		}
	}()
	for range 10 {
		records, mark := load(t, s)
		first, last := records[0], records[len(records)-1]
		if len(records) != 602 || first.Key != "a/first" || last.Key != "z/last" {
			t.Fatalf("loaded %d records from %s to %s", len(records), first.Key, last.Key)
		}
		if !bytes.Equal(first.Value, last.Value) || first.Rev != last.Rev || first.Rev != mark.Head {
			t.Fatalf("loaded %s at %d and %s at %d with head %d", first.Value, first.Rev, last.Value, last.Rev, mark.Head)
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}

func loadStops(t *testing.T, o Opener) {
	s := open(t, o)
	newJournal(t, s).commit(set("k/1", "one"), set("k/2", "two"))
	calls := 0
	_, err := s.Load(testContext(t), func(store.Record) error {
		calls++
		return errEnough
	})
	if err != errEnough || calls != 1 {
		t.Errorf("Load returned %v after %d calls, want the error of the first", err, calls)
	}
}

func get(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	j.put(set("k/1", "one"))
	want := store.Record{Key: "k/1", Value: []byte("two"), Rev: j.commit(set("k/1", "two"))}
	got, ok, err := open(t, o).Get(j.ctx, "k/1")
	if err != nil || !ok {
		t.Fatalf("Get: %v, %v", ok, err)
	}
	diff(t, "record", got, want)
	j.commit(del("k/1"))
	for _, key := range []string{"k/1", "k/", "k", "k/10", "never/there"} {
		if got, ok, err := s.Get(j.ctx, key); ok || err != nil {
			t.Errorf("Get(%q) = %+v, %v, %v; want none", key, got, ok, err)
		}
	}
}

func last(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	check := func(want store.Rev) {
		t.Helper()
		if got, err := open(t, o).Last(j.ctx); got != want || err != nil {
			t.Errorf("Last = %d, %v; want %d", got, err, want)
		}
	}
	check(0)
	check(j.put(set("k/1", "one")))
	check(j.commit(set("k/1", "two")))
	check(j.put(del("k/1")))
}

// Reopen tests that data outlive the handles on them. It is part of Run.
func Reopen(t *testing.T, o Opener) {
	first := o.Open(t)
	j := newJournal(t, first)
	j.commit(set("k/1", "one"), set("k/2", "two"))
	j.put(expecting(0, set("s/1", "put")))
	j.commit(del("k/1"))
	if err := first.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	second := open(t, o)
	j.check(second)
	j.s = second
	j.put(expecting(j.batches[1].Rev, set("s/1", "again")))
	j.commit(set("k/3", "three"))
	j.check(second)
}

func snapshot(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	j.commit(set("k/1", "one"), set("k/2", "two"))
	j.put(set("s/1", "put"))
	j.commit(del("k/2"), set("k/3", ""))
	var copied bytes.Buffer
	if err := s.Snapshot(j.ctx, &copied); err != nil || copied.Len() == 0 {
		t.Fatalf("Snapshot: %d bytes, %v", copied.Len(), err)
	}
	want, wantMark := load(t, s)
	newJournal(t, s).commit(set("k/4", "after the snapshot"))

	restored := o.Restore(t, &copied)
	defer restored.Close()
	got, mark := load(t, restored)
	diff(t, "restored records", got, want)
	if mark.Head != wantMark.Head || !mark.Time.Equal(wantMark.Time) || mark.End != wantMark.End || mark.Rev < wantMark.Head {
		t.Errorf("restored mark is %+v, want %+v", mark, wantMark)
	}
	r := newJournal(t, restored)
	r.commit(set("k/1", "changed"))
	r.put(expecting(store.Any, del("s/1")))
	diff(t, "batches of the restored store", follow(t, restored, r.base, r.last()), r.batches)
}

// snapshotStops gives a writer that fails and one whose context ends.
func snapshotStops(t *testing.T, o Opener) {
	s := open(t, o)
	newJournal(t, s).commit(set("k/1", "one"))
	r, w := io.Pipe()
	r.CloseWithError(errEnough)
	if err := s.Snapshot(testContext(t), w); !errors.Is(err, errEnough) {
		t.Errorf("Snapshot to a failing writer: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Snapshot(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("Snapshot with an ended context: %v", err)
	}
}
