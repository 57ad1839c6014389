package etcdstore

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep/internal/data/store"
)

// Put writes ops in one transaction, each guarded by its own revision.
func (s *Store) Put(ctx context.Context, head store.Head, ops []store.Op) (store.Written, error) {
	head.Prev = 0
	return s.transact(ctx, "put", nil, ops, s.keys.put, head)
}

// Commit writes ops and the new head in one transaction, guarded by the
// revision of the head too.
func (s *Store) Commit(ctx context.Context, prev store.Rev, head store.Head, ops []store.Op) (store.Written, error) {
	head.Prev = prev
	return s.transact(ctx, "commit", []clientv3.Cmp{at(s.keys.head, prev)}, ops, s.keys.head, head)
}

// guard adds the guards of ops.
func (s *Store) guard(guards []clientv3.Cmp, ops []store.Op) []clientv3.Cmp {
	for _, op := range ops {
		key := s.keys.record(op.Key)
		if op.Prev != store.Any {
			guards = append(guards, at(key, op.Prev))
		}
		if op.Value == nil && op.Prev <= 0 {
			guards = append(guards, exists(key))
		}
	}
	return guards
}

// at guards a key's revision; 0 is a key that does not exist.
func at(key string, rev store.Rev) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(key), "=", int64(rev))
}

// exists guards a delete. etcd would let it pass without an event, and the
// batch would lack an op.
func exists(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), ">", 0)
}

// extraOps is what a transaction does beside the ops of its batch: two reads
// and the key that closes it.
const extraOps = 3

// transact writes ops and then head, under the key that closes the batch:
// watches report the changes of a transaction in its order.
func (s *Store) transact(ctx context.Context, doing string, guards []clientv3.Cmp, ops []store.Op, last string, head store.Head) (store.Written, error) {
	if err := s.limits.Check(ops); err != nil {
		return store.Written{}, err
	}
	head.Ops = len(ops)
	// No name that comes along may keep a change from being written.
	value, err := json.Marshal(head, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return store.Written{}, fmt.Errorf("%w: head: %w", store.ErrInvalid, err)
	}
	ctx, done, err := s.write(ctx)
	if err != nil {
		return store.Written{}, err
	}
	defer done()
	then := make([]clientv3.Op, 0, len(ops)+extraOps)
	for _, key := range []string{s.keys.head, s.keys.put} { // as they were before
		then = append(then, clientv3.OpGet(key, clientv3.WithKeysOnly()))
	}
	for _, op := range ops {
		if op.Value == nil {
			then = append(then, clientv3.OpDelete(s.keys.record(op.Key)))
		} else {
			then = append(then, clientv3.OpPut(s.keys.record(op.Key), string(op.Value)))
		}
	}
	then = append(then, clientv3.OpPut(last, string(value)))
	resp, err := s.client.Txn(ctx).If(s.guard(guards, ops)...).Then(then...).Commit()
	switch {
	case oversized(err):
		return store.Written{}, fmt.Errorf("%w of a message: %w", store.ErrTooLarge, err)
	case err != nil:
		return store.Written{}, explain(ctx, doing, err)
	case !resp.Succeeded:
		return store.Written{}, store.ErrConflict
	}
	at := store.Written{Rev: store.Rev(resp.Header.Revision)}
	for _, r := range resp.Responses[:2] {
		for _, kv := range r.GetResponseRange().Kvs {
			at.After = max(at.After, store.Rev(kv.ModRevision))
		}
	}
	return at, nil
}
