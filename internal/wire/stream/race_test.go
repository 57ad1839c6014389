//go:build race

package stream

// raced says that the race detector watches.
const raced = true
