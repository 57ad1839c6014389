// Package clock is the time by which things begin and end, whatever becomes of the
// machine's clock while a controller runs. It imports nothing of ours.
package clock

import (
	"fmt"
	"sync"
	"time"
)

// Apart is how far two clocks may be apart before that is worth a word.
const Apart = 5 * time.Second

// Clock tells a time that never runs back: what was to end at a moment does not
// last longer since somebody set the machine's clock meanwhile. One that is set ahead
// is followed at once, as after a machine has slept.
type Clock struct {
	// Wall is what the machine says that the time is, and Passed how much time has
	// passed since some moment, which nobody can set.
	Wall   func() time.Time
	Passed func() time.Duration

	mu     sync.Mutex
	latest time.Time     // that the machine has said
	passed time.Duration // when it did
}

// New returns the clock of this machine. now is its time, with what has passed in it.
func New(now func() time.Time) *Clock {
	start := now()
	return &Clock{
		Wall:   func() time.Time { return now().Round(0) },
		Passed: func() time.Duration { return now().Sub(start) },
	}
}

// Now is the time.
func (c *Clock) Now() time.Time {
	now, _ := c.look()
	return now
}

// Fails says that the machine's clock was set back.
func (c *Clock) Fails() string {
	if _, back := c.look(); back > Apart {
		return fmt.Sprintf("the machine's clock was set back by %s while the controller ran, which goes on with the time that has passed: set the clock right, or if it is right now, start the controller again", back.Round(time.Second))
	}
	return ""
}

// Believe has the machine's clock be right, though it was set back: others say so.
func (c *Clock) Believe() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest, c.passed = c.Wall(), c.Passed()
}

// look is what the time is, and by how much less the machine says.
func (c *Clock) look() (now time.Time, back time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, passed := c.Wall(), c.Passed()
	if now = c.latest.Add(passed - c.passed); wall.Before(now) {
		return now, now.Sub(wall)
	}
	c.latest, c.passed = wall, passed
	return wall, 0
}
