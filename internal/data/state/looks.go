package state

import (
	"context"
	"sync"
	"time"

	"netkeep.internal/internal/data/store"
)

// Rev is a revision of the store, for those who know nothing else of it.
type Rev = store.Rev

const (
	// lookPause is how much time is between two looks: however many ask, the
	// store is not asked more often.
	lookPause = 50 * time.Millisecond
	// lookTime is how long one may take.
	lookTime = 2 * time.Second
)

// Looks is [State.Current] for whoever asks, strangers too: all who ask while a
// look is under way share the next one. Without Run nobody is answered.
type Looks struct {
	state *State
	wake  chan struct{}

	mu   sync.Mutex
	next *look // nil if nobody waits
}

// look is one that has not begun yet, or that who asked for it waits for.
type look struct {
	done chan struct{}
	snap *Snapshot
	err  error
}

// NewLooks returns looks at the store of a state.
func NewLooks(s *State) *Looks { return &Looks{state: s, wake: make(chan struct{}, 1)} }

// Current waits for a snapshot that has all that the store had when it was asked
// for, or later.
func (l *Looks) Current(ctx context.Context) (*Snapshot, error) {
	one := l.join()
	select {
	case <-one.done:
		return one.snap, one.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join returns the next look that begins.
func (l *Looks) join() *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &look{done: make(chan struct{})}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	return l.next
}

// begin returns the look that is due; who asks from now on gets another.
func (l *Looks) begin() *look {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.next
	l.next = nil
	return one
}

// Run looks whenever somebody asks, until ctx ends.
func (l *Looks) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		if one := l.begin(); one != nil {
			l.look(ctx, one)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookPause):
		}
	}
}

func (l *Looks) look(ctx context.Context, one *look) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	one.snap, one.err = l.state.Current(ctx)
	close(one.done)
}
