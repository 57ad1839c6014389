package etcdstore

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

const (
	// lostAfter is how long a write may go without an answer after the members
	// have got another leader. The one before took it along, most likely.
	lostAfter = 300 * time.Millisecond
	// lookAgain is how long to wait for a cluster that is between two leaders.
	lookAgain = 50 * time.Millisecond
	// maxBack is how many commits it is looked back over for one's own.
	maxBack = 1000
)

// errLost is why a write is given up that went to a leader that is gone.
var errLost = errors.New("the leader is gone that had it")

// peered reports whether the store is a member with others, which may get
// another leader.
func (s *Store) peered() bool { return s.member != nil && len(s.member.etcd.Peers) > 0 }

// batchID tells a batch from all others, where it may have to be found again.
func (s *Store) batchID() string {
	if !s.peered() {
		return ""
	}
	return rand.Text()[:12]
}

// mayBeLost returns ctx, ended with errLost also when there is another leader and
// still no answer.
func (s *Store) mayBeLost(ctx context.Context) (context.Context, func()) {
	if !s.peered() {
		return ctx, func() {}
	}
	changed := s.member.etcd.Server.LeaderChangedNotify()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(lostAfter):
			cancel(errLost)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// repeatable reports whether a batch that was written cannot be written again.
func (b *batch) repeatable() bool {
	if len(b.guards) > 0 {
		return true
	}
	for _, op := range b.ops {
		if op.Prev == store.Any {
			return false
		}
	}
	return true
}

// find looks for a batch that may have been written; told is false if nobody can
// tell whether it was.
func (s *Store) find(ctx context.Context, b batch, value string) (at store.Written, found, told bool, err error) {
	var opts []clientv3.OpOption
	for range maxBack {
		resp, err := s.patientGet(ctx, b.closes, opts...)
		if err != nil || len(resp.Kvs) == 0 {
			return at, false, err == nil, err
		}
		kv := resp.Kvs[0]
		if string(kv.Value) == value {
			at, err = s.writtenAt(ctx, kv.ModRevision)
			return at, true, true, err
		}
		c, err := headOf(kv)
		if err != nil {
			return at, false, false, err
		}
		switch {
		case b.closes != s.keys.head:
			return at, false, false, nil // what was before it is not said
		case c.Prev <= b.head.Prev:
			return at, false, true, nil // another has its place, or nobody
		}
		opts = []clientv3.OpOption{clientv3.WithRev(int64(c.Prev))}
	}
	return at, false, false, nil
}

// errUnsure is not store.ErrConflict, which would promise that nothing was
// written.
var errUnsure = errors.New("etcd: the leader changed, and others wrote meanwhile")

// conflict is what becomes of a batch that came too late, unless it was an earlier
// attempt of its own that came first.
func (s *Store) conflict(ctx context.Context, b batch, value string, lost bool) (at store.Written, err error) {
	if !lost {
		return at, store.ErrConflict
	}
	at, found, told, err := s.find(ctx, b, value)
	switch {
	case found || err != nil:
		return at, err
	case told:
		return at, store.ErrConflict
	}
	return at, errUnsure
}

// patientGet reads a key, however often the leader changes meanwhile.
func (s *Store) patientGet(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	for {
		resp, err := s.client.Get(ctx, key, opts...)
		if err == nil || !betweenLeaders(err) {
			return resp, explained(ctx, "look for a write", err)
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil, explain(ctx, "look for a write", err)
		}
	}
}

// betweenLeaders reports whether an error says that a request was given up for
// want of a leader.
func betweenLeaders(err error) bool {
	for _, e := range []error{rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail} {
		if errors.Is(err, e) || errors.Is(rpctypes.Error(err), e) {
			return true
		}
	}
	return false
}

// wasLost reports whether a write that has failed may be made again, once it was
// looked for.
func (s *Store) wasLost(ctx, try context.Context, b batch, err error) bool {
	return s.peered() && ctx.Err() == nil && b.repeatable() && (errors.Is(context.Cause(try), errLost) || betweenLeaders(err))
}
