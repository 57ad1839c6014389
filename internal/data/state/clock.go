package state

import "time"

// tick is what lies between the times of two records.
const tick = time.Microsecond

// clock gives every record that a commit writes a time of its own, so that
// their times are in the order in which they were written. It moves by itself,
// a tick a record: a commit ends later than it began, and the next begins later
// than that.
type clock struct {
	start time.Time // of the commit
	next  time.Time // for the next record
}

// newClock returns a clock for a commit that begins now, or as soon as all
// before it have ended.
func newClock(now time.Time, before ...time.Time) *clock {
	now = now.UTC().Truncate(tick)
	for _, end := range before {
		if !now.After(end) {
			now = end.Add(tick)
		}
	}
	return &clock{start: now, next: now}
}

// stamp returns the time of the next record.
func (c *clock) stamp() time.Time {
	t := c.next
	c.next = t.Add(tick)
	return t
}

// time is that of the commit: when its last record was written.
func (c *clock) time() time.Time {
	if c.next.After(c.start) {
		return c.next.Add(-tick)
	}
	return c.start
}
