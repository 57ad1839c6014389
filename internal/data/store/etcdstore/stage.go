package etcdstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// largeLimits is what a batch may hold that is written in several transactions.
var largeLimits = store.Limits{Ops: 40000, Bytes: 64 << 20}

const (
	// stageTries is how often a batch is staged anew that others have put aside.
	stageTries = 3
	// abreast is how many requests for one batch are under way at a time.
	abreast = 8
	// pageShare is about what a record takes in etcd's file beside its text.
	pageShare = 200
	// tidyTime is how long it may take to put aside what has failed.
	tidyTime = time.Second
)

// errAside says that somebody has put a staged batch aside before it was
// decided.
var errAside = errors.New("etcd: the staged batch was put aside")

// stage writes a batch in several transactions. Nothing has happened before the
// one that decides.
func (s *Store) stage(ctx context.Context, b batch) (at store.Written, err error) {
	b.ops = apart(b.ops)
	// What cannot be written shows before it is sent.
	if err := s.settle(ctx); err != nil {
		return at, err
	}
	if err := s.verify(ctx, b); err != nil {
		return at, err
	}
	if err := s.sweep(ctx); err != nil {
		return at, err
	}
	if err := s.room(b.ops); err != nil {
		return at, err
	}
	parts := cut(b.ops, s.quick)
	for range stageTries {
		if at, err = s.attempt(ctx, b, parts); !errors.Is(err, errAside) {
			return at, err
		}
	}
	return at, store.ErrConflict
}

// apart is ops each of which is told of by itself: who carries them out may be
// another, after a part of them was.
func apart(ops []store.Op) []store.Op {
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].Next = false
	}
	return ops
}

// room looks whether a member of our own has space for a batch, which is written
// twice. One that is full could not carry out what has happened.
func (s *Store) room(ops []store.Op) error {
	if s.member == nil {
		return nil // what a cluster has is its operators' to know
	}
	size := s.member.etcd.Server.Backend().SizeInUse()
	for _, op := range ops {
		size += 2 * int64(len(op.Key)+len(op.Value)+pageShare)
	}
	if size > s.member.quota {
		return fmt.Errorf("%w: the store has no room for it", store.ErrTooLarge)
	}
	return nil
}

// attempt stages the parts, takes hold of the store, decides, and carries the
// parts out.
func (s *Store) attempt(ctx context.Context, b batch, parts []part) (at store.Written, err error) {
	h := &hold{staged: staged{ID: rand.Text(), Parts: len(parts)}}
	err = each(ctx, parts, func(ctx context.Context, p part) error {
		return s.persist(ctx, func(ctx context.Context) error {
			_, err := s.client.Put(ctx, s.keys.part(h.ID, p.n), string(encodePart(p.ops)))
			return explained(ctx, "stage", err)
		})
	})
	if err == nil {
		err = s.take(ctx, b, h)
	}
	if err == nil {
		if err = s.verify(ctx, b); err == nil {
			at, err = s.decide(ctx, b, h)
		}
	}
	if err != nil {
		tidying, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
		defer cancel()
		_ = s.putAside(tidying, h) // or somebody else does, later
		return store.Written{}, err
	}
	// It has happened, whether or not we get to the end of it: whoever writes
	// next does otherwise.
	_ = s.carryOut(ctx, h, int64(at.Rev), parts)
	return at, nil
}

// verify looks whether the guards of a batch hold.
func (s *Store) verify(ctx context.Context, b batch) error {
	if err := s.refresh(ctx, false); err != nil {
		return explain(ctx, b.doing, err)
	}
	resp, err := s.patientTxn(ctx, b.guards)
	if err != nil {
		return explain(ctx, b.doing, err)
	}
	if !resp.Succeeded {
		return store.ErrConflict
	}
	var guarded []store.Op
	for _, op := range b.ops {
		if op.Prev != store.Any || op.Value == nil {
			guarded = append(guarded, op)
		}
	}
	return each(ctx, cut(guarded, store.Limits{Ops: max(1, s.quick.Ops/2), Bytes: s.quick.Bytes}), func(ctx context.Context, p part) error {
		resp, err := s.patientTxn(ctx, s.guard(p.ops))
		if err == nil && !resp.Succeeded {
			return store.ErrConflict
		}
		return explained(ctx, b.doing, err)
	})
}

// take gets hold of the store. From then on nobody else writes. What is left of an
// attempt whose answer was lost is known by its name, and comes to nothing once
// the parts are gone.
func (s *Store) take(ctx context.Context, b batch, h *hold) error {
	guards := append(b.guards[:len(b.guards):len(b.guards)], absent(s.keys.hold))
	if h.Parts > 0 {
		guards = append(guards, exists(s.keys.part(h.ID, 0)))
	}
	for {
		var resp *clientv3.TxnResponse
		err := s.persist(ctx, func(ctx context.Context) (err error) {
			resp, err = s.client.Txn(ctx).If(guards...).Then(clientv3.OpPut(s.keys.hold, h.text())).Else(clientv3.OpGet(s.keys.hold)).Commit()
			return explained(ctx, b.doing, err)
		})
		if err != nil {
			return err
		}
		if resp.Succeeded {
			h.made, h.moved = resp.Header.Revision, resp.Header.Revision
			return s.complete(ctx, h)
		}
		is, err := holdOf(resp.Responses[0].GetResponseRange().Kvs)
		switch {
		case err != nil:
			return err
		case is == nil:
			return s.refused(ctx, b)
		case is.ID == h.ID:
			h.made, h.moved = is.made, is.moved
			return s.complete(ctx, h)
		}
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
}

// refused says why nobody holds the store and it could not be held.
func (s *Store) refused(ctx context.Context, b batch) error {
	resp, err := s.patientTxn(ctx, b.guards)
	switch {
	case err != nil:
		return explain(ctx, b.doing, err)
	case resp.Succeeded:
		return errAside // the parts are gone
	}
	return store.ErrConflict
}

// complete looks whether all parts are there. Before there was a hold they could
// be taken for what somebody has left behind.
func (s *Store) complete(ctx context.Context, h *hold) error {
	resp, err := s.patientGet(ctx, s.keys.parts(h.ID), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err == nil && resp.Count != int64(h.Parts) {
		return errAside
	}
	return explained(ctx, "stage", err)
}

// decide closes the batch: it has happened.
func (s *Store) decide(ctx context.Context, b batch, h *hold) (store.Written, error) {
	value, err := closing{Head: b.head, Staged: &h.staged}.text()
	if err != nil {
		return store.Written{}, err
	}
	decided := *h
	decided.Closes = b.closes[len(s.keys.prefix):]
	then := append(s.before(), clientv3.OpPut(s.keys.hold, decided.text()), clientv3.OpPut(b.closes, value))
	var resp *clientv3.TxnResponse
	lost := false
	err = s.persist(ctx, func(ctx context.Context) (err error) {
		resp, err = s.client.Txn(ctx).If(at(s.keys.hold, store.Rev(h.moved))).Then(then...).Commit()
		lost = lost || err != nil
		return explained(ctx, b.doing, err)
	})
	switch {
	case err != nil:
		return store.Written{}, err
	case resp.Succeeded:
		*h = decided
		h.moved = resp.Header.Revision
		return written(resp), nil
	case !lost:
		return store.Written{}, errAside
	}
	// It may have happened before, and somebody else may have carried it out.
	var where store.Written
	found := false
	err = s.persist(ctx, func(ctx context.Context) (err error) {
		where, found, err = s.find(ctx, b.closes, value, h.moved)
		return err
	})
	if err == nil && !found {
		err = errAside
	}
	if err == nil {
		*h = decided
	}
	return where, err
}

// explained is explain for what may not be an error.
func explained(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	return explain(ctx, doing, err)
}

// each calls do for every part, several at a time, until one fails.
func each(ctx context.Context, parts []part, do func(context.Context, part) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	places := make(chan struct{}, abreast)
	for _, p := range parts {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-places }()
			if err := do(ctx, p); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
