//go:build race

package cluster_test

// raced is whether the race detector looks on.
const raced = true
