package clock_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/ops/clock"
)

// TestNeverBack sets the machine's clock at random while time passes. What the clock
// tells never runs back, nor slower than time passes, and is never behind the
// machine's.
func TestNeverBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wall, passed := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), time.Duration(0)
		c := &clock.Clock{Wall: func() time.Time { return wall }, Passed: func() time.Duration { return passed }}
		last := c.Now()
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			step := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "passes"))
			set := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "set"))
			wall, passed = wall.Add(step+set), passed+step
			now := c.Now()
			if now.Sub(last) < step || now.Before(wall) {
				t.Fatalf("after %s, with the clock set by %s, it is %s; it was %s, and the machine says %s", step, set, now, last, wall)
			}
			if back := now.Sub(wall); (c.Fails() != "") != (back > clock.Apart) {
				t.Fatalf("the machine is %s behind: %q", back, c.Fails())
			}
			last = now
		}
	})
}

// TestSetBack says by how much, until the machine's clock is right again, or
// others say that it is.
func TestSetBack(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	passed := time.Duration(0)
	c := &clock.Clock{Wall: func() time.Time { return now }, Passed: func() time.Duration { return passed }}
	if got := c.Fails(); got != "" {
		t.Errorf("at the start: %s", got)
	}
	now = now.Add(-time.Hour)
	if got := c.Fails(); !strings.Contains(got, "set back by 1h0m0s") {
		t.Errorf("an hour back: %q", got)
	}
	now, passed = now.Add(90*time.Minute), passed+30*time.Minute
	if got := c.Fails(); got != "" {
		t.Errorf("set right: %s", got)
	}
	now = now.Add(-time.Hour)
	c.Believe()
	if got := c.Fails(); got != "" || !c.Now().Equal(now) {
		t.Errorf("when others say that it is right it is %s: %q", c.Now(), got)
	}
}
