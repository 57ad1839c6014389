package etcdstore

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"netkeep.internal/internal/data/store"
)

// sender makes the events of batches as a watch would send them.
type sender struct {
	rev, head, puts int64
	batches         []store.Batch
	staged          map[string][]store.Op
}

func putEvent(key, value string, rev, version int64) *clientv3.Event {
	return &clientv3.Event{
		Type: clientv3.EventTypePut,
		Kv:   &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: rev, Version: version},
	}
}

func deleteEvent(key string, rev int64) *clientv3.Event {
	return &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: rev}}
}

func text(h store.Head) string {
	value, err := json.Marshal(h)
	if err != nil {
		panic(err)
	}
	return string(value)
}

func (s *sender) send(commit bool, ops ...store.Op) (events []*clientv3.Event) {
	s.rev += 2
	batch := store.Batch{Rev: store.Rev(s.rev), Commit: commit, Ops: ops}
	batch.Head = store.Head{Ops: len(ops), Time: time.Unix(s.rev, 0).UTC(), Writes: by("x").Writes}
	for _, op := range ops {
		if op.Value == nil {
			events = append(events, deleteEvent("r/"+op.Key, s.rev))
		} else {
			events = append(events, putEvent("r/"+op.Key, string(op.Value), s.rev, 1))
		}
	}
	if commit {
		batch.Head.Prev = store.Rev(s.head)
		events = append(events, putEvent("head", text(batch.Head), s.rev, 1))
		s.head = s.rev
	} else {
		s.puts++
		events = append(events, putEvent("put", text(batch.Head), s.rev, s.puts))
	}
	s.batches = append(s.batches, batch)
	return events
}

// stage is send for ops that are elsewhere, and carried out a part at a time.
func (s *sender) stage(commit bool, ops ...store.Op) (events []*clientv3.Event) {
	bare := s.send(commit, ops...)
	batch := s.batches[len(s.batches)-1]
	id := fmt.Sprint(batch.Rev)
	value, err := closing{Head: batch.Head, Staged: &staged{ID: id, Parts: len(ops)}}.text()
	if err != nil {
		panic(err)
	}
	if s.staged == nil {
		s.staged = map[string][]store.Op{}
	}
	s.staged[id] = ops
	closes := bare[len(bare)-1].Kv
	closes.Value = []byte(value)
	events = append(events, putEvent("hold", "{}", s.rev-1, 1), putEvent("hold", "{}", s.rev, 2), bare[len(bare)-1])
	for _, ev := range bare[:len(ops)] {
		s.rev += 2
		ev.Kv.ModRevision = s.rev
		end := putEvent("hold", "{}", s.rev, 3)
		end.Kv.CreateRevision = int64(batch.Rev) - 1
		events = append(events, ev, end)
	}
	s.rev += 2
	return append(events, putEvent("large/x", "", s.rev, 1), deleteEvent("hold", s.rev))
}

// feedAll gives events to a new feed.
func feedAll(events []*clientv3.Event, from ...*sender) (batches []store.Batch, err error) {
	f := &feed{keys: newKeyspace(""), tail: new(tail), staged: func(rev int64, st staged) ([]store.Op, error) {
		return from[0].staged[st.ID], nil
	}}
	for _, ev := range events {
		b, err := f.take(ev)
		if err != nil {
			return batches, err
		}
		if b != nil {
			batches = append(batches, *b)
		}
	}
	return batches, nil
}

func TestFeedRefuses(t *testing.T) {
	one := store.Op{Key: "k/1", Value: []byte("one")}
	gone := store.Op{Key: "k/2"}
	tests := map[string]func(s *sender) []*clientv3.Event{
		"a commit without an op":         func(s *sender) []*clientv3.Event { return s.send(true, one, gone)[1:] },
		"a commit without a del":         func(s *sender) []*clientv3.Event { e := s.send(true, one, gone); return append(e[:1], e[2]) },
		"a put without an op":            func(s *sender) []*clientv3.Event { return s.send(false, one, gone)[1:] },
		"a put of which the end is left": func(s *sender) []*clientv3.Event { return s.send(false, gone)[1:] },
		"a batch without its end": func(s *sender) []*clientv3.Event {
			e := s.send(true, one, gone)
			return append(e[:2], s.send(false, one)...)
		},
		"what is carried out without an end": func(s *sender) []*clientv3.Event {
			e := s.stage(true, one)
			return append(e[3:4], s.send(true, one)...)
		},
		"what is carried out alone": func(s *sender) []*clientv3.Event { return s.stage(true, one)[3:] },
		"a commit left out":         func(s *sender) []*clientv3.Event { s.send(true, one); return s.send(true, one) },
		"a put left out":            func(s *sender) []*clientv3.Event { s.send(false, one); return s.send(false, one) },
		"an op twice":               func(s *sender) []*clientv3.Event { e := s.send(true, one); return append(e[:1:1], e...) },
		"a deleted head":            func(s *sender) []*clientv3.Event { return []*clientv3.Event{deleteEvent("head", 9)} },
		"a deleted put":             func(s *sender) []*clientv3.Event { return []*clientv3.Event{deleteEvent("put", 9)} },
		"a put with a head that is none": func(s *sender) []*clientv3.Event {
			return []*clientv3.Event{putEvent("put", "many", 9, 1)}
		},
		"a write by somebody else": func(s *sender) []*clientv3.Event {
			return append([]*clientv3.Event{putEvent("r/k/1", "v", 1, 1)}, s.send(true, one)...)
		},
	}
	for name, events := range tests {
		t.Run(name, func(t *testing.T) {
			batches, err := feedAll(events(&sender{}))
			if !errors.Is(err, store.ErrGap) || len(batches) != 0 {
				t.Errorf("got %v and %v, want ErrGap", batches, err)
			}
		})
	}
}

func TestFeedRefusesBadHead(t *testing.T) {
	if _, err := feedAll([]*clientv3.Event{putEvent("head", "{", 9, 1)}); err == nil {
		t.Error("a head that is not JSON passed")
	}
}

// TestFeedOfOldBatches reads heads as older versions wrote them.
func TestFeedOfOldBatches(t *testing.T) {
	got, err := feedAll([]*clientv3.Event{
		putEvent("r/k/1", "v", 5, 1), putEvent("r/k/2", "v", 5, 1),
		putEvent("head", `{"prev":0,"ops":2,"time":"2024-01-02T03:04:05.000006Z","author":"identity:x,system","reason":"why"}`, 5, 1),
		putEvent("r/s/1", "v", 7, 1),
		putEvent("put", "1", 7, 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	v := []byte("v")
	want := []store.Batch{
		{Rev: 5, Commit: true, Ops: []store.Op{{Key: "k/1", Value: v}, {Key: "k/2", Value: v}},
			Head: store.Head{Ops: 2, Time: time.Date(2024, 1, 2, 3, 4, 5, 6000, time.UTC)}},
		{Rev: 7, Head: store.Head{Ops: 1}, Ops: []store.Op{{Key: "s/1", Value: v}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestFeed sends random batches, some of them again, and then leaves out one
// event.
func TestFeed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &sender{}
		var events []*clientv3.Event
		for range rapid.IntRange(1, 6).Draw(rt, "batches") {
			var ops []store.Op
			for i := range rapid.IntRange(1, 3).Draw(rt, "ops") {
				op := store.Op{Key: fmt.Sprintf("k/%d", i)}
				if rapid.Bool().Draw(rt, "set") {
					op.Value = rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(rt, "value")
				}
				ops = append(ops, op)
			}
			send := s.send
			if rapid.IntRange(0, 2).Draw(rt, "stage") == 0 {
				send = s.stage
			}
			events = append(events, send(rapid.Bool().Draw(rt, "commit"), ops...)...)
		}
		repeated := events
		if from := rapid.IntRange(0, len(events)).Draw(rt, "repeat"); from < len(events) {
			repeated = append(events[:len(events):len(events)], events[from:]...)
		}
		foreign := putEvent("m/of another", "v", events[0].Kv.ModRevision, 1)
		got, err := feedAll(append([]*clientv3.Event{foreign}, repeated...), s)
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(s.batches, got); d != "" {
			rt.Fatal(d)
		}

		lost := rapid.IntRange(0, len(events)-1).Draw(rt, "lost")
		if k := string(events[lost].Kv.Key); k == "hold" || k == "large/x" || k[0] == 'r' && carried(s, events[lost]) {
			return // it tells nothing that another does not
		}
		got, err = feedAll(append(events[:lost:lost], events[lost+1:]...), s)
		if err != nil && !errors.Is(err, store.ErrGap) {
			rt.Fatal(err)
		}
		if err == nil && lost < len(events)-1 {
			rt.Fatalf("nothing noticed without event %d of %d", lost, len(events))
		}
		if d := cmp.Diff(s.batches[:len(got)], got); len(got) > 0 && d != "" {
			rt.Fatal(d)
		}
	})
}

// carried reports whether an event carries out what was staged.
func carried(s *sender, ev *clientv3.Event) bool {
	return !slices.ContainsFunc(s.batches, func(b store.Batch) bool { return int64(b.Rev) == ev.Kv.ModRevision })
}

func TestNextLimit(t *testing.T) {
	tests := []struct {
		limit   int64
		records int
		size    int // of each
		want    int64
	}{
		{256, 256, 100, 1024},         // small records: grow, with care
		{8192, 8192, 900, pageMost},   // never beyond
		{64, 64, 1 << 20, 15},         // large ones: shrink
		{4, 4, pageBytes, 1},          // at least one
		{256, 256, 0, 1024},           // no weight at all
		{4096, 4096, 32<<10 - 1, 512}, // what fits
	}
	for _, tt := range tests {
		kv := &mvccpb.KeyValue{Value: make([]byte, tt.size)}
		if got := nextLimit(tt.limit, slices.Repeat([]*mvccpb.KeyValue{kv}, tt.records)); got != tt.want {
			t.Errorf("nextLimit(%d, %d of %d) = %d, want %d", tt.limit, tt.records, tt.size, got, tt.want)
		}
	}
}

// TestPrefixes has networks share a member, with prefixes around our own keys.
func TestPrefixes(t *testing.T) {
	m := startTest(t, testLogger(t), asIs)
	stores := make(map[string]*Store)
	var last store.Written
	for _, prefix := range []string{"", "a", "net", "net2/", "z"} {
		s := m.handle(prefix, func() error { return nil })
		defer s.Close()
		stores[prefix] = s
		var err error
		if _, err = s.Commit(t.Context(), 0, store.Head{}, []store.Op{{Key: "k/1", Value: []byte(prefix)}}); err == nil {
			last, err = s.Put(t.Context(), store.Head{}, []store.Op{{Key: "s/1", Value: []byte(prefix)}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for prefix, s := range stores {
		n := 0
		_, err := s.Load(t.Context(), func(r store.Record) error {
			n++
			if !bytes.Equal(r.Value, []byte(prefix)) {
				t.Errorf("%q has a record of %q", prefix, r.Value)
			}
			return nil
		})
		if err != nil || n != 2 {
			t.Errorf("%q has %d records, %v", prefix, n, err)
		}
		end, err := s.Put(t.Context(), store.Head{}, []store.Op{{Key: "s/2", Value: []byte(prefix)}})
		if err != nil || end.Rev <= last.Rev {
			t.Fatalf("put %d, %v", end.Rev, err)
		}
		batches := 0
		enough := errors.New("enough")
		err = s.Follow(t.Context(), 0, func(b store.Batch) error {
			batches++
			if b.Rev == end.Rev {
				return enough
			}
			return nil
		})
		if err != enough || batches != 3 {
			t.Errorf("%q has %d batches, %v", prefix, batches, err)
		}
	}
}
