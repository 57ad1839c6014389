package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/data/store"
)

func commitGuard(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	first := j.commit(set("k/1", "one"))
	second := j.commit(set("k/1", "two"))
	for _, prev := range []store.Rev{0, first, second + 1, store.Any} {
		_, err := s.Commit(j.ctx, prev, store.Head{}, []store.Op{set("k/1", "lost"), set("k/2", "lost")})
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("Commit after %d, head is %d: %v", prev, second, err)
		}
	}
	j.commit(set("k/3", "three"))
	j.check(s)
}

func commitDeletes(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	j.commit(set("k/1", "one"), set("k/2", "two"), set("k/3", "three"))
	j.commit(del("k/2"), set("k/1", "changed"), del("k/3"))
	_, err := s.Commit(j.ctx, j.head, store.Head{}, []store.Op{set("k/1", "lost"), del("k/2")})
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("Commit deletes what is not there: %v", err)
	}
	j.commit(set("k/2", "again"))
	j.commit(del("k/2"), del("k/1"))
	j.check(s)
}

// commitOneWinner has many commits on one revision.
func commitOneWinner(t *testing.T, o Opener) {
	const writers, rounds = 8, 5
	ctx := testContext(t)
	var handles []store.Store
	for range writers {
		handles = append(handles, open(t, o))
	}
	var head store.Rev
	for round := range rounds {
		revs, errs := make([]store.Written, writers), make([]error, writers)
		var wg sync.WaitGroup
		for w, s := range handles {
			wg.Go(func() {
				revs[w], errs[w] = s.Commit(ctx, head, store.Head{}, []store.Op{set("k/1", strconv.Itoa(w))})
			})
		}
		wg.Wait()
		winner := -1
		for w, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = w
			case err == nil:
				t.Fatalf("round %d: %d and %d both won", round, winner, w)
			case !errors.Is(err, store.ErrConflict):
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: nobody won", round)
		}
		rec, _, err := handles[(winner+1)%writers].Get(ctx, "k/1")
		if err != nil || string(rec.Value) != strconv.Itoa(winner) || rec.Rev != revs[winner].Rev {
			t.Fatalf("round %d: %d won at %d, but stored is %s at %d, %v", round, winner, revs[winner].Rev, rec.Value, rec.Rev, err)
		}
		head = revs[winner].Rev
	}
}

// commitNoLostUpdate counts up from several handles, each reading first.
func commitNoLostUpdate(t *testing.T, o Opener) {
	const writers, each = 4, 10
	ctx := testContext(t)
	_, base := load(t, open(t, o))
	increment := func(s store.Store) error {
		for {
			n := 0
			mark, err := s.Load(ctx, func(r store.Record) (err error) {
				n, err = strconv.Atoi(string(r.Value))
				return err
			})
			if err != nil {
				return err
			}
			_, err = s.Commit(ctx, mark.Head, store.Head{}, []store.Op{set("count/1", strconv.Itoa(n+1))})
			if !errors.Is(err, store.ErrConflict) {
				return err
			}
		}
	}
	var wg sync.WaitGroup
	for range writers {
		s := open(t, o)
		wg.Go(func() {
			for range each {
				if err := increment(s); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()

	s := open(t, o)
	_, mark := load(t, s)
	batches := follow(t, s, base.Rev, mark.Head)
	if len(batches) != writers*each {
		t.Fatalf("%d commits, want %d", len(batches), writers*each)
	}
	var prev store.Rev
	for i, b := range batches {
		if b.Head.Prev != prev || string(b.Ops[0].Value) != strconv.Itoa(i+1) {
			t.Fatalf("commit %d has prev %d and value %s, want %d and %d", i, b.Head.Prev, b.Ops[0].Value, prev, i+1)
		}
		prev = b.Rev
	}
}

func putGuards(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	guards(t, s, j, j.put)
}

// commitGuards shows that a Commit heeds the guards of its ops too.
func commitGuards(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	guards(t, s, j, j.commit)
}

func guards(t *testing.T, s store.Store, j *journal, write func(...store.Op) store.Rev) {
	// What a guard expects, of a record that was written twice or never.
	const old, now, later = -2, -3, -4
	tests := []struct {
		name  string
		there bool
		op    store.Op
		ok    bool
	}{
		{"create", false, expecting(0, set("s/1", "v")), true},
		{"create what is there", true, expecting(0, set("s/2", "v")), false},
		{"update", true, expecting(now, set("s/3", "v")), true},
		{"update with an old revision", true, expecting(old, set("s/4", "v")), false},
		{"update with a revision to come", true, expecting(later, set("s/5", "v")), false},
		{"update what is not there", false, expecting(now, set("s/6", "v")), false},
		{"delete", true, expecting(now, del("s/7")), true},
		{"delete with an old revision", true, expecting(old, del("s/8")), false},
		{"delete what is not there", false, expecting(now, del("s/9")), false},
		{"delete what should not be there", true, expecting(0, del("s/10")), false},
		{"delete nothing", false, expecting(0, del("s/11")), false},
		{"set any", true, expecting(store.Any, set("s/12", "v")), true},
		{"set any new", false, expecting(store.Any, set("s/13", "v")), true},
		{"delete any", true, expecting(store.Any, del("s/14")), true},
		{"delete any not there", false, expecting(store.Any, del("s/15")), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			revs := map[store.Rev]store.Rev{old: j.put(set("other/"+tt.name, "v")), now: j.last(), 0: 0, store.Any: store.Any}
			if tt.there {
				revs[old] = j.put(expecting(0, set(tt.op.Key, "first")))
				revs[now] = j.commit(set(tt.op.Key, "second"))
			}
			revs[later] = revs[now] + 1000
			op := expecting(revs[tt.op.Prev], tt.op)
			if tt.ok {
				write(op)
				return
			}
			_, err := s.Put(j.ctx, store.Head{}, []store.Op{op})
			_, committed := s.Commit(j.ctx, j.head, store.Head{}, []store.Op{op})
			if !errors.Is(err, store.ErrConflict) || !errors.Is(committed, store.ErrConflict) {
				t.Errorf("Put: %v, Commit: %v, want conflicts", err, committed)
			}
		})
	}
	j.check(s)
}

func putAllOrNothing(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	rev := j.put(expecting(0, set("s/1", "one")), expecting(0, set("s/2", "two")))
	_, err := s.Put(j.ctx, store.Head{}, []store.Op{
		expecting(rev, set("s/1", "lost")),
		expecting(0, set("s/3", "lost")),
		expecting(rev-1, del("s/2")),
	})
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("Put with one guard failing: %v", err)
	}
	j.put(expecting(rev, set("s/1", "changed")), expecting(0, set("s/3", "three")), expecting(rev, del("s/2")))
	j.check(s)
}

func putOneWinner(t *testing.T, o Opener) {
	const writers = 8
	ctx := testContext(t)
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		s := open(t, o)
		wg.Go(func() {
			own := expecting(0, set(fmt.Sprintf("own/%d", w), "v"))
			_, errs[w] = s.Put(ctx, store.Head{}, []store.Op{expecting(0, set("s/1", strconv.Itoa(w))), own})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, store.ErrConflict) {
			t.Error(err)
		}
	}
	records, _ := load(t, open(t, o))
	if won != 1 || len(records) != 2 {
		t.Errorf("%d won and left %d records, want 1 and 2", won, len(records))
	}
}

// commitAndPut shows that a Put moves no head but does move its records.
func commitAndPut(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	j.commit(set("k/1", "one"), set("s/1", "committed"))
	rev := j.put(expecting(j.head, set("s/1", "put")))
	j.commit(set("k/1", "two"), set("s/1", "committed"))
	if _, err := s.Put(j.ctx, store.Head{}, []store.Op{expecting(rev, set("s/1", "lost"))}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Put over a newer Commit: %v", err)
	}
	j.put(expecting(j.head, del("s/1")))
	j.put(set("s/2", "before any commit since"))
	j.commit(set("k/1", "three"))
	j.check(s)
}

// write calls both ways to write with the same ops.
func write(t *testing.T, s store.Store, ops []store.Op, check func(t *testing.T, err error)) {
	t.Helper()
	_, mark := load(t, s)
	t.Run("Commit", func(t *testing.T) {
		_, err := s.Commit(testContext(t), mark.Head, store.Head{}, ops)
		check(t, err)
	})
	t.Run("Put", func(t *testing.T) {
		_, err := s.Put(testContext(t), store.Head{}, ops)
		check(t, err)
	})
}

func invalid(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	j.commit(set("k/1", "one"))
	for name, ops := range map[string][]store.Op{
		"empty":       {},
		"empty key":   {set("", "v")},
		"twice":       {set("k/2", "v"), set("k/2", "w")},
		"set and del": {set("k/1", "v"), del("k/1")},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, s, ops, func(t *testing.T, err error) {
				if !errors.Is(err, store.ErrInvalid) {
					t.Errorf("got %v, want ErrInvalid", err)
				}
			})
		})
	}
	j.check(s)
}

// fullBatch has ops that together weigh bytes.
func fullBatch(ops, bytes int) []store.Op {
	out := make([]store.Op, ops)
	zeros := make([]byte, bytes/ops+ops)
	for i := range out {
		key := fmt.Sprintf("k/%08d", i)
		share := bytes/(ops-i) - len(key)
		out[i] = store.Op{Key: key, Value: zeros[:share:share], Prev: store.Any}
		bytes -= len(key) + share
	}
	return out
}

func limits(t *testing.T, o Opener) {
	s := open(t, o)
	l := s.Limits()
	if l.Ops < 100 || l.Bytes < 1<<20+1<<10 {
		t.Fatalf("limits are %+v, want 100 ops and a record of 1 MiB at least", l)
	}
	j := newJournal(t, s)
	j.commit(fullBatch(min(l.Ops, 500), min(l.Bytes, 2<<20))...)
	j.put(expecting(store.Any, store.Op{Key: "k/large", Value: make([]byte, 1<<20)}))

	// A batch that just fits gets as far as its guards. To write it would
	// take long in some engines.
	full := fullBatch(l.Ops, l.Bytes)
	deletes := slices.Clone(full)
	for i := range deletes {
		deletes[i].Value = nil
	}
	failing := slices.Clone(full)
	failing[len(failing)-1].Prev = 1 << 40
	for what, write := range map[string]func() (store.Written, error){
		"Commit":            func() (store.Written, error) { return s.Commit(j.ctx, 1<<40, store.Head{}, full) },
		"Commit of deletes": func() (store.Written, error) { return s.Commit(j.ctx, 1<<40, store.Head{}, deletes) },
		"Put":               func() (store.Written, error) { return s.Put(j.ctx, store.Head{}, failing) },
	} {
		if _, err := write(); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s that just fits: %v, want a conflict", what, err)
		}
	}

	for name, ops := range map[string][]store.Op{
		"ops":   fullBatch(l.Ops+1, l.Bytes),
		"bytes": fullBatch(1, l.Bytes+1),
	} {
		t.Run(name, func(t *testing.T) {
			write(t, s, ops, func(t *testing.T, err error) {
				if !errors.Is(err, store.ErrTooLarge) {
					t.Errorf("got %v, want ErrTooLarge", err)
				}
			})
		})
	}
	j.check(s)
}

// large writes more than is written in one go, as whole as anything else.
func large(t *testing.T, o Opener) {
	s, reader := open(t, o), open(t, o)
	l, quick := s.Limits(), s.Quick()
	j := newJournal(t, s)
	j.commit(set("k/00000000", "old"), set("z/last", "old"))
	n := min(l.Ops, quick.Ops+quick.Ops/8+10)
	ops := fullBatch(n, min(l.Bytes, 64*n))
	first := j.commit(ops...)

	// What a large batch wrote can be built on, by anybody.
	j.s = reader
	j.put(expecting(first, set(ops[0].Key, "put")), expecting(first, del(ops[1].Key)))
	second := j.put(fullBatch(n, min(l.Bytes, 64*n))...)
	for _, prev := range []store.Rev{0, first, first + 1, second - 1, second + 1} {
		_, err := s.Put(j.ctx, store.Head{}, []store.Op{expecting(prev, set(ops[2].Key, "lost"))})
		_, large := s.Commit(j.ctx, j.head, store.Head{}, append(ops[:2:2], expecting(prev, del(ops[2].Key))))
		if !errors.Is(err, store.ErrConflict) || !errors.Is(large, store.ErrConflict) {
			t.Errorf("expecting revision %d, not %d: Put: %v, Commit: %v", prev, second, err, large)
		}
	}
	j.s = s
	for i := range ops {
		ops[i] = expecting(second, del(ops[i].Key))
	}
	stale := slices.Clone(ops)
	stale[len(stale)-1] = del("never/there")
	if _, err := s.Commit(j.ctx, j.head, store.Head{}, stale); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a large Commit deletes what is not there: %v", err)
	}
	j.commit(ops...)
	j.check(reader)
}

func oddKeys(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	var ops []store.Op
	for i, key := range []string{
		"/", "//", "a", "a/", "a/b/c", "a/\x00", "a/\x00\x00", "\xff", "\xff\xff/\xff", " ", "\n", "a/ü/ß/日本",
		"head", "put", "r", "r/", "r0", "r/r/x", "%2f", "..", "../head", "'\"\\`$", strings.Repeat("long/", 500),
	} {
		ops = append(ops, set(key, fmt.Sprint(i)))
	}
	j.commit(ops...)
	j.put(expecting(j.head, set("\xff", "put")), expecting(0, set("head/", "put")))
	for _, op := range ops[:10] {
		rec, ok, err := s.Get(j.ctx, op.Key)
		if err != nil || !ok || rec.Key != op.Key {
			t.Errorf("Get(%q) = %+v, %v, %v", op.Key, rec, ok, err)
		}
	}
	j.commit(del("head"), del("put"), del("a/\x00"))
	j.check(s)
}

func oddValues(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	// An empty value is a value, not a delete.
	j.commit(set("k/empty", ""), set("k/binary", "\x00\xff\xfe{"), set("k/text", "ü\n"))
	j.put(expecting(store.Any, set("k/empty", "")))
	// A store keeps what it was given, not what the slice becomes.
	value := []byte("as given")
	j.put(store.Op{Key: "k/reused", Value: value})
	j.batches[2].Ops[0].Value = bytes.Clone(value)
	copy(value, "CHANGED!")
	j.check(s)
}

func oddHeads(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	author := store.Author{
		Kind: "identity", ID: "\x00", Name: "ü <&> \u2028\x00", Operation: strings.Repeat("why ", 10000), Request: "1", Source: "::1",
	}
	for _, head := range []store.Head{
		{},
		{Time: time.Now(), Writes: []store.Write{{Author: author, Ops: 1}}},
		{Time: time.Date(2030, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)), Prev: 99, Ops: 99},
		{End: "ü <&> \u2028\x00 " + strings.Repeat("end ", 100)},
		{Writes: []store.Write{{}, {Ops: -1}, {Author: author, Ops: 99}}}, // which is not the store's to judge
	} {
		at, err := s.Commit(j.ctx, j.head, head, []store.Op{set("k/1", "v")})
		if err != nil {
			t.Fatalf("Commit with head %+v: %v", head, err)
		}
		sameHead(t, s, at.Rev, head, j.head)
		if _, mark := load(t, s); !mark.Time.Equal(head.Time) || mark.End != head.End {
			t.Errorf("mark has time %v and end %q, head had %v and %q", mark.Time, mark.End, head.Time, head.End)
		}
		j.head = at.Rev
		head.End = ""
		if at, err = s.Put(j.ctx, head, []store.Op{expecting(store.Any, set("s/1", "v"))}); err != nil {
			t.Fatalf("Put with head %+v: %v", head, err)
		}
		sameHead(t, s, at.Rev, head, 0)
	}
	// What is not text may be mended, not refused.
	mended := store.Head{Writes: []store.Write{{Author: store.Author{Name: "\xff\xfe"}, Ops: 1}}}
	at, err := s.Commit(j.ctx, j.head, mended, []store.Op{set("k/1", "v")})
	if err != nil {
		t.Fatalf("Commit by nobody who can be named: %v", err)
	}
	follow(t, s, at.Rev-1, at.Rev)
}

// sameHead tests that the batch at rev has the head that it was written with.
func sameHead(t *testing.T, s store.Store, rev store.Rev, want store.Head, prev store.Rev) {
	t.Helper()
	got := follow(t, s, rev-1, rev)[0].Head
	if !got.Time.Equal(want.Time) {
		t.Errorf("the time is %v, was %v", got.Time, want.Time)
	}
	want.Prev, want.Ops, want.Time = prev, 1, got.Time
	diff(t, "head", got, want)
}
