package etcdstore

import (
	"context"
	"slices"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// Range reads entries as they are now.
func (s *Store) Range(ctx context.Context, from, to string, most int, newest bool) (recs []store.Record, more bool, err error) {
	ctx, done, err := s.read(ctx)
	if err != nil {
		return nil, false, err
	}
	defer done()
	order := clientv3.SortAscend
	if newest {
		order = clientv3.SortDescend
	}
	resp, err := s.patientGet(ctx, s.keys.record(from), clientv3.WithRange(s.keys.record(to)),
		clientv3.WithLimit(int64(most)), clientv3.WithSort(clientv3.SortByKey, order))
	if err != nil {
		return nil, false, explain(ctx, "range", err)
	}
	var both sync.WaitGroup // each waits for what the engine writes just then
	var failed error
	both.Go(func() { failed = s.refresh(ctx, false) })
	left, err := s.leftAt(ctx, store.Rev(resp.Header.Revision))
	both.Wait()
	if err == nil {
		err = explained(ctx, "range", failed)
	}
	if err != nil {
		return nil, false, err
	}
	for _, kv := range resp.Kvs {
		rec := left.dated(s.recordOf(kv))
		if _, has := left.find(rec.Key); !has {
			recs = append(recs, rec)
		}
	}
	recs, beyond := left.within(recs, from, to, resp.More, newest)
	if len(recs) > most {
		return recs[:most], true, nil
	}
	return recs, resp.More || beyond, nil
}

// within adds to entries that were read those that are left to be carried out,
// except for those beyond the last of them if there are more there.
func (l *left) within(recs []store.Record, from, to string, more, newest bool) (all []store.Record, beyond bool) {
	compare := func(a, b store.Record) int { return strings.Compare(a.Key, b.Key) }
	if newest {
		compare = func(a, b store.Record) int { return strings.Compare(b.Key, a.Key) }
	}
	for _, op := range l.ops {
		rec := store.Record{Key: op.Key, Value: op.Value, Rev: l.rev}
		switch {
		case op.Value == nil || op.Key < from || op.Key >= to:
		case more && len(recs) > 0 && compare(rec, recs[len(recs)-1]) > 0:
			beyond = true
		default:
			all = append(all, rec)
		}
	}
	all = append(recs, all...)
	slices.SortFunc(all, compare)
	return all, beyond
}
