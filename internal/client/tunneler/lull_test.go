package tunneler

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestLull shows that memory is given back once when many connections have ended, and
// not while they are there or when there were few.
func TestLull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		freed := 0
		l := newLull()
		l.free = func() { freed++ }
		runs := func(what string, from, to, want int64) {
			t.Helper()
			for n := from; n != to; {
				if n < to {
					n++
				} else {
					n--
				}
				l.is(n)
			}
			time.Sleep(2 * lullAfter)
			synctest.Wait()
			if freed != int(want) {
				t.Errorf("%s: memory was given back %d times, and not %d", what, freed, want)
			}
		}
		runs("few begin", 0, crowd-1, 0)
		runs("few end", crowd-1, 0, 0)
		runs("many begin", 0, 50, 0)
		runs("some end", 50, 30, 0)
		runs("most end", 30, 0, 1)
		runs("few begin again", 0, crowd-1, 1)
		runs("few end again", crowd-1, 0, 1)
	})
}
