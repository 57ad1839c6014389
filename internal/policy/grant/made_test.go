package grant

import (
	"fmt"
	"testing"
)

// TestMade makes a token once while it is among the last, and keeps a bounded
// number of them.
func TestMade(t *testing.T) {
	var kept made
	signed := 0
	of := func(i int) string {
		return kept.of(facts{id: fmt.Sprint(i)}, func() string {
			signed++
			return fmt.Sprint(i)
		})
	}
	for i := range 5 * mostMade {
		for range 2 {
			if of(i) != fmt.Sprint(i) {
				t.Fatalf("%d has the token of another", i)
			}
		}
		of(max(0, i-mostMade+1)) // of some time ago
	}
	if signed != 5*mostMade {
		t.Errorf("%d were made of %d", signed, 5*mostMade)
	}
	if n := len(kept.young) + len(kept.aged); n > 2*mostMade {
		t.Errorf("%d are kept", n)
	}
}
