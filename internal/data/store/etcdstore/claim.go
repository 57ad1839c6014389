package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// renewals is how often a lease is renewed in its life.
const renewals = 4

// claimOps is how many claims are written at a time.
const claimOps = 100

// Claims are those of everybody who shares the store.
func (s *Store) Claims() store.Claims {
	if s.alone != nil {
		return s.alone
	}
	return claims{s}
}

type claims struct{ *Store }

// lease is a lease of etcd.
type lease struct {
	s    *Store
	id   clientv3.LeaseID
	life time.Duration

	until  atomic.Pointer[time.Time]
	lost   chan struct{}
	end    sync.Once
	cancel context.CancelFunc
	done   chan struct{} // closed when nobody renews it any more
}

// Lease asks etcd for a lease and renews it.
func (c claims) Lease(ctx context.Context, life time.Duration) (store.Lease, error) {
	began := time.Now()
	resp, err := c.client.Grant(ctx, int64(life/time.Second))
	if err != nil {
		return nil, explain(ctx, "get a lease", err)
	}
	life = min(life, time.Duration(resp.TTL)*time.Second)
	renewing, cancel := context.WithCancel(c.reading)
	l := &lease{s: c.Store, id: resp.ID, life: life, lost: make(chan struct{}), cancel: cancel, done: make(chan struct{})}
	l.renewed(began)
	go l.renew(renewing)
	return l, nil
}

// renewed takes note that the store has heard of us after a moment. A tenth of
// the life is left out: no two clocks go at the same rate.
func (l *lease) renewed(asked time.Time) {
	until := asked.Add(l.life - l.life/10)
	l.until.Store(&until)
}

// renew renews the lease until it is over. What the store does not answer in time
// is asked again; when the time is up everything is over, whatever it says later.
func (l *lease) renew(ctx context.Context) {
	defer close(l.done)
	defer l.over()
	for {
		wait := time.NewTimer(l.life / renewals)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return
		}
		if !l.ask(ctx) {
			return
		}
	}
}

// ask renews the lease once; it is false when it is over.
func (l *lease) ask(ctx context.Context) bool {
	for {
		asked := time.Now()
		if !asked.Before(l.Until()) {
			return false
		}
		once, cancel := context.WithDeadline(ctx, minTime(l.Until(), asked.Add(l.life/renewals)))
		_, err := l.s.client.KeepAliveOnce(once, l.id)
		cancel()
		switch {
		case err == nil:
			l.renewed(asked)
			return true
		case errors.Is(err, rpctypes.ErrLeaseNotFound) || ctx.Err() != nil:
			return false
		}
		pause := time.NewTimer(min(noLeaderPause, time.Until(l.Until())))
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (l *lease) over() { l.end.Do(func() { close(l.lost) }) }

func (l *lease) Until() time.Time { return *l.until.Load() }

func (l *lease) Lost() <-chan struct{} { return l.lost }

// Close takes the lease back. A store that does not answer finds out by itself.
func (l *lease) Close() error {
	l.cancel()
	<-l.done
	ctx, cancel := context.WithTimeout(l.s.writing, l.life)
	defer cancel()
	if _, err := l.s.client.Revoke(ctx, l.id); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return explain(ctx, "give a lease back", err)
	}
	return nil
}

// Claim is two questions at most: whether there is none, and whether it may be
// replaced.
func (l *lease) Claim(ctx context.Context, name string, value []byte, over store.Rev) (store.Claim, error) {
	key := l.s.keys.claims + name
	put := clientv3.OpPut(key, string(value), clientv3.WithLease(l.id))
	free := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	for {
		resp, err := l.s.client.Txn(ctx).If(free).Then(put).Else(clientv3.OpGet(key)).Commit()
		if err != nil {
			return store.Claim{}, l.explain(ctx, err)
		}
		if resp.Succeeded {
			return store.Claim{Name: name, Value: value, Rev: store.Rev(resp.Header.Revision)}, nil
		}
		is := resp.Responses[0].GetResponseRange().Kvs[0]
		if is.Lease != int64(l.id) && is.ModRevision != int64(over) {
			return store.Claim{Name: name, Value: is.Value, Rev: store.Rev(is.ModRevision)}, store.ErrHeld
		}
		free = clientv3.Compare(clientv3.ModRevision(key), "=", is.ModRevision)
		over = store.Rev(is.ModRevision)
	}
}

// Note writes as many claims at a time as fit.
func (l *lease) Note(ctx context.Context, claims ...store.Claim) error {
	for part := range slices.Chunk(claims, claimOps) {
		ops := make([]clientv3.Op, len(part))
		for i, c := range part {
			if key := l.s.keys.claims + c.Name; c.Value == nil {
				ops[i] = clientv3.OpDelete(key)
			} else {
				ops[i] = clientv3.OpPut(key, string(c.Value), clientv3.WithLease(l.id))
			}
		}
		if _, err := l.s.client.Txn(ctx).Then(ops...).Commit(); err != nil {
			return l.explain(ctx, err)
		}
	}
	return nil
}

func (l *lease) explain(ctx context.Context, err error) error {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return store.ErrLost
	}
	return explain(ctx, "claim", err)
}

// FollowClaims reads all claims whenever it must begin again, and watches in
// between.
func (c claims) FollowClaims(ctx context.Context, prefix string, fn func([]store.Claim, bool) error) error {
	ctx, done, err := c.read(ctx)
	if err != nil {
		return err
	}
	defer done()
	for {
		err := c.followClaims(ctx, c.keys.claims+prefix, fn)
		if !errors.Is(err, rpctypes.ErrNoLeader) && !errors.Is(err, store.ErrCompacted) {
			return err
		}
		select {
		case <-time.After(noLeaderPause):
		case <-ctx.Done():
			return explain(ctx, "follow claims", ctx.Err())
		}
	}
}

func (c claims) followClaims(ctx context.Context, from string, fn func([]store.Claim, bool) error) error {
	resp, err := c.client.Get(ctx, from, clientv3.WithPrefix())
	if err != nil {
		return explain(ctx, "read claims", err)
	}
	all := make([]store.Claim, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		all[i] = store.Claim{Name: strings.TrimPrefix(string(kv.Key), c.keys.claims), Value: kv.Value, Rev: store.Rev(kv.ModRevision)}
	}
	if err := fn(all, true); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for got := range c.client.Watch(ctx, from, clientv3.WithPrefix(), clientv3.WithRev(resp.Header.Revision+1), clientv3.WithProgressNotify()) {
		if err := got.Err(); err != nil {
			return explain(ctx, "follow claims", err)
		}
		var some []store.Claim
		for _, ev := range got.Events {
			claim := store.Claim{Name: strings.TrimPrefix(string(ev.Kv.Key), c.keys.claims), Rev: store.Rev(ev.Kv.ModRevision)}
			if ev.Type == clientv3.EventTypePut {
				claim.Value = ev.Kv.Value
			}
			some = append(some, claim)
		}
		if len(some) == 0 {
			continue
		}
		if err := fn(some, false); err != nil {
			return err
		}
	}
	if ended := context.Cause(c.reading); ctx.Err() == nil && ended != nil {
		return ended
	}
	return fmt.Errorf("etcd: %w", explain(ctx, "follow claims", ctx.Err()))
}
