package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// cutter is a connection that is cut after so many requests.
type cutter struct {
	clientv3.KV
	left atomic.Int64
	lose bool // the last request gets through, and its answer does not
}

var errCut = errors.New("cut")

// pass makes a request.
func pass[T any](c *cutter, do func() (T, error)) (T, error) {
	var none T
	left := c.left.Add(-1)
	if left < 0 && (left < -1 || !c.lose) {
		return none, errCut
	}
	answer, err := do()
	if left < 0 {
		return none, errCut
	}
	return answer, err
}

func (c *cutter) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return pass(c, func() (*clientv3.GetResponse, error) { return c.KV.Get(ctx, key, opts...) })
}

func (c *cutter) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	return pass(c, func() (*clientv3.PutResponse, error) { return c.KV.Put(ctx, key, value, opts...) })
}

func (c *cutter) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	return pass(c, func() (clientv3.OpResponse, error) { return c.KV.Do(ctx, op) })
}

func (c *cutter) Txn(ctx context.Context) clientv3.Txn { return &cutTxn{c.KV.Txn(ctx), c} }

type cutTxn struct {
	txn clientv3.Txn
	c   *cutter
}

func (t *cutTxn) If(cs ...clientv3.Cmp) clientv3.Txn   { t.txn = t.txn.If(cs...); return t }
func (t *cutTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.txn = t.txn.Then(ops...); return t }
func (t *cutTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.txn = t.txn.Else(ops...); return t }
func (t *cutTxn) Commit() (*clientv3.TxnResponse, error) {
	return pass(t.c, t.txn.Commit)
}

// contents is all that a store holds, and where it is.
func contents(t testing.TB, s *Store) (map[string]store.Record, store.Mark) {
	t.Helper()
	all, last := map[string]store.Record{}, ""
	mark, err := s.Load(t.Context(), func(r store.Record) error {
		if r.Key <= last {
			t.Errorf("%s comes after %s", r.Key, last)
		}
		all[r.Key], last = r, r.Key
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, mark
}

// after is what records are after a batch.
func after(records map[string]store.Record, rev store.Rev, ops []store.Op) map[string]store.Record {
	records = maps.Clone(records)
	for _, op := range ops {
		if delete(records, op.Key); op.Value != nil {
			records[op.Key] = store.Record{Key: op.Key, Value: op.Value, Rev: rev}
		}
	}
	return records
}

// site is a store beneath a prefix of its own, with several controllers.
type site struct {
	t      testing.TB
	member *member
	prefix string
}

var sites atomic.Int64

// controller opens one more handle on the site, for which transactions are
// small, and which does not wait for others.
func (s *site) controller() *Store {
	h := s.member.handle(s.prefix, func() error { return nil })
	h.quick.Ops, h.patience = 2, 0
	s.t.Cleanup(func() { h.Close() })
	return h
}

// follow returns what was ever written, up to a batch that sets end.
func (s *site) follow() <-chan []store.Batch {
	h, all := s.controller(), make(chan []store.Batch, 1)
	go func() {
		var batches []store.Batch
		defer func() { all <- batches }()
		err := h.Follow(s.t.Context(), 0, func(b store.Batch) error {
			if batches = append(batches, b); b.Ops[0].Key == "end" {
				return errCut
			}
			return nil
		})
		if err != errCut {
			s.t.Errorf("the follower ended with %v", err)
		}
	}()
	return all
}

// TestCutAtEveryRequest ends a controller at each of the requests that it writes
// a large batch with. For all others the batch has happened or it has not, and
// the next write goes through.
func TestCutAtEveryRequest(t *testing.T) {
	m := startTest(t, testLogger(t), asIs)
	for _, commit := range []bool{true, false} {
		for _, lose := range []bool{true, false} {
			t.Run(fmt.Sprintf("commit %v lose %v", commit, lose), func(t *testing.T) {
				var compare []func()
				for n, whole := int64(0), false; !whole; n++ {
					s := &site{t, m, fmt.Sprintf("cut%d after %d", sites.Add(1), n)}
					whole = s.cutAfter(n, commit, lose)
					compare = append(compare, s.history())
				}
				for _, same := range compare { // at the end: to follow from before takes a moment
					same()
				}
				if len(compare) < 20 {
					t.Errorf("it took only %d requests", len(compare))
				}
			})
		}
	}
}

// cutAfter cuts a writer after n requests and reports whether it needed no more.
func (s *site) cutAfter(n int64, commit, lose bool) (whole bool) {
	first := s.controller()
	for _, key := range []string{"a", "c", "e", "s/1", "s/2", "z"} {
		_, err := first.Put(s.t.Context(), store.Head{}, []store.Op{{Key: key, Value: []byte("old")}})
		must(s.t, err)
	}
	old, _ := contents(s.t, first)
	writer := s.controller()
	cut := &cutter{KV: writer.client.KV, lose: lose}
	writer.client.KV = cut
	cut.left.Store(n)
	ops := []store.Op{
		{Key: "z", Value: []byte("new"), Prev: store.Any}, {Key: "b", Value: []byte("new"), Prev: store.Any},
		{Key: "c", Prev: store.Any}, {Key: "d", Value: []byte{}, Prev: store.Any},
		{Key: "s/1", Value: []byte("new"), Prev: old["s/1"].Rev}, {Key: "s/2", Prev: old["s/2"].Rev}, {Key: "zz", Value: []byte("new")},
	}
	var at store.Written
	var err error
	if commit {
		at, err = writer.Commit(s.t.Context(), 0, by("writer"), ops)
	} else {
		at, err = writer.Put(s.t.Context(), by("writer"), ops)
	}

	second := s.controller()
	now, mark := contents(s.t, second)
	if rev := now["zz"].Rev; rev != 0 {
		s.same("after the batch", now, after(old, rev, ops))
		if err == nil && rev != at.Rev || commit && mark.Head != rev {
			s.t.Errorf("it was written at %d, %v, and loaded at %d with head %d", at.Rev, err, rev, mark.Head)
		}
	} else if s.same("without the batch", now, old); err == nil || mark.Head != 0 {
		s.t.Errorf("it was said to be written")
	}
	for _, key := range []string{"a", "b", "c", "d", "s/1", "s/2", "zz"} {
		rec, ok, err := second.Get(s.t.Context(), key)
		if want, has := now[key]; err != nil || ok != has || cmp.Diff(want, rec) != "" {
			s.t.Errorf("Get(%s) = %+v, %v, %v; want %+v", key, rec, ok, err, want)
		}
	}
	s.goOn(second, now, mark)
	return cut.left.Load() >= 0
}

// goOn writes what rests on all that was there, and looks that nothing is left.
func (s *site) goOn(h *Store, now map[string]store.Record, mark store.Mark) {
	ctx := s.t.Context()
	// What rests on nothing comes after all the same.
	_, err := h.Put(ctx, by("next"), []store.Op{{Key: "free", Value: []byte("next"), Prev: store.Any}})
	must(s.t, err)
	_, err = h.Put(ctx, by("next"), []store.Op{{Key: "s/1", Value: []byte("next"), Prev: now["s/1"].Rev}})
	must(s.t, err)
	next := []store.Op{{Key: "a", Prev: now["a"].Rev}, {Key: "z", Value: []byte("next"), Prev: now["z"].Rev}, {Key: "y", Value: []byte("next")}}
	at, err := h.Commit(ctx, mark.Head, by("next"), next)
	must(s.t, err)
	_, err = h.Commit(ctx, at.Rev, by("next"), []store.Op{{Key: "y", Value: []byte("last"), Prev: at.Rev}})
	must(s.t, err)
	end, err := h.Put(ctx, by("next"), []store.Op{{Key: "end", Value: []byte("v")}})
	must(s.t, err)
	must(s.t, h.Compact(ctx, 1))
	resp, err := h.client.Get(ctx, h.keys.staging, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	must(s.t, err)
	if held, err := h.held(ctx); err != nil || held != nil || resp.Count > 0 {
		s.t.Errorf("%v holds the store, and %d parts are left: %v", held, resp.Count, err)
	}
	if last, err := h.Last(ctx); err != nil || last != end.Rev {
		s.t.Errorf("the last batch is %d, %v; want %d", last, err, end.Rev)
	}
}

// history compares what can be followed from the beginning with what there is.
func (s *site) history() (compare func()) {
	all, mark := contents(s.t, s.controller())
	followed := s.follow()
	return func() {
		records, head := map[string]store.Record{}, store.Rev(0)
		for _, b := range <-followed {
			records = after(records, b.Rev, b.Ops)
			if b.Commit {
				head = b.Rev
			}
		}
		s.same("followed", records, all)
		if head != mark.Head {
			s.t.Errorf("%s: followed to the head %d, which is %d", s.prefix, head, mark.Head)
		}
	}
}

func (s *site) same(what string, got, want map[string]store.Record) {
	s.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		s.t.Errorf("%s: %s (-want +got):\n%s", s.prefix, what, d)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
