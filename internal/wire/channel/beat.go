package channel

import (
	"sync"
	"time"
)

// Beats are the signs of life that were asked for and not given. Whoever echoes
// something else, or the same once more, has shown nothing: it would otherwise
// say itself how long a line takes.
type Beats struct {
	mu     sync.Mutex
	stamps [16]uint64 // the last first; 0 is none
}

// asked takes note of one more and returns its stamp, which no other has.
func (b *Beats) asked(now time.Time) uint64 {
	stamp := uint64(now.UnixNano())
	b.mu.Lock()
	defer b.mu.Unlock()
	copy(b.stamps[1:], b.stamps[:])
	b.stamps[0] = stamp
	return stamp
}

// answered reports whether a stamp was asked for, and forgets it.
func (b *Beats) answered(stamp uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, s := range b.stamps {
		if s == stamp && s != 0 {
			b.stamps[i] = 0
			return true
		}
	}
	return false
}
