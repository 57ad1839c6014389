package state

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// request is a write waiting for its turn.
type request struct {
	ctx  context.Context
	by   Author
	fn   func(*Tx) error
	part bool       // of a write that was judged as a whole
	done chan error // buffered, so that the owner never waits

	running sync.Mutex // held while fn runs
	begun   bool       // whether fn has run: its outcome is decided, or being decided
	left    bool       // whether the caller has

	patience *time.Timer // until the caller leaves
	ends     time.Time   // when it does
}

var errStopping = fault.New(fault.CodeUnavailable, "the controller is stopping")

var errSlow = &fault.Error{
	Code: fault.CodeUnavailable, Reason: "the store does not answer; it is not known whether the write was stored; look before trying again",
	Cause: errors.New("the store does not answer"),
}

var errWaited = &fault.Error{
	Code: fault.CodeUnavailable, Reason: "the store does not answer, and the write has not begun: nothing was stored; try again",
	Cause: errors.New("a write did not get its turn"),
}

// errLeft is for a caller that does not hear it.
var errLeft = errors.New("state: nobody waits for the write any more")

var errNoAuthor = errors.New("state: a write must say who makes it")

// submit hands a write to the owner and waits for its answer.
func (s *State) submit(lane kind.Lane, req *request) error {
	if req.by.Kind == "" {
		return errNoAuthor
	}
	decision := decisionOf(req.ctx)
	if decision.made.Load() {
		req.ctx = context.WithoutCancel(req.ctx)
	}
	err := s.attempt(lane, req)
	if err == nil {
		decision.made.Store(true)
	}
	return err
}

// attempt waits for a write until it is decided. A caller whose time is over
// leaves only as long as the write has not run: from then on it may be stored, and
// who has asked for it is told what became of it.
func (s *State) attempt(lane kind.Lane, req *request) error {
	req.done = make(chan error, 1)
	req.ends, req.patience = time.Now().Add(s.opt.Patience), time.NewTimer(s.opt.Patience)
	defer req.patience.Stop()
	select {
	case s.queues[lane] <- req:
	default:
		return fault.New(fault.CodeUnavailable, "too many writes are waiting; try again shortly")
	}
	for asked := req.ctx.Done(); ; asked = nil {
		select {
		case err := <-req.done:
			return err
		case <-asked:
			if req.leave(false) {
				return req.answered(fmt.Errorf("waiting for a write: %w", req.ctx.Err()))
			}
		case <-req.patience.C:
			if req.leave(false) {
				return req.answered(errWaited)
			}
			req.leave(true)
			return req.answered(errSlow)
		case <-s.stopped:
			return req.answered(errStopping)
		}
	}
}

// leave is for a caller whose time is over. One whose write has run has to stay,
// unless it must not. The caller's variables are its own again: fn has ended, and
// is not started any more.
func (req *request) leave(must bool) (left bool) {
	req.running.Lock()
	defer req.running.Unlock()
	req.left = must || !req.begun
	return req.left
}

// answered is the owner's answer if there is one, and else what is said without. That its
// caller had left by then is none.
func (req *request) answered(otherwise error) error {
	select {
	case err := <-req.done:
		if !errors.Is(err, errLeft) {
			return err
		}
	default:
	}
	return otherwise
}

// serve runs a write that was submitted. What fn takes is no fault of the store.
func (req *request) serve(tx *Tx) error {
	start := time.Now()
	if !req.patience.Stop() { // its caller is about to leave, or has left
		return errWaited
	}
	defer func() { req.lengthen(time.Since(start)) }()
	return req.run(tx)
}

// run calls fn, unless its caller has left. A panic in it must not take the
// owner down.
func (req *request) run(tx *Tx) (err error) {
	req.running.Lock()
	defer req.running.Unlock()
	if req.left {
		return errLeft
	}
	if err := context.Cause(req.ctx); err != nil {
		return err
	}
	req.begun = true
	defer func() {
		tx.over = true
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a write: %v\n%s", p, debug.Stack())
		}
	}()
	if err := req.fn(tx); err != nil {
		return err
	}
	return tx.settle()
}

// lengthen has the caller wait for longer, if it still waits.
func (req *request) lengthen(by time.Duration) {
	req.ends = req.ends.Add(by)
	req.patience.Reset(time.Until(req.ends))
}
