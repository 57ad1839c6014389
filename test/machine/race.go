//go:build race

package machine

// Raced is whether the race detector looks on, with which everything takes ten times as
// long: what is done often and alike is then done less often.
const Raced = true
