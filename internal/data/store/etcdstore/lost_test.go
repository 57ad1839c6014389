package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// leaderGone has the leader be gone while others write, in every way there is and at
// two members at once. Every write is answered, none is in doubt, and none is there
// twice. It returns what brings the one back.
func leaderGone(t *testing.T, a *team, all []*member) (back func(testing.TB)) {
	lead := func() int {
		id := all[0].etcd.Server.Lead()
		for i, m := range all {
			if uint64(m.etcd.Server.MemberID()) == id {
				return i
			}
		}
		return -1
	}
	until(t, "have a leader", func() error {
		if lead() < 0 {
			return errors.New("there is none")
		}
		return nil
	})
	gone := lead()
	others := []*member{all[(gone+1)%len(all)], all[(gone+2)%len(all)]}
	stop := make(chan struct{})
	var works []*work
	for name, write := range writes {
		w := &work{name: name, write: write, from: store.Rev(others[0].etcd.Server.KV().Rev()), ended: make(chan struct{})}
		works = append(works, w)
		w.begin(t, others, stop)
	}
	cfg := all[gone].etcd.Config()
	<-time.After(100 * time.Millisecond)
	all[gone].log.closing.Store(true)
	all[gone].etcd.Server.HardStop()
	until(t, "write again", func() error {
		if id := others[0].etcd.Server.Lead(); id == 0 || id == uint64(all[gone].etcd.Server.MemberID()) {
			return errors.New("there is no other leader")
		}
		return nil
	})
	<-time.After(500 * time.Millisecond)
	close(stop)
	for _, w := range works {
		w.check(t, others[1])
	}
	if err := all[gone].close(); err != nil {
		t.Fatal(err)
	}
	name := cfg.Name
	p := &Peers{Name: name, Listen: cfg.AdvertisePeerUrls[0].Host, Advertise: cfg.AdvertisePeerUrls[0].Host, CA: a.file("ca.crt"), Cert: a.file(name + ".crt"), Key: a.file(name + ".key")}
	return func(t testing.TB) { all[gone] = startPeer(t, cfg.Dir, p) }
}

// writes are the ways to write something that nobody has written, after a commit.
var writes = map[string]func(ctx context.Context, s *Store, after store.Rev, key string) (store.Written, error){
	"commit": func(ctx context.Context, s *Store, after store.Rev, key string) (store.Written, error) {
		return s.Commit(ctx, after, store.Head{}, []store.Op{{Key: key, Value: []byte("x"), Prev: store.Any}})
	},
	"put": func(ctx context.Context, s *Store, _ store.Rev, key string) (store.Written, error) {
		return s.Put(ctx, store.Head{}, []store.Op{{Key: key, Value: []byte("x")}})
	},
	"unguarded": func(ctx context.Context, s *Store, _ store.Rev, key string) (store.Written, error) {
		return s.Put(ctx, store.Head{}, []store.Op{{Key: key, Value: []byte("x"), Prev: store.Any}})
	},
	"staged": func(ctx context.Context, s *Store, after store.Rev, key string) (store.Written, error) {
		var ops []store.Op
		for i := range 9 {
			ops = append(ops, store.Op{Key: fmt.Sprint(key, ".", i), Value: []byte("x")})
		}
		return s.Commit(ctx, after, store.Head{}, ops)
	},
}

// work is one way to write, by two at once.
type work struct {
	name  string
	write func(context.Context, *Store, store.Rev, string) (store.Written, error)
	from  store.Rev // what was before
	done  atomic.Int64
	ended chan struct{}
}

func (w *work) open(m *member) *Store {
	s := m.handle(w.name, func() error { return nil })
	s.quick = store.Limits{Ops: 4, Bytes: 64 << 10}
	return s
}

// begin has everybody write until they are stopped. Who comes too late tries again.
func (w *work) begin(t *testing.T, by []*member, stop chan struct{}) {
	var all sync.WaitGroup
	for i, m := range by {
		all.Go(func() {
			s := w.open(m)
			defer s.Close()
			for n, after := 0, store.Rev(0); ; {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				at, err := w.write(ctx, s, after, fmt.Sprintf("k/%d-%06d", i, n))
				cancel()
				switch {
				case errors.Is(err, store.ErrConflict):
					resp, err := s.patientGet(t.Context(), s.keys.head)
					if err != nil {
						t.Errorf("%s: %v", w.name, err)
						return
					}
					if after = 0; len(resp.Kvs) > 0 {
						after = store.Rev(resp.Kvs[0].ModRevision)
					}
				case err != nil:
					t.Errorf("%s, write %d: %v", w.name, n, err)
					return
				default:
					after = at.Rev
					w.done.Add(1)
					n++
				}
			}
		})
	}
	go func() { all.Wait(); close(w.ended) }()
}

// check counts what was written.
func (w *work) check(t *testing.T, by *member) {
	t.Helper()
	<-w.ended
	s := w.open(by)
	defer s.Close()
	last, err := s.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batches, keys, enough := int64(0), map[string]bool{}, errors.New("enough")
	err = s.Follow(t.Context(), w.from, func(b store.Batch) error {
		batches++
		for _, op := range b.Ops {
			if keys[op.Key] {
				t.Errorf("%s: %s was written twice", w.name, op.Key)
			}
			keys[op.Key] = true
		}
		if b.Rev == last {
			return enough
		}
		return nil
	})
	if done := w.done.Load(); !errors.Is(err, enough) || batches != done || done == 0 {
		t.Errorf("%s: %d writes were acknowledged, %d are there: %v", w.name, done, batches, err)
	}
}

// fenceMoved has a write arrive that was taken for lost.
func fenceMoved(t *testing.T, all []*member) {
	s := all[0].handle("fence", func() error { return nil })
	defer s.Close()
	put := func() {
		t.Helper()
		if _, err := s.Put(t.Context(), store.Head{}, set("k/1", 10)); err != nil {
			t.Error(err)
		}
	}
	put()
	late := s.client.Txn(t.Context()).If(s.fenced()...).Then(clientv3.OpPut(s.keys.record("k/late"), "x"))
	if err := s.moveFence(t.Context()); err != nil {
		t.Fatal(err)
	}
	if resp, err := late.Commit(); err != nil || resp.Succeeded {
		t.Errorf("what was given up is written: %+v, %v", resp, err)
	}
	put()
	// Another handle of this member does not know of it.
	other := all[0].handle("fence", func() error { return nil })
	defer other.Close()
	if _, err := other.Put(t.Context(), store.Head{}, set("k/2", 10)); err != nil {
		t.Error(err)
	}
	// Nobody knows what became of a write that was given up: the next one sees to it
	// that it does not happen later.
	was := s.fence.rev.Load()
	s.fence.doubt.Store(true)
	put()
	if s.fence.rev.Load() == was || s.fence.doubt.Load() {
		t.Error("a doubt stays")
	}
}
