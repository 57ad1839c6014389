// Package torture holds a controller and its routers to their word for longer than CI
// has time for: requests made of our own specification and frames that nobody should
// send, damaged data directories, clocks that jump, routers that die. CI runs a short
// form of each; make torture the long one, and docs/reliability.md says what came of it.
package torture

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

type M = servertest.M

var seed = flag.Uint64("seed", 0, "seed of everything random; 0 takes one from the clock")

// chance returns a source of randomness, and says how to have it again.
func chance(t *testing.T) *rand.Rand {
	from := *seed
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -seed=%d", from)
	return rand.New(rand.NewPCG(from, 0))
}

// heap is how much memory is in use after all has gone that nobody needs.
func heap() uint64 {
	debug.FreeOSMemory()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
