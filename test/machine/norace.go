//go:build !race

package machine

// Raced is whether the race detector looks on.
const Raced = false
