package state

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/kind"
)

// request is a write waiting for its turn.
type request struct {
	ctx  context.Context
	by   Author
	fn   func(*Tx) error
	done chan error // buffered, so that the owner never waits

	running sync.Mutex // held while fn runs

	patience *time.Timer // ends ctx
	ends     time.Time   // when it does
}

var errStopping = fault.New(fault.CodeUnavailable, "the controller is stopping")

var errSlow = &fault.Error{
	Code: fault.CodeUnavailable, Reason: "the store does not answer; it is not known whether the write was stored; look before trying again",
	Cause: errors.New("the store does not answer"),
}

var errNoAuthor = errors.New("state: a write must say who makes it")

// submit hands a write to the owner and waits for its answer.
func (s *State) submit(lane kind.Lane, req *request) error {
	if req.by.Kind == "" {
		return errNoAuthor
	}
	asked := req.ctx
	ctx, cancel := context.WithCancelCause(asked)
	defer cancel(nil)
	req.ctx, req.done = ctx, make(chan error, 1)
	req.ends, req.patience = time.Now().Add(s.opt.Patience), time.AfterFunc(s.opt.Patience, func() { cancel(errSlow) })
	defer req.patience.Stop()
	select {
	case s.queues[lane] <- req:
	default:
		return fault.New(fault.CodeUnavailable, "too many writes are waiting; try again shortly")
	}
	var left error
	select {
	case err := <-req.done:
		return err
	case <-req.ctx.Done():
		if left = errSlow; asked.Err() != nil {
			left = fmt.Errorf("waiting for a write: %w", asked.Err())
		}
		// The caller's variables are its own again when this returns: fn ends
		// first, and is not started any more.
		req.running.Lock()
		defer req.running.Unlock()
	case <-s.stopped:
		left = errStopping
	}
	select {
	case err := <-req.done:
		return err
	default:
		return left
	}
}

// serve runs a write that was submitted. What fn takes is no fault of the store.
func (req *request) serve(tx *Tx) error {
	start := time.Now()
	if !req.patience.Stop() { // its caller is about to leave, or has left
		return errSlow
	}
	defer func() { req.lengthen(time.Since(start)) }()
	return req.run(tx)
}

// run calls fn, unless its caller has left. A panic in it must not take the
// owner down.
func (req *request) run(tx *Tx) (err error) {
	req.running.Lock()
	defer req.running.Unlock()
	if err := context.Cause(req.ctx); err != nil {
		return err
	}
	defer func() {
		tx.over = true
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	return req.fn(tx)
}

// lengthen has the caller wait for longer, if it still waits.
func (req *request) lengthen(by time.Duration) {
	req.ends = req.ends.Add(by)
	req.patience.Reset(time.Until(req.ends))
}
