package etcdstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// Witness is what closed the last batch of either sort up to a revision, and when: heads
// name the batch before them, who wrote it and its time to the microsecond, so that two logs
// which have parted do not have the same.
func (s *Store) Witness(ctx context.Context, rev store.Rev) ([]byte, error) {
	ctx, done, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if rev <= 0 {
		return nil, fmt.Errorf("%w: there is no revision %d", store.ErrInvalid, rev)
	}
	var said []byte
	for _, key := range []string{s.keys.head, s.keys.put} {
		resp, err := s.patientGet(ctx, key, clientv3.WithRev(int64(rev)))
		if errors.Is(err, rpctypes.ErrFutureRev) {
			return nil, fmt.Errorf("%w: revision %d is not reached yet", store.ErrInvalid, rev)
		}
		if err != nil {
			return nil, explain(ctx, "get", err)
		}
		for _, kv := range resp.Kvs {
			for _, n := range []int64{kv.CreateRevision, kv.ModRevision, kv.Version, int64(len(kv.Value))} {
				said = binary.AppendVarint(said, n)
			}
			said = append(said, kv.Value...)
		}
		said = append(said, 0)
	}
	return said, nil
}
