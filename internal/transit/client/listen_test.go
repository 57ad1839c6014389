package client

import (
	"testing"
	"time"
)

// TestPace tries again at once after a while that went well, and ever more
// slowly otherwise.
func TestPace(t *testing.T) {
	var p pace
	if got := p.after(time.Millisecond, true); got != 0 {
		t.Errorf("the first loss is made up for after %v", got)
	}
	total := time.Duration(0)
	for range 20 {
		total += p.after(time.Millisecond, true)
	}
	if total < 5*time.Minute || p.wait() != lastPause {
		t.Errorf("20 losses in a row take %v, and then %v each", total, p.wait())
	}
	if got := p.after(time.Minute, false); got != 0 || p.wait() != lastPause {
		t.Errorf("what failed for long waits %v, then %v", got, p.wait())
	}
	if got := p.after(calm, true); got != 0 || p.wait() != firstPause {
		t.Errorf("what went well waits %v, then %v", got, p.wait())
	}
}
