package tunneler

import "testing"

// TestShares has one dialer take all that it can get: it leaves some, gets more
// when it gives some back, and nothing is kept of who has none.
func TestShares(t *testing.T) {
	s := &shares{most: 3}
	for i := range 5 {
		if got := s.take("greedy"); got != (i < 3) {
			t.Fatalf("slot %d: %v", i, got)
		}
	}
	if !s.take("other") || !s.take("") || !s.take("") || !s.take("") || !s.take("") {
		t.Error("others get none")
	}
	s.give("greedy")
	if !s.take("greedy") || s.take("greedy") {
		t.Error("what was given back is not one")
	}
	for range 3 {
		s.give("greedy")
	}
	s.give("other")
	for range 4 {
		s.give("")
	}
	if len(s.of) != 0 {
		t.Errorf("left: %v", s.of)
	}
}
