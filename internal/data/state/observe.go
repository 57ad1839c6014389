package state

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
)

// Stored is one attempt to write to the store, which several writes share.
type Stored struct {
	Lane   kind.Lane
	Writes int
	Start  time.Time
	Took   time.Duration
	Err    error // nil if it was stored

	group *group
}

// Contexts yields the context of every write that the attempt was made for.
func (s Stored) Contexts() iter.Seq[context.Context] {
	return func(yield func(context.Context) bool) {
		for _, a := range s.group.answers {
			if !yield(a.req.ctx) {
				return
			}
		}
	}
}

// Waiting is how many writes of a lane wait for their turn.
func (s *State) Waiting(lane kind.Lane) int { return len(s.queues[lane]) }

// Lag is for how long memory has been behind the store, as far as is known: a
// write of our own that the feed has yet to repeat, a feed that broke off, or
// a load that failed. It is 0 while none of these is so.
func (s *State) Lag() time.Duration {
	now := time.Now()
	return max(s.unrepeated.lasted(now), s.brokenOff.lasted(now), s.unloaded.lasted(now))
}

// stretch is the time for which something has been so. The zero value has not
// begun.
type stretch struct{ since atomic.Int64 }

// begin starts the stretch, unless it has begun.
func (s *stretch) begin(now time.Time) { s.since.CompareAndSwap(0, now.UnixNano()) }

func (s *stretch) end() { s.since.Store(0) }

func (s *stretch) lasted(now time.Time) time.Duration {
	since := s.since.Load()
	if since == 0 {
		return 0
	}
	return max(1, time.Duration(now.UnixNano()-since))
}

// await notes a write of our own that the feed has to repeat.
func (s *State) await(rev store.Rev) {
	s.awaited = rev
	s.unrepeated.begin(time.Now())
}

// arrived notes how far the feed has come. Of several writes that it has to
// repeat the last counts from here on: when the others were made is forgotten,
// so a feed that moves is never said to be further behind than it is.
func (s *State) arrived(rev store.Rev) {
	s.fed = rev
	s.unrepeated.end()
	if s.awaited > rev {
		s.unrepeated.begin(time.Now())
	}
}
