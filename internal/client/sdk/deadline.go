package sdk

import (
	"context"
	"os"
	"sync"
	"time"
)

// deadline is until when one side of a connection may wait. It can be moved
// while somebody waits.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	done  chan struct{} // closed when the time has come
	cut   bool          // the time has come, for ever
}

func newDeadline() *deadline { return &deadline{done: make(chan struct{})} }

// passed is closed when the time has come.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done
}

// set moves the deadline; the zero time is never.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cut {
		return
	}
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	over := isClosed(d.done)
	left := time.Until(t)
	switch {
	case !t.IsZero() && left <= 0:
		if !over {
			close(d.done)
		}
		return
	case over:
		d.done = make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(left, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.timer == timer { // else it was moved meanwhile
			d.timer = nil
			close(d.done)
		}
	})
	d.timer = timer
}

// end makes the time come, and it stays so.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.cut = true; !isClosed(d.done) {
		close(d.done)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// context is one that ends with the deadline, for those who wait on one.
func (d *deadline) context() context.Context {
	return until{context.Background(), d.passed()}
}

type until struct {
	context.Context
	done <-chan struct{}
}

func (u until) Done() <-chan struct{} { return u.done }

func (u until) Err() error {
	if isClosed(u.done) {
		return os.ErrDeadlineExceeded
	}
	return nil
}
