//go:build race

package audit_test

// raced says that the race detector watches.
const raced = true
