package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// Compact forgets history up to rev, and what failed writes left behind. In a member of our own it also gives the
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
	defer s.Relax()
	if err := s.sweep(ctx); err != nil {
		return err
	}
	_, err = s.client.Compact(ctx, int64(rev), clientv3.WithCompactPhysical())
	switch {
	case errors.Is(err, rpctypes.ErrCompacted): // already
	case errors.Is(err, rpctypes.ErrFutureRev):
		return fmt.Errorf("%w: revision %d is not reached yet", store.ErrInvalid, rev)
	case err != nil:
		return explain(ctx, "compact", err)
	}
	return s.reclaim(ctx)
}

// Reclaim gives space back to the disk that has got free in a member of our own
// because another has had history forgotten, when that pays.
func (s *Store) Reclaim(ctx context.Context) error {
	ctx, done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	return s.reclaim(ctx)
}

// reclaim defragments if much of the file is free or the store is full, and
// lets writes in again if it was.
func (s *Store) reclaim(ctx context.Context) error {
	m := s.member
	if m == nil {
		return nil
	}
	bans, err := s.bans(ctx)
	if err != nil {
		return err
	}
	be := m.etcd.Server.Backend()
	free := be.Size() - be.SizeInUse() // which says so late, and a full store has nothing to lose
	// A snapshot under way reads the old file: next time.
	if (len(bans) > 0 || free >= m.reclaim && free > be.Size()/2) && m.defrag.TryLock() {
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
	for _, ban := range bans {
		if _, err := s.client.AlarmDisarm(ctx, ban); err != nil {
			return explain(ctx, "lift alarm", err)
		}
	}
	return nil
}

// Defragment writes the file of a member of our own anew, without what was
// forgotten. It halts reads and writes meanwhile. That of a cluster is its
// operators' to do.
func (s *Store) Defragment(ctx context.Context) error {
	ctx, done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	if s.member == nil {
		return nil
	}
	s.member.defrag.Lock()
	defer s.member.defrag.Unlock()
	if err := s.member.etcd.Server.Defragment(); err != nil {
		return explain(ctx, "defragment", err)
	}
	return nil
}

// bans are those on writes that etcd sets when the quota is used up.
func (s *Store) bans(ctx context.Context) (bans []*clientv3.AlarmMember, err error) {
	resp, err := s.client.AlarmList(ctx)
	if err != nil {
		return nil, explain(ctx, "list alarms", err)
	}
	for _, a := range resp.Alarms {
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE {
			bans = append(bans, &clientv3.AlarmMember{MemberID: a.MemberID, Alarm: a.Alarm})
		}
	}
	return bans, nil
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
	// What streams fail with is not put into etcd's words by its client.
	resp, err := s.client.SnapshotWithVersion(ctx)
	if err != nil {
		return explain(ctx, "snapshot", rpctypes.Error(err))
	}
	defer resp.Snapshot.Close()
	if _, err := io.Copy(w, resp.Snapshot); err != nil {
		return explain(ctx, "snapshot", rpctypes.Error(err))
	}
	return nil
}
