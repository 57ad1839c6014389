package etcdstore

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// span is a staged batch that was carried out: etcd's revisions of its records
// are between these two. Nothing else was written to records meanwhile.
type span struct {
	rev  int64 // of the batch
	done int64 // when the last record was there
}

// spans are those that are known of a store. Each is there for good, as some of
// its records may be.
type spans struct {
	keys keyspace

	mu   sync.Mutex
	list []span
}

// around returns the span that a revision is the first of, or within.
func (sp *spans) around(rev int64) (span, bool) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	i, first := slices.BinarySearchFunc(sp.list, rev, func(s span, rev int64) int { return int(s.rev - rev) })
	switch {
	case first:
		return sp.list[i], true
	case i > 0 && rev <= sp.list[i-1].done:
		return sp.list[i-1], true
	}
	return span{}, false
}

// of is when a record was written that has a revision in etcd.
func (sp *spans) of(rev int64) store.Rev {
	if s, ok := sp.around(rev); ok {
		return store.Rev(s.rev)
	}
	return store.Rev(rev)
}

// at guards the revision of a record. No record has one that is within a span.
func (sp *spans) at(key string, rev store.Rev) []clientv3.Cmp {
	s, ok := sp.around(int64(rev))
	switch {
	case !ok:
		return []clientv3.Cmp{at(key, rev)}
	case int64(rev) > s.rev:
		return []clientv3.Cmp{at(key, -1)}
	}
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(key), ">", s.rev),
		clientv3.Compare(clientv3.ModRevision(key), "<", s.done),
	}
}

// read reads those that are not known yet.
func (sp *spans) read() clientv3.Op {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	next := int64(0)
	if n := len(sp.list); n > 0 {
		next = sp.list[n-1].rev + 1
	}
	return clientv3.OpGet(sp.keys.done(next), clientv3.WithRange(clientv3.GetPrefixRangeEnd(sp.keys.large)))
}

// learn takes over what was read and reports whether anything was new.
func (sp *spans) learn(r *etcdserverpb.ResponseOp) bool { return sp.add(r.GetResponseRange().Kvs) }

func (sp *spans) add(kvs []*mvccpb.KeyValue) (added bool) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	for _, kv := range kvs {
		rev, err := strconv.ParseInt(string(kv.Key[len(sp.keys.large):]), 16, 64)
		if err != nil {
			continue // not ours
		}
		if n := len(sp.list); n == 0 || sp.list[n-1].rev < rev {
			sp.list, added = append(sp.list, span{rev, kv.ModRevision}), true
		}
	}
	return added
}

// refresh reads what is not known yet. Afresh it reads everything again: the
// store may have gone back.
func (s *Store) refresh(ctx context.Context, afresh bool) error {
	known := s.spans
	if afresh {
		known = &spans{keys: s.keys}
	}
	var resp clientv3.OpResponse
	err := s.persist(ctx, func(ctx context.Context) (err error) {
		resp, err = s.client.Do(ctx, known.read())
		return err
	})
	if err != nil {
		return err
	}
	known.add(resp.Get().Kvs)
	if afresh {
		s.spans.mu.Lock()
		defer s.spans.mu.Unlock()
		s.spans.list = known.list
	}
	return nil
}
