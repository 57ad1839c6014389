package state

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

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
	ctx, cancel := context.WithTimeout(asked, s.opt.Patience)
	defer cancel()
	req.ctx, req.done = ctx, make(chan error, 1)
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

// run calls fn, unless its caller has left. A panic in it must not take the
// owner down.
func (req *request) run(tx *Tx) (err error) {
	req.running.Lock()
	defer req.running.Unlock()
	if err := req.ctx.Err(); err != nil {
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
