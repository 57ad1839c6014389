// Package storetest is the contract of the log as a test suite, a store in
// memory that keeps the contract, and a wrapper that breaks it on demand. It
// owns no engine and imports store alone of ours; only tests import it.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"netkeep.internal/internal/data/store"
)

// Opener reaches one set of data.
type Opener struct {
	// Open returns one more handle on the data, as another controller would
	// have. Who calls it closes the handle.
	Open func(t testing.TB) store.Store
	// Restore returns a store on new data, made from a snapshot of these.
	Restore func(t testing.TB, snapshot io.Reader) store.Store
	// Around are the goroutines that come and go in this process whatever handles
	// do: those of a store that others serve from here.
	Around []goleak.Option
}

type test struct {
	name string
	test func(*testing.T, Opener)
}

// Run tests that a store keeps the contract. fresh returns a way to empty
// data, other data at every call. Their revisions may begin anywhere: the data
// can be part of a larger store, to which others write as long as it is not to
// them.
func Run(t *testing.T, fresh func(t *testing.T) Opener) {
	t.Run("Together", func(t *testing.T) { // to follow takes time in some engines, and nothing else
		for _, tt := range []test{
			{"LoadEmpty", loadEmpty},
			{"LoadOrder", loadOrder},
			{"LoadOneRevision", loadOneRevision},
			{"LoadStops", loadStops},
			{"Get", get},
			{"Last", last},
			{"Witness", witness},
			{"Entries", entries},
			{"CommitGuard", commitGuard},
			{"CommitDeletes", commitDeletes},
			{"CommitOneWinner", commitOneWinner},
			{"CommitNoLostUpdate", commitNoLostUpdate},
			{"PutGuards", putGuards},
			{"CommitGuards", commitGuards},
			{"PutAllOrNothing", putAllOrNothing},
			{"PutOneWinner", putOneWinner},
			{"CommitAndPut", commitAndPut},
			{"Invalid", invalid},
			{"OddKeys", oddKeys},
			{"OddValues", oddValues},
			{"OddHeads", oddHeads},
			{"FollowFromAnywhere", followFromAnywhere},
			{"FollowLive", followLive},
			{"FollowStops", followStops},
			{"FollowFuture", followFuture},
			{"Canceled", canceled},
			{"Reopen", Reopen},
			{"Snapshot", snapshot},
			{"SnapshotStops", snapshotStops},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				tt.test(t, fresh(t))
			})
		}
	})
	for _, tt := range []test{
		{"CloseEndsAll", closeEndsAll},
		// From here on data that share a store get heavy.
		{"Limits", limits},
		{"FollowLarge", followLarge},
		{"Large", large},
		// These take history from data that share a store.
		{"Compact", compact},
		{"WitnessForgotten", witnessForgotten},
		{"CompactAtDelete", compactAtDelete},
		{"CompactWhileFollowing", compactWhileFollowing},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, fresh(t)) })
	}
}

// patience ends what would never happen: three members beside other work take their time.
const patience = 2 * time.Minute

// errEnough ends a Follow that has seen enough.
var errEnough = errors.New("enough")

func open(t testing.TB, o Opener) store.Store {
	t.Helper()
	s := o.Open(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// load returns all there is.
func load(t testing.TB, s store.Store) ([]store.Record, store.Mark) {
	t.Helper()
	var records []store.Record
	mark, err := s.Load(testContext(t), func(r store.Record) error {
		records = append(records, r)
		return nil
	})
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return records, mark
}

// follow returns the batches after rev up to the one at until.
func follow(t testing.TB, s store.Store, rev, until store.Rev) []store.Batch {
	t.Helper()
	if rev >= until {
		return nil
	}
	var batches []store.Batch
	err := s.Follow(testContext(t), rev, func(b store.Batch) error {
		batches = append(batches, b)
		if b.Rev >= until {
			return errEnough
		}
		return nil
	})
	if err != errEnough {
		t.Fatalf("Follow(%d) until %d: %v after %d batches", rev, until, err, len(batches))
	}
	return batches
}

// journal writes through a store and remembers what Follow should say of it.
type journal struct {
	t       testing.TB
	ctx     context.Context
	s       store.Store
	base    store.Rev // before all batches
	head    store.Rev
	batches []store.Batch
}

func newJournal(t testing.TB, s store.Store) *journal {
	_, mark := load(t, s)
	return &journal{t: t, ctx: testContext(t), s: s, base: mark.Rev, head: mark.Head}
}

func (j *journal) commit(ops ...store.Op) store.Rev {
	j.t.Helper()
	head := j.next(ops)
	head.End = fmt.Sprint("after ", len(j.batches))
	at, err := j.s.Commit(j.ctx, j.head, head, ops)
	if err != nil {
		j.t.Fatalf("Commit after %d: %v", j.head, err)
	}
	head.Prev, head.Ops = j.head, len(ops)
	j.wrote(at, store.Batch{Commit: true, Head: head}, ops)
	j.head = at.Rev
	return at.Rev
}

// next is the head of the next batch, but for what the store fills in.
func (j *journal) next(ops []store.Op) store.Head {
	n := len(j.batches)
	return store.Head{
		Time:   time.Unix(1e9+int64(n), 12345).UTC(),
		Writes: []store.Write{{Author: store.Author{Kind: "identity", ID: fmt.Sprint(n)}, Ops: len(ops)}},
	}
}

func (j *journal) put(ops ...store.Op) store.Rev {
	j.t.Helper()
	head := j.next(ops)
	at, err := j.s.Put(j.ctx, head, ops)
	if err != nil {
		j.t.Fatalf("Put: %v", err)
	}
	head.Ops = len(ops)
	j.wrote(at, store.Batch{Head: head}, ops)
	return at.Rev
}

func (j *journal) wrote(at store.Written, b store.Batch, ops []store.Op) {
	j.t.Helper()
	if at.Rev <= j.last() {
		j.t.Fatalf("wrote revision %d after %d", at.Rev, j.last())
	}
	if len(j.batches) > 0 && at.After != j.last() {
		j.t.Errorf("wrote revision %d after %d, want after %d", at.Rev, at.After, j.last())
	}
	b.Rev = at.Rev
	for _, op := range ops {
		b.Ops = append(b.Ops, store.Op{Key: op.Key, Value: op.Value})
	}
	j.batches = append(j.batches, b)
}

func (j *journal) last() store.Rev {
	if len(j.batches) == 0 {
		return j.base
	}
	return j.batches[len(j.batches)-1].Rev
}

// records is what the batches leave, in key order.
func (j *journal) records() []store.Record {
	m := make(map[string]store.Record)
	for _, b := range j.batches {
		for _, op := range b.Ops {
			if op.Value == nil {
				delete(m, op.Key)
			} else {
				m[op.Key] = store.Record{Key: op.Key, Value: op.Value, Rev: b.Rev}
			}
		}
	}
	var out []store.Record
	for _, r := range m {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b store.Record) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// check compares what is stored with what was written.
func (j *journal) check(s store.Store) {
	j.t.Helper()
	records, mark := load(j.t, s)
	diff(j.t, "records", records, j.records())
	if mark.Rev < j.last() || mark.Head != j.head {
		j.t.Errorf("Load reached revision %d and head %d, wrote %d and %d", mark.Rev, mark.Head, j.last(), j.head)
	}
	diff(j.t, "batches", follow(j.t, s, j.base, j.last()), j.batches)
}

// sameBytes spares cmp a look at every byte, and tells nil from empty.
var sameBytes = cmp.Comparer(func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) })

// reporter is what a test and one of its random cases have in common.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

func diff(t reporter, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, sameBytes); d != "" {
		if len(d) > 4000 {
			d = d[:4000] + "..."
		}
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func set(key, value string) store.Op {
	return store.Op{Key: key, Value: []byte(value), Prev: store.Any}
}

func del(key string) store.Op { return store.Op{Key: key, Prev: store.Any} }

func expecting(prev store.Rev, op store.Op) store.Op {
	op.Prev = prev
	return op
}
