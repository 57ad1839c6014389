//go:build !race

package audit_test

const raced = false
