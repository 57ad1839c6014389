package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"netkeep.internal/internal/data/store"
)

// entries adds entries with records, reads them by range, and forgets some. They
// are in batches and snapshots, and not in what Load reads.
func entries(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	const n = 30
	entry := func(i int) string { return fmt.Sprintf("%slog/%02d", store.EntryMark, i) }
	for i := range n {
		ops := []store.Op{set(fmt.Sprintf("k/%d", i), "record"), set(entry(i), fmt.Sprint("entry ", i))}
		if i%2 == 0 {
			j.commit(ops...)
		} else {
			j.put(ops...)
		}
	}
	j.put(set("log/00", "a record"), set(store.EntryMark+"logs/1", "of another log"))
	diff(t, "batches", follow(t, open(t, o), j.base, j.last()), j.batches)
	records, _ := load(t, s)
	if len(records) != n+1 || slices.ContainsFunc(records, func(r store.Record) bool { return store.IsEntry(r.Key) }) {
		t.Errorf("Load reads %d records: %v", len(records), records)
	}
	if rec, ok, err := s.Get(j.ctx, entry(3)); err != nil || !ok || rec.Key != entry(3) || string(rec.Value) != "entry 3" {
		t.Errorf("Get(%q) = %+v, %v, %v", entry(3), rec, ok, err)
	}
	ranged(t, s, entry(5), entry(9), 100, false, []int{5, 6, 7, 8}, false)
	ranged(t, s, entry(5), entry(9), 2, false, []int{5, 6}, true)
	ranged(t, s, entry(5), entry(9), 2, true, []int{8, 7}, true)
	ranged(t, s, entry(5), entry(9), 4, true, []int{8, 7, 6, 5}, false)
	ranged(t, s, entry(9), entry(9), 4, true, nil, false)
	ranged(t, s, store.EntryMark+"log/", store.EntryMark+"log0", 1, true, []int{n - 1}, true)
	j.put(expecting(store.Any, del(entry(0))), expecting(store.Any, del(entry(1))))
	ranged(t, s, store.EntryMark+"log/", store.EntryMark+"log0", 1, false, []int{2}, true)

	runs(t, j, s, entry)

	var copied bytes.Buffer
	if err := s.Snapshot(j.ctx, &copied); err != nil {
		t.Fatal(err)
	}
	restored := o.Restore(t, &copied)
	defer restored.Close()
	ranged(t, restored, entry(0), entry(4), 100, false, []int{2, 3}, false)
}

// runs deletes entries that follow each other, some of them as runs, with others in
// the same batch. A run of which an end is not there is a conflict.
func runs(t *testing.T, j *journal, s store.Store, entry func(int) string) {
	run := func(from, to int) (ops []store.Op) {
		for i := from; i <= to; i++ {
			op := del(entry(i))
			op.Next = i > from
			ops = append(ops, op)
		}
		return ops
	}
	j.put(append(append(run(10, 13), set("k/1", "changed")), run(15, 15)...)...)
	j.commit(slices.Concat([]store.Op{set(entry(17), "entry 17")}, run(18, 19), run(21, 24), []store.Op{set("k/2", "changed")})...)
	odd := run(4, 6)
	odd[0], odd[2] = odd[2], odd[0] // no key of these is after the one before
	j.put(odd...)
	for _, ends := range [][2]int{{13, 14}, {14, 15}, {24, 25}} {
		if _, err := s.Put(j.ctx, store.Head{}, append(run(ends[0], ends[1]), set("k/3", "lost"))); !errors.Is(err, store.ErrConflict) {
			t.Errorf("entries from %d to %d are deleted, of which one is not there: %v", ends[0], ends[1], err)
		}
	}
	ranged(t, s, entry(4), entry(26), 100, false, []int{7, 8, 9, 14, 16, 17, 20, 25}, false)
	diff(t, "batches with runs", follow(t, s, j.base, j.last()), j.batches)
}

// ranged tests what a range holds.
func ranged(t *testing.T, s store.Store, from, to string, most int, newest bool, want []int, wantMore bool) {
	t.Helper()
	recs, more, err := s.Range(testContext(t), from, to, most, newest)
	var got []int
	for _, rec := range recs {
		var i int
		if _, err := fmt.Sscanf(string(rec.Value), "entry %d", &i); err != nil || rec.Key != fmt.Sprintf("%slog/%02d", store.EntryMark, i) {
			t.Errorf("a range has %+v", rec)
		}
		got = append(got, i)
	}
	if err != nil || more != wantMore || !slices.Equal(got, want) {
		t.Errorf("up to %d from %s to %s are %v (more: %t, %v), want %v (%t)", most, from, to, got, more, err, want, wantMore)
	}
}
