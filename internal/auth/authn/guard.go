package authn

import (
	"sync"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/ops/limit"
)

// attempt is somebody who shows a password: a stranger at an address, or an
// identity that is to confirm its own.
type attempt struct {
	name string // as it was sent, whether it exists or not
	from limit.Party
}

// guard slows down those who guess passwords, before there is any work in it.
// Wrong ones are counted by where they come from, by the name that they are
// for, and by both. Too many from one place, and that place has to wait; too
// many for one name, and those have to wait who were wrong about it. A place is
// counted apart for names that it was not wrong about of late, so that whoever
// guesses at a few does not keep others there from trying theirs.
//
// None of that keeps somebody out who logs in from where it has before: there
// only its own mistakes count, and those of others that are made in its name
// and from its address.
type guard struct {
	first    limit.Rate[limit.Party] // wrong about a name for the first time
	again    limit.Rate[limit.Party] // and once more
	names    limit.Rate[string]
	attempts limit.Rate[attempt]
	familiar familiar
}

// triesAMinute is how often a minute one place may be wrong about one name.
const triesAMinute = 10

// newGuard returns a guard that has whoever is wrong more than some times a
// minute wait; nobody if that is 0.
func newGuard(guesses int, now func() time.Time) *guard {
	return &guard{
		first:    limit.Rate[limit.Party]{PerMinute: guesses, Now: now},
		again:    limit.Rate[limit.Party]{PerMinute: guesses, Now: now},
		names:    limit.Rate[string]{PerMinute: guesses, Now: now},
		attempts: limit.Rate[attempt]{PerMinute: min(guesses, triesAMinute), Now: now},
		familiar: familiar{now: now},
	}
}

// allow returns why an attempt has to wait, nil if it need not.
func (g *guard) allow(try attempt) error {
	wait := g.attempts.Wait(try)
	if !g.familiar.has(try) {
		wait = max(wait, g.place(try).Wait(try.from))
		if g.names.Wait(try.name) > 0 {
			// Somebody guesses at this name. The one it belongs to may be
			// elsewhere, and has not been wrong of late.
			wait = max(wait, g.attempts.Since(try))
		}
	}
	if wait == 0 {
		return nil
	}
	return fault.Later("there were too many wrong passwords; wait and try again", wait)
}

// place is how often somebody may be wrong at a place.
func (g *guard) place(try attempt) *limit.Rate[limit.Party] {
	if g.attempts.Since(try) == 0 {
		return &g.first
	}
	return &g.again
}

// wrong counts an attempt that was refused.
func (g *guard) wrong(try attempt) {
	g.place(try).Note(try.from)
	g.names.Note(try.name)
	g.attempts.Note(try)
}

// familiar is where each name has shown its password.
type familiar struct {
	now func() time.Time

	mu   sync.Mutex
	last map[attempt]time.Time
}

const (
	// familiarFor is how long a place stays familiar.
	familiarFor = 30 * 24 * time.Hour
	// maxFamiliar bounds the memory for places. When there are more, some are
	// forgotten.
	maxFamiliar = 1 << 16
)

func (f *familiar) has(try attempt) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, ok := f.last[try]
	return ok && f.now().Sub(last) < familiarFor
}

func (f *familiar) note(try attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		f.last = map[attempt]time.Time{}
	}
	if _, known := f.last[try]; !known && len(f.last) >= maxFamiliar {
		for one, last := range f.last {
			if f.now().Sub(last) >= familiarFor || len(f.last) > maxFamiliar/2 {
				delete(f.last, one)
			}
		}
	}
	f.last[try] = f.now()
}
