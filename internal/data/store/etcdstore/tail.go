package etcdstore

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// tail is what a handle knows of the end of the log because it wrote it. A handle
// that is alone need not ask the store for any of it, with every write.
type tail struct {
	// last is the revision of a batch that the next write most likely follows, 0
	// if there is none such.
	last atomic.Int64
	// said is what the latest batch was closed with, before it is known whether
	// it was.
	said atomic.Pointer[said]
}

// said is a text that closes a batch, and what is in it.
type said struct {
	text string
	closing
}

// say makes the text that closes a batch.
func (t *tail) say(c closing) (string, error) {
	text, err := c.text()
	if err == nil {
		t.said.Store(&said{text, c})
	}
	return text, err
}

// headOf is headOf of any batch, without reading what this handle said itself.
func (t *tail) headOf(kv *mvccpb.KeyValue) (closing, error) {
	if mine := t.said.Load(); mine != nil && mine.text == string(kv.Value) {
		return mine.closing, nil
	}
	return headOf(kv)
}

// placed is where a batch is that a transaction has written. Nothing is between it
// and the batch of the revision before; where that is not the one that was
// thought, others write too, and the store is asked from then on.
func (s *Store) placed(ctx context.Context, resp *clientv3.TxnResponse, last int64) (at store.Written, err error) {
	rev := resp.Header.Revision
	switch {
	case last == 0:
		at = writtenOver(resp)
	case rev == last+1:
		at = store.Written{Rev: store.Rev(rev), After: store.Rev(last)}
	default:
		if at, err = s.writtenAt(ctx, rev); err != nil {
			// It is no error of those that say that nothing was written.
			return store.Written{}, fmt.Errorf("etcd: what the write at revision %d follows: %v", rev, err)
		}
	}
	if at.After+1 != at.Rev {
		rev = 0
	}
	s.tail.last.Store(rev)
	return at, nil
}

// writtenAt reads what a batch follows that was written a moment ago.
func (s *Store) writtenAt(ctx context.Context, rev int64) (store.Written, error) {
	at := store.Written{Rev: store.Rev(rev)}
	for _, key := range []string{s.keys.head, s.keys.put} {
		resp, err := s.patientGet(ctx, key, clientv3.WithKeysOnly(), clientv3.WithRev(rev-1))
		if err != nil {
			return at, explain(ctx, "read", err)
		}
		for _, kv := range resp.Kvs {
			at.After = max(at.After, store.Rev(kv.ModRevision))
		}
	}
	return at, nil
}
