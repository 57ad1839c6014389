package authn

import (
	"sync"
	"time"
)

// A code has six characters, so whoever has a session may not try for long:
// this many wrong codes of an identity, and then one each time that this is over.
// To be right by chance takes years then, and who mistypes seldom waits.
const (
	maxGuesses  = 10
	guessWindow = 5 * time.Minute
)

// guesses counts the codes that were tried for each identity.
type guesses struct {
	mu     sync.Mutex
	tries  map[string]time.Time // by identity, when it is as if none had been tried
	pruned time.Time
}

// take counts a try before it is known whether it is wrong, so that many at
// the same time are no way around, and reports whether it may go on.
func (g *guesses) take(id string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prune(now)
	over := g.tries[id]
	if over.Before(now) {
		over = now
	}
	over = over.Add(guessWindow)
	if over.Sub(now) > maxGuesses*guessWindow {
		return false
	}
	g.tries[id] = over
	return true
}

// giveBack uncounts a try that was not a wrong code.
func (g *guesses) giveBack(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if over, tried := g.tries[id]; tried {
		g.tries[id] = over.Add(-guessWindow)
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
		g.tries = map[string]time.Time{}
	}
	g.pruned = now
	for id, over := range g.tries {
		if !over.After(now) {
			delete(g.tries, id)
		}
	}
}
