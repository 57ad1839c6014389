package circuit

import (
	"strings"
	"testing"
)

// TestPasted makes ids as controllers do, each after a start of its own: none of
// them looks like an option of a command line.
func TestPasted(t *testing.T) {
	for range 2000 {
		if id := circuitID(newEpoch(), "dial", "host"); strings.HasPrefix(id, "-") || strings.HasPrefix(id, "_") {
			t.Fatalf("a circuit is called %s", id)
		}
	}
}
