package state

import (
	"sync"

	"netkeep.internal/internal/data/store"
)

// Cursor is somebody who reads the store's own history, and for whom it is kept
// from there on, within reason.
type Cursor struct{ of *cursors }

// cursors is all of a State's.
type cursors struct {
	mu sync.Mutex
	at map[*Cursor]store.Rev
}

// Cursor has history kept from a revision on, until it is moved or closed.
func (s *State) Cursor(rev store.Rev) *Cursor {
	c := &Cursor{of: &s.cursors}
	c.Move(rev)
	return c
}

// Move has history kept from another revision on.
func (c *Cursor) Move(rev store.Rev) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.at == nil {
		c.of.at = map[*Cursor]store.Rev{}
	}
	c.of.at[c] = rev
}

// Close has nothing kept any more.
func (c *Cursor) Close() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.of.at, c)
}

// Wanted is the revision up to which history may be forgotten for all that
// cursors want, at most as far as rev.
func (s *State) Wanted(rev store.Rev) store.Rev {
	s.cursors.mu.Lock()
	defer s.cursors.mu.Unlock()
	for _, at := range s.cursors.at {
		rev = min(rev, at)
	}
	return rev
}
