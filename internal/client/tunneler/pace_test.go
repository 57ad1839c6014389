package tunneler

import (
	"testing"
	"time"
)

// TestPace lets a bounded number of lines through each minute.
func TestPace(t *testing.T) {
	var p pace
	for minute := range 2 {
		through := 0
		for i := range 1000 {
			if p.take(time.Unix(int64(minute)*60, int64(i))) {
				through++
			}
		}
		if through != maxLines {
			t.Errorf("%d lines in minute %d, want %d", through, minute, maxLines)
		}
	}
}
