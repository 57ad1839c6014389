package sdk

import (
	"testing"

	"netkeep.internal/internal/wire/stream"
)

// TestWindow shows that few connections may have as much on their way as one may, and
// many no more together than a few times what there is for all.
func TestWindow(t *testing.T) {
	r := &router{ends: map[uint32]end{}}
	all := 0
	for n := range uint32(1000) {
		r.ends[n] = &Conn{}
		window := min(r.window(), stream.Window)
		all += window
		switch {
		case n < 8 && window != stream.Window:
			t.Fatalf("connection %d may have %d bytes on their way", n, window)
		case window < leastWindow:
			t.Fatalf("connection %d may have no more than %d bytes on their way", n, window)
		}
		if n == 49 && all > 3*windows || all > 8*windows {
			t.Fatalf("%d connections may have %d bytes on their way", n+1, all)
		}
	}
}
