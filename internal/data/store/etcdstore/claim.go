package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// renewals is how often a lease is renewed in its life. It has to outlast that there
// is no leader.
const renewals = 8

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

	mu     sync.Mutex
	end    *time.Timer // ends it unless the store hears of us
	latest int         // which renewal it was begun with
	lost   chan struct{}
	once   sync.Once
	stop   context.CancelFunc // ends the renewals
	done   chan struct{}      // closed when there are none any more
}

// Lease asks etcd for a lease and renews it. Timers begin before the store is
// asked, so that they end before it can think that we are gone.
func (c claims) Lease(ctx context.Context, life time.Duration) (store.Lease, error) {
	renewing, stop := context.WithCancel(c.reading)
	l := &lease{s: c.Store, life: life, lost: make(chan struct{}), stop: stop, done: make(chan struct{})}
	l.end = l.timer()
	resp, err := c.client.Grant(ctx, int64(life/time.Second))
	if err != nil {
		l.end.Stop()
		stop()
		return nil, explain(ctx, "get a lease", err)
	}
	l.id = resp.ID
	go l.renew(renewing)
	return l, nil
}

// timer ends the lease a tenth of its life too early: no two clocks go at the same
// rate.
func (l *lease) timer() *time.Timer { return time.AfterFunc(l.life-l.life/10, l.over) }

func (l *lease) over() {
	l.once.Do(func() { close(l.lost) })
	l.stop()
}

// renew renews the lease until it is over. It does not wait for an answer before it
// asks again: one that went to a leader that is gone does not come.
func (l *lease) renew(ctx context.Context) {
	defer close(l.done)
	defer l.over()
	defer l.rest()
	var asking sync.WaitGroup
	defer asking.Wait()
	places := make(chan struct{}, renewals)
	tick := time.NewTicker(l.life / renewals)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		select {
		case places <- struct{}{}:
			asking.Go(func() {
				defer func() { <-places }()
				l.ask(ctx, n)
			})
		default: // nobody answers
		}
	}
}

// ask renews the lease once. It gives up long before the timer that begins with it
// could end the lease.
func (l *lease) ask(ctx context.Context, n int) {
	next := l.timer()
	ctx, cancel := context.WithTimeout(ctx, l.life/2)
	defer cancel()
	_, err := l.s.client.KeepAliveOnce(ctx, l.id)
	switch {
	case err == nil:
		next = l.put(next, n)
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		l.over()
	}
	next.Stop() // or else the store may not have heard
}

// put has a timer end the lease instead of the one that does, unless a later one
// does already. It returns the one that is not needed any more.
func (l *lease) put(next *time.Timer, n int) (idle *time.Timer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < l.latest {
		return next
	}
	idle, l.end, l.latest = l.end, next, n
	return idle
}

// rest stops the timer of a lease that is over.
func (l *lease) rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end.Stop()
}

func (l *lease) Lost() <-chan struct{} { return l.lost }

// Close takes the lease back. A store that does not answer finds out by itself.
func (l *lease) Close() error {
	l.stop()
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
	none := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	free := none
	for {
		resp, err := l.s.client.Txn(ctx).If(free).Then(put).Else(clientv3.OpGet(key)).Commit()
		if err != nil {
			return store.Claim{}, l.explain(ctx, err)
		}
		if resp.Succeeded {
			return store.Claim{Name: name, Value: value, Rev: store.Rev(resp.Header.Revision)}, nil
		}
		found := resp.Responses[0].GetResponseRange().Kvs
		if len(found) == 0 { // it went between two questions
			free = none
			continue
		}
		is := found[0]
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
