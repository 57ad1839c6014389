package etcdstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"netkeep.internal/internal/data/store"
)

const (
	// lostAfter is how long a write may go without an answer after the members
	// have got another leader. The one before took it along, most likely.
	lostAfter = 300 * time.Millisecond
	// lookAgain is how long to wait for a cluster that is between two leaders.
	lookAgain = 50 * time.Millisecond
	// maxBack is how many batches it is looked back over for one's own.
	maxBack = 10_000
)

// proposalDropped is what a leader says that is about to hand over.
const proposalDropped = "raft proposal dropped"

// errLost is why a write is given up that went to a leader that is gone.
var errLost = errors.New("the leader is gone that had it")

// errUnsure is not store.ErrConflict, which would promise that nothing was
// written.
var errUnsure = errors.New("etcd: the leader changed, and others wrote so much meanwhile that it is not found")

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

// fence is what the writes of a member with others are guarded by, all of them. A
// leader that is gone may come back and hand on what it was sent, minutes later.
// Whoever wants to know what became of a write moves the fence first: then it has
// happened by now, or never will.
type fence struct {
	rev   atomic.Int64 // when it was last moved, as far as is known
	doubt atomic.Bool  // whether there is a write that may still happen
}

// fenced is the guard of a member's writes; none where there is only one leader.
func (s *Store) fenced() []clientv3.Cmp {
	if !s.peered() {
		return nil
	}
	return []clientv3.Cmp{at(s.fenceKey(), store.Rev(s.fence.rev.Load()))}
}

// fenceKey is where the fence of the member is, before all that is followed.
func (s *Store) fenceKey() string {
	return s.keys.fences + s.member.etcd.Server.MemberID().String()
}

// moved takes over where the fence is and reports whether that is news: somebody
// else in this process has moved it, or the process before this one.
func (s *Store) moved(r *etcdserverpb.ResponseOp) bool {
	rev := lastWrite(r)
	return s.fence.rev.Swap(rev) != rev
}

// moveFence has no write of before happen any more.
func (s *Store) moveFence(ctx context.Context) error {
	return s.persist(ctx, func(ctx context.Context) error {
		resp, err := s.client.Put(ctx, s.fenceKey(), "")
		if err == nil {
			s.fence.rev.Store(resp.Header.Revision)
		}
		return explained(ctx, "look for a write", err)
	})
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

// wasLost reports whether what was tried has failed only for want of a leader, and
// there is time to try again.
func (s *Store) wasLost(ctx, try context.Context, err error) bool {
	return err != nil && s.peered() && ctx.Err() == nil && (errors.Is(context.Cause(try), errLost) || betweenLeaders(err))
}

// persist does something that may be done twice until it is done, however often the
// leader changes meanwhile.
func (s *Store) persist(ctx context.Context, do func(context.Context) error) error {
	for {
		try, end := s.mayBeLost(ctx)
		err := do(try)
		lost := s.wasLost(ctx, try, err)
		end()
		if !lost {
			return err
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return err
		}
	}
}

// betweenLeaders reports whether an error says that a request was given up for
// want of a leader.
func betweenLeaders(err error) bool {
	for _, e := range []error{
		rpctypes.ErrNoLeader, rpctypes.ErrNotLeader, rpctypes.ErrLeaderChanged,
		rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost,
	} {
		if errors.Is(err, e) || errors.Is(rpctypes.Error(err), e) {
			return true
		}
	}
	// What waits for a leader for too long, or comes to one that is about to hand
	// over, fails in words that have no name in etcd's protocol.
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded || strings.Contains(err.Error(), proposalDropped)
}

// patientGet reads keys, however often the leader changes meanwhile.
func (s *Store) patientGet(ctx context.Context, key string, opts ...clientv3.OpOption) (resp *clientv3.GetResponse, err error) {
	err = s.persist(ctx, func(ctx context.Context) error {
		resp, err = s.client.Get(ctx, key, opts...)
		return err
	})
	return resp, err
}

// patientTxn makes a transaction that may be made twice.
func (s *Store) patientTxn(ctx context.Context, guards []clientv3.Cmp, then ...clientv3.Op) (resp *clientv3.TxnResponse, err error) {
	err = s.persist(ctx, func(ctx context.Context) error {
		resp, err = s.client.Txn(ctx).If(guards...).Then(then...).Commit()
		return err
	})
	return resp, err
}

// seen is a revision that the member has; what is proposed now gets a later one.
func (s *Store) seen() int64 {
	if !s.peered() {
		return 0
	}
	return s.member.etcd.Server.KV().Rev()
}

// settleLost finds out whether a batch was written whose answer is lost.
func (s *Store) settleLost(ctx context.Context, b batch, value string, since int64) (at store.Written, found bool, err error) {
	if err := s.moveFence(ctx); err != nil {
		return at, false, err
	}
	err = s.persist(ctx, func(ctx context.Context) error {
		at, found, err = s.find(ctx, b.closes, value, since)
		return err
	})
	return at, found, err
}

// find looks for a batch that was written after a revision, if it was, by the text
// that closes it.
func (s *Store) find(ctx context.Context, closes, value string, since int64) (at store.Written, found bool, err error) {
	var opts []clientv3.OpOption
	for range maxBack {
		resp, err := s.client.Get(ctx, closes, opts...)
		if err != nil {
			return at, false, explain(ctx, "look for a write", err)
		}
		if len(resp.Kvs) == 0 || resp.Kvs[0].ModRevision <= since {
			return at, false, nil
		}
		kv := resp.Kvs[0]
		if string(kv.Value) == value {
			at, err = s.writtenAt(ctx, kv.ModRevision)
			return at, true, err
		}
		// This member has what is before that.
		opts = []clientv3.OpOption{clientv3.WithRev(kv.ModRevision - 1), clientv3.WithSerializable()}
	}
	return at, false, fmt.Errorf("%w: %d batches", errUnsure, maxBack)
}
