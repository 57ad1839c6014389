package etcdstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"pgregory.net/rapid"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
)

// narrow has transactions hold so few ops that almost every batch is staged.
func narrow(fresh func(*testing.T) storetest.Opener) func(*testing.T) storetest.Opener {
	return func(t *testing.T) storetest.Opener {
		o := fresh(t)
		open := o.Open
		o.Open = func(t testing.TB) store.Store {
			s := open(t).(*Store)
			s.quick.Ops = 1
			return s
		}
		return o
	}
}

func TestContractStaged(t *testing.T) {
	storetest.Run(t, narrow(embedded(startTest(t, testLogger(t), asIs))))
}

func TestCompareStaged(t *testing.T) {
	storetest.Compare(t, narrow(embedded(startTest(t, testLogger(t), asIs))))
}

// TestImpatient has controllers write large batches at once, each of which sees
// to those of the others without waiting for them.
func TestImpatient(t *testing.T) {
	const controllers, each = 3, 8
	s := &site{t, startTest(t, testLogger(t), asIs), "impatient"}
	var wg sync.WaitGroup
	for c := range controllers {
		h := s.controller()
		wg.Go(func() {
			for n := range each {
				var ops []store.Op
				for i := range 5 {
					ops = append(ops, store.Op{Key: fmt.Sprint(i, "/", (c+n)%4), Value: fmt.Append(nil, c, n), Prev: store.Any})
				}
				err := store.ErrConflict
				for errors.Is(err, store.ErrConflict) {
					_, mark := contents(t, h)
					if n%3 == 0 {
						_, err = h.Put(t.Context(), store.Head{}, ops)
					} else {
						_, err = h.Commit(t.Context(), mark.Head, store.Head{}, ops)
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	last := s.controller()
	_, err := last.Put(t.Context(), store.Head{}, []store.Op{{Key: "end", Value: []byte("v")}})
	must(t, err)
	compare := s.history()
	compare()
	batches := 0
	for range <-s.follow() {
		batches++
	}
	if want := controllers*each + 1; batches != want {
		t.Errorf("there are %d batches, want %d", batches, want)
	}
}

// decided returns a site on which a batch of sets and a delete has happened, of
// which one part is carried out, and what there is then.
func decided(t *testing.T) (*site, map[string]store.Record) {
	t.Helper()
	s := &site{t, startTest(t, testLogger(t), asIs), ""}
	first, writer := s.controller(), s.controller()
	_, err := first.Commit(t.Context(), 0, by("first"), []store.Op{{Key: "gone", Value: []byte("v")}, {Key: "kept", Value: []byte("v")}})
	must(t, err)
	old, mark := contents(t, first)
	ops := []store.Op{{Key: "gone", Prev: store.Any}}
	for i := range 9 {
		ops = append(ops, store.Op{Key: fmt.Sprint("new/", i), Value: []byte("new"), Prev: store.Any})
	}
	b := batch{closes: s.keys().head, head: store.Head{Prev: mark.Head, Ops: len(ops)}, ops: ops}
	parts := cut(ops, writer.quick)
	h := &hold{staged: staged{ID: "abcdefghijklmnopqrstuvwxyz", Parts: len(parts)}}
	for _, p := range parts {
		_, err := writer.client.Put(t.Context(), s.keys().part(h.ID, p.n), string(encodePart(p.ops)))
		must(t, err)
	}
	must(t, writer.take(t.Context(), b, h))
	at, err := writer.decide(t.Context(), b, h)
	must(t, err)
	must(t, writer.carry(t.Context(), h, parts[1]))
	return s, after(old, at.Rev, ops)
}

func (s *site) keys() keyspace { return newKeyspace(s.prefix) }

// TestSnapshotInBetween takes a snapshot while a batch is being carried out.
func TestSnapshotInBetween(t *testing.T) {
	s, want := decided(t)
	path := filepath.Join(t.TempDir(), "snapshot")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	must(t, s.controller().Snapshot(t.Context(), f))
	for key, rec := range map[string]store.Record{"gone": {}, "kept": want["kept"], "new/0": want["new/0"], "new/2": want["new/2"], "new/8": want["new/8"]} {
		mark, values, err := Inspect(t.Context(), path, "", key)
		value := values[key]
		if err != nil || !bytes.Equal(value, rec.Value) || mark.Head != want["new/0"].Rev {
			t.Errorf("%s is %q at %+v, %v; want %q at %d", key, value, mark, err, rec.Value, want["new/0"].Rev)
		}
	}
	data, err := os.ReadFile(path)
	must(t, err)
	restored := restorer("")(t, bytes.NewReader(data)).(*Store)
	defer restored.Close()
	restored.patience = 0
	s.same("restored", first(contents(t, restored)), want)
	_, err = restored.Put(t.Context(), store.Head{}, []store.Op{{Key: "new/8", Value: []byte("again"), Prev: want["new/8"].Rev}})
	must(t, err)
}

func first[A, B any](a A, _ B) A { return a }

// TestHistoryInBetween forgets history while a batch is being carried out.
func TestHistoryInBetween(t *testing.T) {
	s, want := decided(t)
	h := s.controller()
	_, mark := contents(t, h)
	must(t, h.Compact(t.Context(), mark.Rev))
	s.same("compacted", first(contents(t, s.controller())), want)
	at, err := h.Put(t.Context(), store.Head{}, []store.Op{{Key: "end", Value: []byte("v")}})
	must(t, err)
	var seen []store.Rev
	err = s.controller().Follow(t.Context(), mark.Rev, func(b store.Batch) error {
		seen = append(seen, b.Rev)
		return errCut
	})
	if err != errCut || seen[0] != at.Rev {
		t.Errorf("followed %v, %v; want %d", seen, err, at.Rev)
	}
	if err := h.Follow(t.Context(), mark.Head-1, func(store.Batch) error { return nil }); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("followed from before with %v", err)
	}
}

// TestServerTakesLess has a server whose transactions hold less than was
// expected of it. What has happened there is carried out all the same.
func TestServerTakesLess(t *testing.T) {
	m := startTest(t, testLogger(t), listening)
	s, err := Dial(t.Context(), Options{
		Endpoints: []string{m.address()}, Limits: store.Limits{Ops: 1000}, Logger: testLogger(t),
	})
	must(t, err)
	defer s.Close()
	var ops []store.Op
	for i := range 2500 {
		ops = append(ops, store.Op{Key: fmt.Sprint("k/", i), Value: []byte("v"), Prev: store.Any})
	}
	_, err = s.Commit(t.Context(), 0, store.Head{}, ops)
	must(t, err)
	if held, err := s.held(t.Context()); held != nil || err != nil {
		t.Errorf("%+v holds the store: %v", held, err)
	}
	if all, _ := contents(t, s); len(all) != len(ops) {
		t.Errorf("there are %d records", len(all))
	}
	// A part that the server refuses is refused in time.
	s.quick.Bytes = 4 << 20
	large := []store.Op{{Key: "x", Value: make([]byte, 1500<<10)}, {Key: "y", Value: make([]byte, 3<<20)}}
	if _, err := s.Put(t.Context(), store.Head{}, large); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("more than the server takes: %v", err)
	}
	left, err := s.client.Get(t.Context(), s.keys.staging, clientv3.WithPrefix())
	if err != nil || left.Count > 0 {
		t.Errorf("%d parts are left: %v", left.Count, err)
	}
}

// TestManyGuards has more guards than a transaction can hold, as each of a record
// that a large batch wrote takes two.
func TestManyGuards(t *testing.T) {
	s, want := decided(t)
	h := s.controller()
	h.quick.Ops = 9
	var ops []store.Op
	for i := range 9 {
		key := fmt.Sprint("new/", i)
		ops = append(ops, store.Op{Key: key, Value: []byte("again"), Prev: want[key].Rev})
	}
	stale := append(ops[:8:8], store.Op{Key: "new/8", Prev: want["kept"].Rev})
	if _, err := h.Put(t.Context(), store.Head{}, stale); !errors.Is(err, store.ErrConflict) {
		t.Errorf("one guard of nine fails: %v", err)
	}
	at, err := h.Put(t.Context(), store.Head{}, ops)
	must(t, err)
	s.same("changed", first(contents(t, h)), after(want, at.Rev, ops))
}

// TestPart cuts and encodes random ops and gets them back.
func TestPart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most := store.Limits{Ops: rapid.IntRange(1, 5).Draw(rt, "ops"), Bytes: rapid.IntRange(1, 60).Draw(rt, "bytes")}
		var ops, got []store.Op
		for range rapid.IntRange(1, 20).Draw(rt, "n") {
			op := store.Op{Key: rapid.String().Draw(rt, "key")}
			if rapid.Bool().Draw(rt, "set") {
				op.Value = rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(rt, "value")
			}
			ops = append(ops, op)
		}
		for i, p := range cut(ops, most) {
			size := 0
			for _, op := range p.ops {
				size += len(op.Key) + len(op.Value)
			}
			if p.n != i || len(p.ops) > most.Ops || size > most.Bytes && len(p.ops) > 1 {
				rt.Fatalf("part %d is %d, of %d ops and %d bytes", i, p.n, len(p.ops), size)
			}
			back, err := decodePart(encodePart(p.ops))
			if err != nil {
				rt.Fatal(err)
			}
			got = append(got, back...)
		}
		if d := cmp.Diff(ops, got); d != "" {
			rt.Fatal(d)
		}
	})
}

func FuzzPart(f *testing.F) {
	f.Add([]byte{})
	f.Add(encodePart([]store.Op{{Key: "k/1", Value: []byte("v")}, {Key: "k/2"}, {Key: "k/3", Value: []byte{}}})[ballast:])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		ops, err := decodePart(append(make([]byte, ballast), data...))
		if err != nil {
			return
		}
		again, err := decodePart(encodePart(ops))
		if d := cmp.Diff(ops, again); err != nil || d != "" {
			t.Errorf("%v\n%s", err, d)
		}
	})
}

// TestGuardsUnderHold changes a record after a batch on it was staged.
func TestGuardsUnderHold(t *testing.T) {
	s := &site{t, startTest(t, testLogger(t), asIs), ""}
	h := s.controller()
	at, err := h.Put(t.Context(), store.Head{}, []store.Op{{Key: "s/1", Value: []byte("v")}})
	must(t, err)
	b := batch{closes: h.keys.put, head: store.Head{Ops: 1}, ops: []store.Op{{Key: "s/1", Value: []byte("lost"), Prev: at.Rev}}}
	must(t, h.verify(t.Context(), b))
	at, err = h.Put(t.Context(), store.Head{}, []store.Op{{Key: "s/1", Value: []byte("w"), Prev: at.Rev}})
	must(t, err)
	if _, err := h.attempt(t.Context(), b, cut(b.ops, h.quick)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a batch on what has changed: %v", err)
	}
	held, err := h.held(t.Context())
	if now, _ := contents(t, h); err != nil || held != nil || now["s/1"].Rev != at.Rev {
		t.Errorf("there is %v, held by %v: %v", now, held, err)
	}
}

// TestEndedTwice has a controller come late to the end of a batch, when another
// is under way.
func TestEndedTwice(t *testing.T) {
	s, want := decided(t)
	h := s.controller()
	old, err := h.held(t.Context())
	must(t, err)
	must(t, h.settle(t.Context()))
	next := &hold{staged: staged{ID: "next"}}
	must(t, h.take(t.Context(), batch{}, next))
	must(t, h.carryOut(t.Context(), old, int64(want["new/0"].Rev), []part{{1, []store.Op{{Key: "new/0", Value: []byte("late")}}}}))
	must(t, h.putAside(t.Context(), old))
	if held, err := h.held(t.Context()); err != nil || held == nil || held.ID != "next" {
		t.Errorf("%v holds the store: %v", held, err)
	}
	s.same("late", first(contents(t, h)), want)
}

// TestNoRoom has a large batch for which there is room only once.
func TestNoRoom(t *testing.T) {
	m := startTest(t, silent, func(c *embed.Config) { c.QuotaBackendBytes = 16 << 20 })
	h := m.handle("", func() error { return nil })
	defer h.Close()
	h.quick = store.Limits{Ops: 2, Bytes: 1 << 20}
	for n, fits := range map[int]bool{20: false, 8: true} {
		var ops []store.Op
		for i := range n {
			ops = append(ops, store.Op{Key: fmt.Sprint(n, "/", i), Value: make([]byte, 512<<10), Prev: store.Any})
		}
		_, err := h.Put(t.Context(), store.Head{}, ops)
		if fits && err != nil || !fits && !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("%d records of half a megabyte where there is room for 32: %v", n, err)
		}
	}
	if now, _ := contents(t, h); len(now) != 8 {
		t.Errorf("there are %d records", len(now))
	}
	_, err := h.Put(t.Context(), store.Head{}, set("k/1", 10))
	must(t, err)
}
