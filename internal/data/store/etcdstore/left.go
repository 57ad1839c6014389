package etcdstore

import (
	"context"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// left is what is not carried out yet of a batch that has happened. The zero
// value is nothing.
type left struct {
	rev store.Rev  // of the batch
	ops []store.Op // by key
}

// leftAt reads what was left at a revision.
func (s *Store) leftAt(ctx context.Context, rev store.Rev) (l left, err error) {
	at := clientv3.WithRev(int64(rev))
	h, err := s.held(ctx, at)
	if err != nil || h == nil || h.Closes == "" {
		return l, err
	}
	closed, err := s.closedAt(ctx, h, at)
	if err != nil {
		return l, err
	}
	parts, err := s.parts(ctx, h.ID, at)
	if err != nil {
		return l, err
	}
	return leftOf(store.Rev(closed), parts), nil
}

func leftOf(rev store.Rev, parts []part) left {
	l := left{rev: rev}
	for _, p := range parts {
		l.ops = append(l.ops, p.ops...)
	}
	slices.SortFunc(l.ops, func(a, b store.Op) int { return strings.Compare(a.Key, b.Key) })
	return l
}

// records leaves entries out.
func (l *left) records() {
	l.ops = slices.DeleteFunc(l.ops, func(op store.Op) bool { return store.IsEntry(op.Key) })
}

// find returns what is left to do to a record.
func (l *left) find(key string) (op store.Op, has bool) {
	i, has := slices.BinarySearchFunc(l.ops, key, func(op store.Op, key string) int { return strings.Compare(op.Key, key) })
	if has {
		op = l.ops[i]
	}
	return op, has
}

// dated gives a record that was carried out the revision of its batch.
func (l *left) dated(rec store.Record) store.Record {
	if l.rev > 0 {
		rec.Rev = min(rec.Rev, l.rev)
	}
	return rec
}

// add hands a record to fn as it is when all is carried out, after those that
// are before it. Records come in the order of their keys.
func (l *left) add(rec store.Record, fn func(store.Record) error) error {
	if err := l.before(rec.Key, fn); err != nil {
		return err
	}
	if len(l.ops) > 0 && l.ops[0].Key == rec.Key {
		return nil // it comes with those before the next
	}
	return fn(l.dated(rec))
}

// before hands to fn what is left with keys before one, or all for none.
func (l *left) before(key string, fn func(store.Record) error) error {
	for len(l.ops) > 0 && (key == "" || l.ops[0].Key < key) {
		op := l.ops[0]
		l.ops = l.ops[1:]
		if op.Value == nil {
			continue
		}
		if err := fn(store.Record{Key: op.Key, Value: op.Value, Rev: l.rev}); err != nil {
			return err
		}
	}
	return nil
}
