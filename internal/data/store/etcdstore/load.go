package etcdstore

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

const (
	// pageBytes is what a page of Load should weigh.
	pageBytes = 16 << 20
	// pageFirst and pageMost bound a page before its weight is known.
	pageFirst = 256
	pageMost  = 16384
)

// Load reads all records page by page, at the revision of the head. It reads
// the next page while fn sees to the last.
func (s *Store) Load(ctx context.Context, fn func(store.Record) error) (store.Mark, error) {
	ctx, done, err := s.read(ctx)
	if err != nil {
		return store.Mark{}, err
	}
	defer done()
	defer s.Relax()
	// Not a transaction, even of reads alone: the client repeats a Get that lost
	// its connection, and nothing else.
	head, err := s.patientGet(ctx, s.keys.head)
	if err != nil {
		return store.Mark{}, explain(ctx, "load", err)
	}
	mark, err := markOf(head.Header.Revision, head.Kvs)
	if err != nil {
		return store.Mark{}, err
	}
	left, err := s.leftAt(ctx, mark.Rev)
	if err != nil {
		return store.Mark{}, err
	}
	left.records()
	if err := s.refresh(ctx, true); err != nil {
		return store.Mark{}, explain(ctx, "load", err)
	}
	err = s.pages(ctx, mark.Rev, func(kv *mvccpb.KeyValue) error {
		return left.add(s.recordOf(kv), fn)
	})
	if err == nil {
		err = left.before("", fn)
	}
	if err != nil {
		return store.Mark{}, err
	}
	return mark, nil
}

// pages hands all records to fn as they were at a revision.
func (s *Store) pages(ctx context.Context, rev store.Rev, fn func(*mvccpb.KeyValue) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	limit := int64(pageFirst)
	at := newStretch(s.keys.records, s.keys.end)
	page, err := s.page(ctx, at, limit, rev)
	for err == nil {
		var next *clientv3.GetResponse
		var failed error
		more := at.follow(page, limit)
		if more {
			limit = nextLimit(limit, page.Kvs)
			ask, most := *at, limit
			reading.Go(func() { next, failed = s.page(ctx, &ask, most, rev) })
		}
		for _, kv := range page.Kvs {
			if err := fn(kv); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		reading.Wait()
		page, err = next, failed
	}
	return err
}

// page reads the first records of a stretch.
func (s *Store) page(ctx context.Context, in *stretch, limit int64, rev store.Rev) (*clientv3.GetResponse, error) {
	resp, err := s.patientGet(ctx, in.from,
		clientv3.WithRange(in.end), clientv3.WithLimit(limit), clientv3.WithRev(int64(rev)))
	return resp, explained(ctx, "load", err)
}

func markOf(rev int64, head []*mvccpb.KeyValue) (store.Mark, error) {
	mark := store.Mark{Rev: store.Rev(rev)}
	if len(head) == 0 {
		return mark, nil
	}
	h, err := headOf(head[0])
	if err != nil {
		return store.Mark{}, err
	}
	mark.Head, mark.Time, mark.End = store.Rev(head[0].ModRevision), h.Time, h.End
	return mark, nil
}

// headOf reads what closes a batch. That of a Put was once the number of its
// ops and nothing else, and that of a Commit named its author in one word.
func headOf(kv *mvccpb.KeyValue) (closing, error) {
	var h closing
	if n, err := strconv.Atoi(string(kv.Value)); err == nil {
		h.Ops = n
		return h, nil
	}
	if err := json.Unmarshal(kv.Value, &h); err != nil {
		return h, fmt.Errorf("etcd: head of revision %d: %w", kv.ModRevision, err)
	}
	return h, nil
}

func (s *Store) recordOf(kv *mvccpb.KeyValue) store.Record {
	name, _ := s.keys.name(string(kv.Key))
	return store.Record{
		Key:   name,
		Value: valueOf(kv),
		Rev:   s.spans.of(kv.ModRevision),
	}
}

// valueOf makes an empty value of what etcd hands out as nil, which would be
// none.
func valueOf(kv *mvccpb.KeyValue) []byte {
	if kv.Value == nil {
		return []byte{}
	}
	return kv.Value
}

// nextLimit sizes a page by the weight of the last one, growing with care: the
// next kind's records may be much larger.
func nextLimit(limit int64, last []*mvccpb.KeyValue) int64 {
	if len(last) == 0 {
		return limit
	}
	size := 1
	for _, kv := range last {
		size += len(kv.Key) + len(kv.Value)
	}
	fit := int64(pageBytes) * int64(len(last)) / int64(size)
	return max(1, min(fit, 4*limit, pageMost))
}

// Last reads when head and put were last written. It does not outlast ctx, nor a
// member that fails: whoever reads then may wait for a lock that nobody gives back.
func (s *Store) Last(ctx context.Context) (store.Rev, error) {
	ctx, done, err := s.read(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	type answer struct {
		rev store.Rev
		err error
	}
	found := make(chan answer, 1)
	go func() {
		rev, err := s.last(ctx)
		found <- answer{rev, err}
	}()
	select {
	case a := <-found:
		return a.rev, a.err
	case <-ctx.Done():
		return 0, explain(ctx, "get", ctx.Err())
	}
}

func (s *Store) last(ctx context.Context) (last store.Rev, err error) {
	for _, key := range []string{s.keys.head, s.keys.put} {
		resp, err := s.patientGet(ctx, key, clientv3.WithKeysOnly())
		if err != nil {
			return 0, explain(ctx, "get", err)
		}
		for _, kv := range resp.Kvs {
			last = max(last, store.Rev(kv.ModRevision))
		}
	}
	return last, nil
}

// Get reads one record as it is now.
func (s *Store) Get(ctx context.Context, key string) (store.Record, bool, error) {
	ctx, done, err := s.read(ctx)
	if err != nil {
		return store.Record{}, false, err
	}
	defer done()
	resp, err := s.patientGet(ctx, s.keys.record(key))
	if err != nil {
		return store.Record{}, false, explain(ctx, "get", err)
	}
	left, err := s.leftAt(ctx, store.Rev(resp.Header.Revision))
	if err != nil {
		return store.Record{}, false, err
	}
	if op, has := left.find(key); has {
		if op.Value == nil {
			return store.Record{}, false, nil
		}
		return store.Record{Key: key, Value: op.Value, Rev: left.rev}, true, nil
	}
	if len(resp.Kvs) == 0 {
		return store.Record{}, false, nil
	}
	if err := s.refresh(ctx, false); err != nil {
		return store.Record{}, false, explain(ctx, "get", err)
	}
	return left.dated(s.recordOf(resp.Kvs[0])), true, nil
}
