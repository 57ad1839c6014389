package limit

import (
	"errors"
	"sync"
)

// What is said to those who cannot have what they ask for now: others have it,
// or they have all that one party may have.
var (
	ErrFull  = errors.New("limit: there is no room for more")
	ErrShare = errors.New("limit: one party has all that it may")
)

// Slots is how many may do something at a time, and how many of them one party
// may have. Those who have shown more go ahead: strangers cannot have so many
// that none are left for members, nor both so many that none are left for
// admins. The zero value lets nobody.
type Slots struct {
	Max   int
	Share Share
	// Each is how many one party may have if that is less than its share; 0 for
	// its share.
	Each int

	mu    sync.Mutex
	taken [ranks]int
	by    map[Party]int
}

// reach is how many eighths of all the parties of a rank and those below it
// may have together.
var reach = [ranks]int{Stranger: 4, Member: 7, Admin: 8}

// Take takes a slot if there is one for the party. Whoever got one gives it
// back with Leave.
func (s *Slots) Take(p Party) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	below := 0
	for r := Stranger; r < ranks; r++ {
		below += s.taken[r]
		if r >= p.Rank && below >= max(1, s.Max*reach[r]/8) {
			return ErrFull
		}
	}
	if int64(s.by[p]) >= s.each() {
		return ErrShare
	}
	if s.by == nil {
		s.by = map[Party]int{}
	}
	s.by[p]++
	s.taken[p.Rank]++
	return nil
}

// each is how many one party may have.
func (s *Slots) each() int64 {
	share := s.Share.of(int64(s.Max))
	if s.Each > 0 {
		return min(share, int64(s.Each))
	}
	return share
}

// Leave gives a slot back.
func (s *Slots) Leave(p Party) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[p.Rank]--
	if s.by[p]--; s.by[p] == 0 {
		delete(s.by, p)
	}
}
