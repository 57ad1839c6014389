package etcdstore

import (
	"context"
	"fmt"
	"iter"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// Put writes ops as one batch, each guarded by its own revision.
func (s *Store) Put(ctx context.Context, head store.Head, ops []store.Op) (store.Written, error) {
	head.Prev = 0
	return s.add(ctx, batch{doing: "put", closes: s.keys.put, head: head, ops: ops})
}

// Commit writes ops and the new head as one batch, guarded by the revision of
// the head too.
func (s *Store) Commit(ctx context.Context, prev store.Rev, head store.Head, ops []store.Op) (store.Written, error) {
	head.Prev = prev
	return s.add(ctx, batch{
		doing: "commit", guards: []clientv3.Cmp{at(s.keys.head, prev)}, closes: s.keys.head, head: head, ops: ops,
	})
}

// batch is what is to be written.
type batch struct {
	doing  string
	guards []clientv3.Cmp // besides those of ops
	closes string         // the key that closes it
	head   store.Head
	ops    []store.Op
}

// add writes a batch in one transaction, if that can hold it.
func (s *Store) add(ctx context.Context, b batch) (store.Written, error) {
	if err := s.check(b.ops); err != nil {
		return store.Written{}, err
	}
	b.head.Ops = len(b.ops)
	ctx, done, err := s.write(ctx)
	if err != nil {
		return store.Written{}, err
	}
	defer done()
	if s.quick.Hold(b.ops) {
		at, few, err := s.transact(ctx, b)
		if few {
			return at, err
		}
	}
	s.tail.last.Store(0) // what is carried out is no batch
	return s.stage(ctx, b)
}

// check returns why ops cannot be one batch, if so.
func (s *Store) check(ops []store.Op) error {
	if err := s.Limits().Check(ops); err != nil {
		return err
	}
	for _, op := range ops {
		if size := len(op.Key) + len(op.Value); size > s.quick.Bytes {
			return fmt.Errorf("%w: a record of %d bytes, at most %d", store.ErrTooLarge, size, s.quick.Bytes)
		}
	}
	return nil
}

// runs yields ops as etcd is told of them: one by one, but for entries that are
// deleted and follow each other. Each op costs it a guard and a request of its own.
func runs(ops []store.Op) iter.Seq[[]store.Op] {
	return func(yield func([]store.Op) bool) {
		for len(ops) > 0 {
			n := 1
			for n < len(ops) && ops[n].Runs(ops[n-1]) {
				n++
			}
			if !yield(ops[:n]) {
				return
			}
			ops = ops[n:]
		}
	}
}

// guard is the guards of ops.
func (s *Store) guard(ops []store.Op) (guards []clientv3.Cmp) {
	for run := range runs(ops) {
		if n := len(run); n > 1 {
			guards = append(guards, exists(s.keys.record(run[0].Key)), exists(s.keys.record(run[n-1].Key)))
			continue
		}
		op := run[0]
		key := s.keys.record(op.Key)
		if op.Prev != store.Any {
			guards = append(guards, s.spans.at(key, op.Prev)...)
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

func absent(key string) clientv3.Cmp { return at(key, 0) }

// extraOps is what a transaction may do beside the ops of its batch: a read, the
// key that closes it, and one to spare. It has as many guards beside those of ops.
const extraOps = 3

// transact writes a batch in one transaction, unless there are too many guards
// for one: few is false then and nothing has happened.
func (s *Store) transact(ctx context.Context, b batch) (at store.Written, few bool, err error) {
	value, err := s.tail.say(closing{Head: b.head, ID: s.batchID()})
	if err != nil {
		return at, true, err
	}
	if s.fence.doubt.Swap(false) {
		if err := s.moveFence(ctx); err != nil {
			s.fence.doubt.Store(true)
			return at, true, err
		}
	}
	// Why a write fails is asked when one does, of a store that is no other's.
	last, since := s.tail.last.Load(), s.seen()
	for ask := last == 0; ; ask = true {
		guards := append(append(s.guard(b.ops), b.guards...), s.fenced()...)
		if len(guards) > s.quick.Ops+extraOps-1 {
			return at, false, nil
		}
		try, end := s.mayBeLost(ctx)
		txn := s.client.Txn(try).If(append(guards, absent(s.keys.hold))...).Then(s.closing(b, value, last == 0)...)
		if ask {
			txn = txn.Else(s.reasons()...)
		}
		resp, err := txn.Commit()
		lost := s.wasLost(ctx, try, err)
		end()
		switch {
		case lost:
			if at, found, err := s.settleLost(ctx, b, value, since); found || err != nil {
				return at, true, s.doubted(err)
			}
			continue
		case err != nil:
			return at, true, s.doubted(explain(ctx, b.doing, err))
		case resp.Succeeded:
			at, err = s.placed(ctx, resp, last)
			return at, true, err
		case !ask:
			continue
		}
		again, err := s.unmet(ctx, resp)
		if err == nil && !again {
			err = store.ErrConflict
		}
		if err != nil {
			return at, true, err
		}
	}
}

// reasons reads what a write may have failed for that is no conflict.
func (s *Store) reasons() []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpGet(s.keys.hold), s.spans.read()}
	if s.peered() {
		ops = append(ops, clientv3.OpGet(s.fenceKey(), clientv3.WithKeysOnly()))
	}
	return ops
}

// unmet tells of a write whose guards did not hold whether it is worth another
// try: for something else than what others have written.
func (s *Store) unmet(ctx context.Context, resp *clientv3.TxnResponse) (again bool, err error) {
	held, again := resp.Responses[0].GetResponseRange().Count > 0, s.spans.learn(resp.Responses[1])
	if s.peered() && s.moved(resp.Responses[2]) {
		again = true
	}
	if held {
		return true, s.settle(ctx)
	}
	return again, nil
}

// doubted takes note of a write of which nobody knows whether it happens.
func (s *Store) doubted(err error) error {
	if err != nil && s.peered() {
		s.fence.doubt.Store(true)
	}
	return err
}

// before reads when the keys that close batches were written.
func (s *Store) before() []clientv3.Op {
	return []clientv3.Op{clientv3.OpGet(s.keys.head, clientv3.WithKeysOnly()), clientv3.OpGet(s.keys.put, clientv3.WithKeysOnly())}
}

// written is what a transaction that began with before says of its batch.
func written(resp *clientv3.TxnResponse) store.Written {
	at := store.Written{Rev: store.Rev(resp.Header.Revision)}
	for _, r := range resp.Responses[:2] {
		at.After = max(at.After, store.Rev(lastWrite(r)))
	}
	return at
}

// lastWrite is when the last of the keys was written that a read has found.
func lastWrite(r *etcdserverpb.ResponseOp) (rev int64) {
	for _, kv := range r.GetResponseRange().Kvs {
		rev = max(rev, kv.ModRevision)
	}
	return rev
}

// closing is a batch as etcd has it, with the key that closes it last: watches report
// the changes of a transaction in its order. If asked it also says when that key was
// written before, and the other such key.
func (s *Store) closing(b batch, value string, ask bool) []clientv3.Op {
	if !ask {
		return append(s.changes(make([]clientv3.Op, 0, len(b.ops)+1), b.ops), clientv3.OpPut(b.closes, value))
	}
	other := s.keys.head
	if b.closes == other {
		other = s.keys.put
	}
	then := append(make([]clientv3.Op, 0, len(b.ops)+extraOps), clientv3.OpGet(other, clientv3.WithKeysOnly()))
	return append(s.changes(then, b.ops), clientv3.OpPut(b.closes, value, clientv3.WithPrevKV()))
}

// changes adds ops as etcd has them.
func (s *Store) changes(then []clientv3.Op, ops []store.Op) []clientv3.Op {
	for run := range runs(ops) {
		switch op, n := run[0], len(run); {
		case n > 1:
			then = append(then, clientv3.OpDelete(s.keys.record(op.Key), clientv3.WithRange(s.keys.record(run[n-1].Key)+"\x00")))
		case op.Value == nil:
			then = append(then, clientv3.OpDelete(s.keys.record(op.Key)))
		default:
			put := clientv3.OpPut(s.keys.record(op.Key), "")
			put.WithValueBytes(op.Value) // which nobody copies, as they would a text
			then = append(then, put)
		}
	}
	return then
}

// writtenOver is what such a transaction says that was asked: the key that closes
// it tells what it has replaced.
func writtenOver(resp *clientv3.TxnResponse) store.Written {
	at := store.Written{Rev: store.Rev(resp.Header.Revision), After: store.Rev(lastWrite(resp.Responses[0]))}
	if was := resp.Responses[len(resp.Responses)-1].GetResponsePut().PrevKv; was != nil {
		at.After = max(at.After, store.Rev(was.ModRevision))
	}
	return at
}

// closing is what the key holds that closes a batch.
type closing struct {
	store.Head
	// Staged is where the ops are, if not in the same transaction.
	Staged *staged `json:"staged,omitempty"`
	// ID tells the batch from all others, if it may have to be looked for.
	ID string `json:"id,omitempty"`
}

func (c closing) text() (string, error) {
	// No name that comes along may keep a change from being written.
	value, err := json.Marshal(c, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return "", fmt.Errorf("%w: head: %w", store.ErrInvalid, err)
	}
	return string(value), nil
}
