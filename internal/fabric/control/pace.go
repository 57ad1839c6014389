package control

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// What a router may do without end, and how much more it may do at once when it
// was quiet. Nothing of it is refused: the router has to wait.
const (
	// Of what it says so much is read: more than any has to say that carries
	// clients, and what others on the machine hardly notice.
	maxReadRate  = 32 << 20 // bytes a second
	maxReadAhead = 64 << 20
	frameCost    = 1 << 10 // bytes that a frame counts for beside its own

	// For it so much is written, so that the hosts of a large one are there soon
	// when it comes back.
	maxWriteRate  = 100 // a second
	maxWriteAhead = 10_000
)

// pace is how far somebody is ahead of what it may do.
type pace struct {
	rate, ahead int // a second, and at once

	mu   sync.Mutex
	paid time.Time // when what was done would have been at the rate
}

// take counts what is done, and returns how long that has to wait.
func (p *pace) take(now time.Time, n int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paid.Before(now) {
		p.paid = now
	}
	p.paid = p.paid.Add(p.lasts(n))
	return max(0, p.paid.Sub(now)-p.lasts(p.ahead))
}

func (p *pace) lasts(n int) time.Duration {
	return time.Duration(n) * time.Second / time.Duration(p.rate)
}

// paces are those of all that a router does.
type paces struct{ reading, writing pace }

func (p *paces) init() {
	p.reading.rate, p.reading.ahead = maxReadRate, maxReadAhead
	p.writing.rate, p.writing.ahead = maxWriteRate, maxWriteAhead
}

// pause waits for a while, or until ctx ends.
func pause(ctx context.Context, wait time.Duration) {
	if wait == 0 {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// seats are how many of a router's dials are thought about at a time: those that
// half of the processors can. Hundreds at once would have everybody else stand
// behind them in the scheduler's queue.
type seats chan struct{}

func newSeats() seats { return make(seats, max(1, runtime.GOMAXPROCS(0)/2)) }

type seatKey struct{}

// Think has a dial of the router wait until it may be thought about, until done
// is called. What waits meanwhile for others gives up its seat with [Rest].
func (r *Router) Think(ctx context.Context) (_ context.Context, done func()) {
	r.seats <- struct{}{}
	return context.WithValue(ctx, seatKey{}, r.seats), func() { <-r.seats }
}

// Rest gives the seat of what ctx is for to others, until resume is called.
func Rest(ctx context.Context) (resume func()) {
	s, ok := ctx.Value(seatKey{}).(seats)
	if !ok {
		return func() {}
	}
	<-s
	return func() { s <- struct{}{} }
}
