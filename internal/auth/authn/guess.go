package authn

import (
	"sync"
	"time"
)

// A code has six characters, so whoever has a session may not try for long:
// this many wrong codes of an identity within this time, and then none until
// the time is over.
const (
	maxGuesses  = 10
	guessWindow = 5 * time.Minute
)

// guesses counts the codes that were tried for each identity.
type guesses struct {
	mu     sync.Mutex
	tries  map[string]*tries // by identity
	pruned time.Time
}

// tries is what was tried since a moment.
type tries struct {
	since time.Time
	count int
}

// take counts a try before it is known whether it is wrong, so that many at
// the same time are no way around, and reports whether it may go on.
func (g *guesses) take(id string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prune(now)
	t := g.tries[id]
	if t == nil || now.Sub(t.since) >= guessWindow {
		t = &tries{since: now}
		g.tries[id] = t
	}
	if t.count >= maxGuesses {
		return false
	}
	t.count++
	return true
}

// giveBack uncounts a try that was not a wrong code.
func (g *guesses) giveBack(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.tries[id]; t != nil && t.count > 0 {
		t.count--
	}
}

// forget uncounts all tries, after a right code.
func (g *guesses) forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.tries, id)
}

// prune drops what no longer counts, once in a while.
func (g *guesses) prune(now time.Time) {
	if g.tries != nil && now.Sub(g.pruned) < guessWindow {
		return
	}
	if g.tries == nil {
		g.tries = map[string]*tries{}
	}
	g.pruned = now
	for id, t := range g.tries {
		if now.Sub(t.since) >= guessWindow {
			delete(g.tries, id)
		}
	}
}
