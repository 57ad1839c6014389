package machine_test

import (
	"testing"

	"netkeep.internal/test/machine"
)

// Of 12,000 ports 300 that are chosen by chance alone would have some twice almost always.
func TestPortIsToldOnce(t *testing.T) {
	told := make(map[string]bool)
	for range 300 {
		port := machine.Port(t)
		if told[port] {
			t.Fatalf("port %s was told twice", port)
		}
		told[port] = true
	}
}
