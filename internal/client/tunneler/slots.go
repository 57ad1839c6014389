package tunneler

import (
	"context"
	"sync"
)

// slots is a number of things of which there are no more at once.
type slots chan struct{}

func (s slots) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s slots) give() { <-s }

// wait is take, for who has time.
func (s slots) wait(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxAsked is how many dials of one service are asked for at once; others wait for
// their turn. A router lets one identity have 64 on their way: a service whose host
// does not answer must leave some to others.
const maxAsked = 20

// shares is how many of the slots of an endpoint one dialer may have: one that
// takes all it can get leaves some to others.
type shares struct {
	most int // of one dialer

	mu sync.Mutex
	of map[string]int
}

// take reports whether a dialer may have one more. Of one whom the network does
// not name nobody knows how many it has.
func (s *shares) take(dialer string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dialer != "" && s.of[dialer] >= s.most {
		return false
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.of[dialer]++
	return true
}

func (s *shares) give(dialer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[dialer]--; s.of[dialer] == 0 {
		delete(s.of, dialer)
	}
}
