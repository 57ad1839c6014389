package format_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/ops/build"
)

// small is what makes stores of tests large: few records fill a batch.
var small = store.Limits{Ops: 8, Bytes: 4 << 10}

// mark returns a step that adds a mark to the records of a kind that lack it.
func mark(release, kind, text string) format.Step {
	return format.Step{Release: release, Rewrite: func(key string, value []byte) ([]byte, error) {
		switch {
		case !strings.HasPrefix(key, kind+"/") || bytes.Contains(value, []byte(text)):
			return value, nil
		case bytes.HasPrefix(value, []byte("bad")):
			return nil, errors.New("it is bad")
		case bytes.HasPrefix(value, []byte("over")):
			return nil, nil
		}
		return append(slices.Clone(value), text...), nil
	}}
}

var steps = []format.Step{mark("v1.2.0", "a", "!"), {Release: "v1.3.0"}, mark("v1.4.0", "b", "?")}

// filled returns a store of format 1 with records of two kinds.
func filled(t testing.TB, each int) *storetest.Memory {
	t.Helper()
	mem := storetest.NewMemoryWithin(small)
	var last store.Written
	for i := range each {
		n := fmt.Sprintf("%03d", i)
		var err error
		last, err = mem.Commit(context.Background(), last.Rev, store.Head{Time: start}, []store.Op{{Key: "a/" + n, Value: []byte(n)}, {Key: "b/" + n, Value: []byte(n)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return mem
}

var start = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func migration(st store.Store, steps []format.Step) *format.Migration {
	return &format.Migration{
		Store: st, Steps: steps, Before: func(context.Context) error { return nil },
		Now: func() time.Time { return start }, Log: slog.New(slog.DiscardHandler),
	}
}

// contents is every record but that of the format.
func contents(t testing.TB, st store.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	_, err := st.Load(context.Background(), func(r store.Record) error {
		if r.Key != format.Key {
			all[r.Key] = string(r.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// says returns what the store says of its format.
func says(t testing.TB, st store.Store) string {
	t.Helper()
	rec, _, err := st.Get(context.Background(), format.Key)
	if err != nil {
		t.Fatal(err)
	}
	return string(rec.Value)
}

// batches returns what was written to the store after its first n batches.
func batches(t testing.TB, mem *storetest.Memory, n int) []store.Batch {
	t.Helper()
	var all []store.Batch
	last, err := mem.Load(context.Background(), func(store.Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	err = mem.Follow(context.Background(), 0, func(b store.Batch) error {
		all = append(all, b)
		if b.Rev == last.Rev {
			return enough
		}
		return nil
	})
	if err != enough {
		t.Fatal(err)
	}
	return all[n:]
}

func whole(each int) map[string]string {
	want := map[string]string{}
	for i := range each {
		n := fmt.Sprintf("%03d", i)
		want["a/"+n], want["b/"+n] = n+"!", n+"?"
	}
	return want
}

const last = `{"format":4,"release":"v1.4.0"}`

// TestRun takes all steps, in batches, and another time none.
func TestRun(t *testing.T) {
	mem := filled(t, 50)
	if err := migration(mem, steps).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(whole(50), contents(t, mem)); d != "" {
		t.Error(d)
	}
	if got := says(t, mem); got != last {
		t.Errorf("the store says %s", got)
	}
	var told []string
	for _, b := range batches(t, mem, 50) {
		if len(b.Head.Writes) != 1 || b.Head.Writes[0].Ops != len(b.Ops) || b.Head.Writes[0].Author.Kind != store.Program {
			t.Errorf("revision %d is by %v", b.Rev, b.Head.Writes)
		}
		if b.Commit {
			told = append(told, string(b.Ops[0].Value))
		}
	}
	want := []string{
		`{"format":2,"release":"v1.2.0","from":1}`, `{"format":2,"release":"v1.2.0"}`, `{"format":3,"release":"v1.3.0"}`,
		`{"format":4,"release":"v1.4.0","from":3}`, last,
	}
	if d := cmp.Diff(want, told); d != "" {
		t.Error(d)
	}
	before := len(batches(t, mem, 0))
	if err := migration(mem, steps).Run(t.Context()); err != nil || len(batches(t, mem, 0)) != before {
		t.Errorf("it is done again: %v", err)
	}
}

// TestEmpty gives a new store the format at once.
func TestEmpty(t *testing.T) {
	mem := storetest.NewMemory()
	m := migration(mem, steps[:1])
	m.Before = func(context.Context) error { return errors.New("there is nothing to keep") }
	if err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := says(t, mem); got != `{"format":2,"release":"v1.2.0"}` || len(batches(t, mem, 0)) != 1 {
		t.Errorf("the store says %s", got)
	}
}

// TestNewer has an older version refuse, whether the newer one is done or not.
func TestNewer(t *testing.T) {
	for _, value := range []string{last, `{"format":4,"release":"v1.4.0","from":3,"rewritten":7,"more":true}`} {
		mem := filled(t, 1)
		if _, err := mem.Put(t.Context(), store.Head{}, []store.Op{{Key: format.Key, Value: []byte(value)}}); err != nil {
			t.Fatal(err)
		}
		err := migration(mem, steps[:2]).Run(t.Context())
		const want = "the store has format 4, which netkeep v1.4.0 and newer can read; this version reads formats up to 3"
		if _, newer := errors.AsType[*format.NewerError](err); !newer || err.Error() != want {
			t.Errorf("got %v", err)
		}
		if got := says(t, mem); got != value {
			t.Errorf("the store says %s", got)
		}
	}
}

// TestNonsense refuses a store that says something else.
func TestNonsense(t *testing.T) {
	for _, value := range []string{"", "7", `{"format":0}`, `{"format":"x"}`} {
		mem := filled(t, 1)
		if _, err := mem.Put(t.Context(), store.Head{}, []store.Op{{Key: format.Key, Value: []byte(value)}}); err != nil {
			t.Fatal(err)
		}
		if err := migration(mem, steps).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "does not say which format") {
			t.Errorf("%q: %v", value, err)
		}
		if err := format.Readable([]byte(value)); err == nil {
			t.Errorf("%q is readable", value)
		}
	}
}

// TestBefore has a copy kept, once and before anything is changed.
func TestBefore(t *testing.T) {
	mem := filled(t, 20)
	m, calls := migration(mem, steps), 0
	broken := errors.New("no room")
	m.Before = func(context.Context) error {
		calls++
		return broken
	}
	if err := m.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("without a copy: %v", err)
	}
	if n := len(batches(t, mem, 20)); n != 0 {
		t.Errorf("without a copy it wrote %d batches", n)
	}
	broken = nil
	if err := m.Run(t.Context()); err != nil || calls != 2 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// TestLeft leaves what cannot be rewritten and takes out what goes.
func TestLeft(t *testing.T) {
	mem := storetest.NewMemory()
	_, err := mem.Commit(t.Context(), 0, store.Head{}, []store.Op{
		{Key: "a/1", Value: []byte("bad")}, {Key: "a/2", Value: []byte("over")}, {Key: "a/3", Value: []byte("x")}, {Key: "c/1", Value: []byte("alien")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := migration(mem, steps).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"a/1": "bad", "a/3": "x!", "c/1": "alien"}, contents(t, mem)); d != "" {
		t.Error(d)
	}
}

// TestSeveral starts controllers at once. One does the work: there is one
// announcement and one end of each format, and nothing is written twice.
func TestSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := filled(t, 100)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if err := migration(mem.Another(), steps).Run(t.Context()); err != nil {
					t.Error(err)
				}
				if got := says(t, mem); got != last {
					t.Errorf("one is done when the store says %s", got)
				}
			})
		}
		all.Wait()
		if d := cmp.Diff(whole(100), contents(t, mem)); d != "" {
			t.Error(d)
		}
		written, commits := map[string]int{}, 0
		for _, b := range batches(t, mem, 100) {
			if b.Commit {
				commits++
			}
			for _, op := range b.Ops {
				if op.Key != format.Key {
					written[op.Key]++
				}
			}
		}
		for key, n := range written {
			if n != 1 {
				t.Errorf("%s was written %d times", key, n)
			}
		}
		if commits != 5 || len(written) != 200 {
			t.Errorf("%d commits and %d records", commits, len(written))
		}
	})
}

// TestTakenOver has one stop in the middle. Another waits and goes on.
func TestTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := filled(t, 100)
		faults := storetest.NewFaulty(mem)
		for range 3 {
			faults.LoseNext(storetest.Put, nil)
		}
		faults.FailNext(storetest.Put, storetest.ErrInjected)
		if err := migration(faults, steps).Run(t.Context()); !errors.Is(err, storetest.ErrInjected) {
			t.Fatal(err)
		}
		if got := says(t, mem); got != `{"format":2,"release":"v1.2.0","from":1,"rewritten":21}` {
			t.Errorf("the store says %s", got)
		}
		if err := format.Usable([]byte(says(t, mem))); err == nil {
			t.Error("a store that is being rewritten is usable")
		}
		began := time.Now()
		if err := migration(mem, steps).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("it waited %s for the one before", waited)
		}
		if d := cmp.Diff(whole(100), contents(t, mem)); d != "" {
			t.Error(d)
		}
	})
}

// TestWrittenMeanwhile has an older controller write before it stops. What it
// wrote counts.
func TestWrittenMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := filled(t, 3)
		faults := storetest.NewFaulty(mem)
		gate := faults.BlockNext(storetest.Put)
		ended := make(chan error, 1)
		go func() { ended <- migration(faults, steps).Run(t.Context()) }()
		<-gate.Reached()
		if _, err := mem.Put(t.Context(), store.Head{}, []store.Op{
			{Key: "a/001", Value: []byte("later"), Prev: store.Any}, {Key: "a/002", Prev: store.Any}, {Key: "a/new", Value: []byte("new")},
		}); err != nil {
			t.Fatal(err)
		}
		gate.Open()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		want := whole(3)
		want["a/001"], want["a/new"] = "later!", "new!"
		delete(want, "a/002")
		if d := cmp.Diff(want, contents(t, mem)); d != "" {
			t.Error(d)
		}
	})
}

// TestAnyFault has calls fail anywhere, with and without effect, and starts
// again until it is done.
func TestAnyFault(t *testing.T) {
	faults := map[storetest.Method]error{
		storetest.Get: storetest.ErrInjected, storetest.Load: store.ErrCompacted, storetest.Commit: store.ErrConflict, storetest.Put: store.ErrConflict,
	}
	rapid.Check(t, func(rt *rapid.T) {
		each := rapid.IntRange(0, 40).Draw(rt, "records")
		mem := filled(t, each)
		faulty := storetest.NewFaulty(mem)
		for range rapid.IntRange(0, 8).Draw(rt, "faults") {
			m := rapid.SampledFrom(slices.Sorted(maps.Keys(faults))).Draw(rt, "method")
			for range rapid.IntRange(0, 4).Draw(rt, "after") {
				faulty.LoseNext(m, nil) // is no fault
			}
			switch rapid.IntRange(0, 2).Draw(rt, "how") {
			case 0:
				faulty.LoseNext(m, storetest.ErrInjected)
			case 1:
				faulty.FailNext(m, storetest.ErrInjected)
			case 2:
				faulty.FailNext(m, faults[m])
			}
		}
		var err error
		synctest.Test(t, func(t *testing.T) {
			for range 20 {
				if err = migration(faulty, steps).Run(t.Context()); !errors.Is(err, storetest.ErrInjected) {
					return
				}
			}
		})
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(whole(each), contents(t, mem)); d != "" {
			rt.Fatal(d)
		}
		if got := says(t, mem); got != last {
			rt.Fatalf("the store says %s", got)
		}
	})
}

// TestEngine rewrites more than a batch holds in the store that controllers
// use.
func TestEngine(t *testing.T) {
	st, err := etcdstore.Open(t.Context(), etcdstore.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	records := st.Quick().Ops + 1000
	for from := 0; from < records; from += 1000 {
		var ops []store.Op
		for i := from; i < min(records, from+1000); i++ {
			ops = append(ops, store.Op{Key: fmt.Sprintf("a/%06d", i), Value: fmt.Append(nil, i)})
		}
		if _, err := st.Put(t.Context(), store.Head{}, ops); err != nil {
			t.Fatal(err)
		}
	}
	if err := migration(st, steps).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := contents(t, st)
	if len(all) != records || says(t, st) != last {
		t.Errorf("there are %d records, and the store says %s", len(all), says(t, st))
	}
	for key, value := range all {
		if !strings.HasSuffix(value, "!") {
			t.Fatalf("%s is %q", key, value)
		}
	}
}

// TestSteps has every step name a release that there is.
func TestSteps(t *testing.T) {
	this := semver.MustParse(build.Version)
	for i, s := range format.Steps(nil) {
		if r, err := semver.NewVersion(s.Release); err != nil || r.GreaterThan(this) {
			t.Errorf("format %d is said to be read by %s and newer; this is %s: %v", i+2, s.Release, this, err)
		}
	}
	if format.Current != 1+len(format.Steps(nil)) {
		t.Errorf("the format of this version is %d", format.Current)
	}
}
