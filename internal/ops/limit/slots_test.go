package limit_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/ops/limit"
)

// many are different parties of a rank.
func many(rank limit.Rank, n int) limit.Party {
	if rank == limit.Stranger {
		return at(fmt.Sprintf("192.0.2.%d", n))
	}
	return limit.Party{Rank: rank, ID: fmt.Sprint(n)}
}

// TestSlots has each rank take all that it can.
func TestSlots(t *testing.T) {
	s := limit.Slots{Max: 80, Share: 25}
	var taken []limit.Party
	for _, test := range []struct {
		rank limit.Rank
		want int // in all
	}{{limit.Stranger, 40}, {limit.Member, 70}, {limit.Admin, 80}, {limit.Stranger, 80}} {
		for i := range 200 {
			p := many(test.rank, i)
			if s.Take(p) == nil {
				taken = append(taken, p)
			}
		}
		if len(taken) != test.want {
			t.Errorf("with rank %d there are %d, want %d", test.rank, len(taken), test.want)
		}
	}
	for _, p := range taken {
		s.Leave(p)
	}
	for i := range 21 {
		if err := s.Take(stranger); i < 20 && err != nil || i == 20 && !errors.Is(err, limit.ErrShare) {
			t.Errorf("number %d of one party: %v", i, err)
		}
	}
	if err := s.Take(other); err != nil {
		t.Errorf("another party: %v", err)
	}
	if new(limit.Slots).Take(admin) == nil {
		t.Error("where there are no slots somebody gets one")
	}
}

// TestSlotsProperty takes and leaves at random: whatever happened, what is left
// over for each rank is as it should be.
func TestSlotsProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.IntRange(8, 64).Draw(rt, "most")
		s := limit.Slots{Max: most, Share: limit.Share(rapid.IntRange(1, 100).Draw(rt, "share"))}
		var taken []limit.Party
		count := func(below limit.Rank) (n int) {
			for _, p := range taken {
				if p.Rank <= below {
					n++
				}
			}
			return n
		}
		for range 200 {
			if len(taken) > 0 && rapid.Bool().Draw(rt, "leave") {
				i := rapid.IntRange(0, len(taken)-1).Draw(rt, "who")
				s.Leave(taken[i])
				taken = append(taken[:i], taken[i+1:]...)
				continue
			}
			p := many(limit.Rank(rapid.IntRange(0, 2).Draw(rt, "rank")), rapid.IntRange(0, 5).Draw(rt, "party"))
			if s.Take(p) == nil {
				taken = append(taken, p)
			}
			if count(limit.Stranger) > most/2 || count(limit.Member) > most*7/8 || len(taken) > most {
				rt.Fatalf("of %d slots strangers have %d, they and members %d, all %d", most, count(limit.Stranger), count(limit.Member), len(taken))
			}
		}
		for _, p := range taken {
			s.Leave(p)
		}
		if err := s.Take(admin); err != nil {
			rt.Fatalf("with nobody there an admin gets %v", err)
		}
	})
}

// TestSlotsEach gives nobody more than its number, though its share is larger.
func TestSlotsEach(t *testing.T) {
	s := limit.Slots{Max: 80, Share: 25, Each: 3}
	ann, bob := many(limit.Member, 1), many(limit.Member, 2)
	for range 3 {
		if err := s.Take(ann); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Take(ann); !errors.Is(err, limit.ErrShare) {
		t.Errorf("one more: %v", err)
	}
	if err := s.Take(bob); err != nil {
		t.Errorf("another: %v", err)
	}
	s.Leave(ann)
	if err := s.Take(ann); err != nil {
		t.Errorf("after one was given back: %v", err)
	}
}
