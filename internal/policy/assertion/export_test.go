package assertion

import "testing"

// Bound has so few blocks kept apart, pairs counted and tried, so that small networks
// are large ones.
func Bound(tb testing.TB, blocks, counted, tried int) {
	was := [...]int{maxBlocks, maxCounted, maxTried}
	maxBlocks, maxCounted, maxTried = blocks, counted, tried
	tb.Cleanup(func() { maxBlocks, maxCounted, maxTried = was[0], was[1], was[2] })
}
