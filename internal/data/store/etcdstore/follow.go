package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// noLeaderPause is how long Follow waits before it watches again when the
// cluster has lost its leader.
const noLeaderPause = 100 * time.Millisecond

// Follow watches all keys from rev on and hands out whole batches only.
func (s *Store) Follow(ctx context.Context, rev store.Rev, fn func(store.Batch) error) error {
	ctx, done, err := s.read(ctx)
	if err != nil {
		return err
	}
	defer done()
	f, err := s.feedFrom(ctx, rev)
	if err != nil {
		return err
	}
	for {
		err := s.watch(ctx, f, fn)
		if !errors.Is(err, rpctypes.ErrNoLeader) {
			return err
		}
		select {
		case <-time.After(noLeaderPause):
		case <-ctx.Done():
			return explain(ctx, "follow", ctx.Err())
		}
	}
}

// feedFrom reads how head and put stood at rev, so that the first batch can be
// checked like all others. The read also finds out whether history reaches
// back to rev; a watch would start one revision too early. It is made of two
// that the client repeats when a connection is lost; it repeats no transaction.
func (s *Store) feedFrom(ctx context.Context, rev store.Rev) (*feed, error) {
	at := clientv3.WithRev(int64(max(rev, 1))) // 0 would be now; nothing is written before 2
	f := &feed{keys: s.keys, tail: &s.tail, last: int64(rev), staged: func(rev int64, st staged) ([]store.Op, error) { return s.stagedOps(ctx, rev, st) }}
	for _, read := range []struct {
		key  string
		note func(*mvccpb.KeyValue)
	}{
		{s.keys.head, func(kv *mvccpb.KeyValue) { f.head = kv.ModRevision }},
		{s.keys.put, func(kv *mvccpb.KeyValue) { f.puts = kv.Version }},
	} {
		resp, err := s.patientGet(ctx, read.key, at)
		if errors.Is(err, rpctypes.ErrFutureRev) {
			return nil, fmt.Errorf("%w: revision %d is not reached yet", store.ErrGap, rev)
		}
		if err != nil {
			return nil, explain(ctx, "follow", err)
		}
		for _, kv := range resp.Kvs {
			read.note(kv)
		}
	}
	return f, nil
}

// stagedOps reads the ops of a batch that was closed at rev, as they were then.
func (s *Store) stagedOps(ctx context.Context, rev int64, st staged) (ops []store.Op, err error) {
	parts, err := s.parts(ctx, st.ID, clientv3.WithRev(rev))
	if err != nil {
		return nil, err
	}
	if len(parts) != st.Parts {
		return nil, fmt.Errorf("%w: revision %d has %d parts of %d", store.ErrGap, rev, len(parts), st.Parts)
	}
	for _, p := range parts {
		ops = append(ops, p.ops...)
	}
	return ops, nil
}

// watch feeds f until the watch ends. etcd's client resumes after lost
// connections by itself.
func (s *Store) watch(ctx context.Context, f *feed, fn func(store.Batch) error) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	f.drop()
	// Progress notices keep a quiet feed from resuming at compacted history.
	// We do not ask for fragments: messages may be large enough without, and
	// the server takes quadratic time to cut them.
	watch := s.client.Watch(ctx, s.keys.head, clientv3.WithRange(s.keys.end),
		clientv3.WithRev(f.last+1), clientv3.WithProgressNotify())
	for resp := range watch {
		if err := resp.Err(); err != nil {
			return explain(ctx, "follow", err)
		}
		for _, ev := range resp.Events {
			batch, err := f.take(ev)
			if err != nil {
				return err
			}
			if batch == nil {
				continue
			}
			if err := fn(*batch); err != nil {
				return err
			}
		}
	}
	switch ended := context.Cause(s.reading); {
	case ctx.Err() != nil:
		return explain(ctx, "follow", ctx.Err())
	case ended != nil: // which ctx hears of a moment later
		return ended
	}
	return errors.New("etcd: follow: the watch ended")
}

// feed makes batches of events and accepts no gap.
type feed struct {
	keys keyspace
	tail *tail
	last int64 // revision of the last whole batch
	head int64 // revision of the last commit
	puts int64 // how often put was written
	rev  int64 // revision of ops
	ops  []store.Op

	staged func(rev int64, st staged) ([]store.Op, error) // reads what is elsewhere
}

// drop forgets a batch that is not whole yet.
func (f *feed) drop() { f.rev, f.ops = 0, nil }

// take adds an event. It returns a batch when the event closes one.
func (f *feed) take(ev *clientv3.Event) (*store.Batch, error) {
	rev, key := ev.Kv.ModRevision, string(ev.Kv.Key)
	if rev <= f.last {
		return nil, nil // repeated
	}
	if len(f.ops) > 0 && rev != f.rev {
		return nil, fmt.Errorf("%w: revision %d has no end", store.ErrGap, f.rev)
	}
	f.rev = rev
	switch {
	case key == f.keys.head:
		return f.commit(ev)
	case key == f.keys.put:
		return f.put(ev)
	case key == f.keys.hold: // what it closes belongs to a batch of before
		if len(f.ops) > 0 && f.last <= ev.Kv.CreateRevision {
			return nil, fmt.Errorf("%w: revision %d belongs to a batch that was not seen", store.ErrGap, rev)
		}
		f.drop()
	default:
		name, ok := f.keys.name(key)
		if !ok {
			return nil, nil
		}
		op := store.Op{Key: name}
		if ev.Type == clientv3.EventTypePut {
			op.Value = valueOf(ev.Kv)
		}
		f.ops = append(f.ops, op)
	}
	return nil, nil
}

func (f *feed) commit(ev *clientv3.Event) (*store.Batch, error) {
	if ev.Type != clientv3.EventTypePut {
		return nil, fmt.Errorf("%w: the head was deleted", store.ErrGap)
	}
	head, err := f.tail.headOf(ev.Kv)
	if err != nil {
		return nil, err
	}
	if int64(head.Prev) != f.head {
		return nil, fmt.Errorf("%w: revision %d follows %d, not %d", store.ErrGap, f.rev, head.Prev, f.head)
	}
	batch, err := f.close(head)
	if err != nil {
		return nil, err
	}
	f.head = f.last
	batch.Commit = true
	return batch, nil
}

func (f *feed) put(ev *clientv3.Event) (*store.Batch, error) {
	head, err := f.tail.headOf(ev.Kv)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrGap, err)
	}
	if ev.Kv.Version != f.puts+1 {
		return nil, fmt.Errorf("%w: put %d follows %d", store.ErrGap, ev.Kv.Version, f.puts)
	}
	batch, err := f.close(head)
	if err != nil {
		return nil, err
	}
	f.puts++
	return batch, nil
}

func (f *feed) close(head closing) (_ *store.Batch, err error) {
	if head.Staged != nil && len(f.ops) == 0 {
		if f.ops, err = f.staged(f.rev, *head.Staged); err != nil {
			return nil, err
		}
	}
	if len(f.ops) != head.Ops {
		return nil, fmt.Errorf("%w: revision %d has %d ops of %d", store.ErrGap, f.rev, len(f.ops), head.Ops)
	}
	batch := &store.Batch{Rev: store.Rev(f.rev), Head: head.Head, Ops: f.ops}
	f.last = f.rev
	f.drop()
	return batch, nil
}
