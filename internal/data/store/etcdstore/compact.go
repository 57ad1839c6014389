package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep/internal/data/store"
)

// Compact forgets history up to rev. In a member of our own it also gives the
// freed space back to the disk when that pays, which halts reads and writes
// for the time it takes to copy what is left.
func (s *Store) Compact(ctx context.Context, rev store.Rev) error {
	ctx, done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	if rev <= 0 {
		return nil
	}
	_, err = s.client.Compact(ctx, int64(rev), clientv3.WithCompactPhysical())
	switch {
	case errors.Is(err, rpctypes.ErrCompacted): // already
	case errors.Is(err, rpctypes.ErrFutureRev):
		return fmt.Errorf("%w: revision %d is not reached yet", store.ErrInvalid, rev)
	case err != nil:
		return explain(ctx, "compact", err)
	}
	if s.member == nil {
		return nil
	}
	return s.reclaim(ctx)
}

// reclaim defragments if much of the file is free, and lets writes in again if
// the store was full.
func (s *Store) reclaim(ctx context.Context) error {
	m := s.member
	be := m.etcd.Server.Backend()
	free := be.Size() - be.SizeInUse()
	// A snapshot under way reads the old file: next time.
	if free >= m.reclaim && free > be.Size()/2 && m.defrag.TryLock() {
		err := m.etcd.Server.Defragment()
		m.defrag.Unlock()
		if err != nil {
			return explain(ctx, "defragment", err)
		}
		be = m.etcd.Server.Backend()
	}
	if be.Size() >= m.quota {
		return nil
	}
	return s.readmit(ctx)
}

// readmit lifts the ban on writes that etcd sets when the quota is used up.
func (s *Store) readmit(ctx context.Context) error {
	resp, err := s.client.AlarmList(ctx)
	if err != nil {
		return explain(ctx, "list alarms", err)
	}
	for _, a := range resp.Alarms {
		if a.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		if _, err := s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: a.MemberID, Alarm: a.Alarm}); err != nil {
			return explain(ctx, "lift alarm", err)
		}
	}
	return nil
}

// Snapshot writes a copy of the whole database with its checksum, as Restore
// reads it. From a cluster it is the copy of one of its members, and holds
// whatever shares the cluster.
func (s *Store) Snapshot(ctx context.Context, w io.Writer) error {
	ctx, done, err := s.read(ctx)
	if err != nil {
		return err
	}
	defer done()
	if s.member != nil {
		s.member.defrag.RLock()
		defer s.member.defrag.RUnlock()
	}
	resp, err := s.client.SnapshotWithVersion(ctx)
	if err != nil {
		return explain(ctx, "snapshot", err)
	}
	defer resp.Snapshot.Close()
	if _, err := io.Copy(w, resp.Snapshot); err != nil {
		return explain(ctx, "snapshot", err)
	}
	return nil
}
