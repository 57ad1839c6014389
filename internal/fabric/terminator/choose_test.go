package terminator

import (
	"math/rand/v2"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

func candidate(id, precedence string, cost, path int) Candidate {
	return Candidate{Terminator: &model.Terminator{Meta: kind.Meta{ID: id}, Precedence: precedence, Cost: cost}, Path: path}
}

// tally chooses many times and counts who was chosen.
func tally(t *testing.T, snap *state.Snapshot, strategy string, among []Candidate, sticky string) map[string]int {
	t.Helper()
	chosen := map[string]int{}
	for range 2000 {
		c, ok := chooseOf(snap, strategy, among, sticky)
		if !ok {
			t.Fatal("nobody was chosen")
		}
		chosen[c.ID]++
	}
	return chosen
}

// TestChoose has every strategy choose among hosts that differ.
func TestChoose(t *testing.T) {
	f := newField(t)
	defer f.State.Close()
	snap := f.State.Snapshot()
	if _, ok := chooseOf(snap, SmartRouting, nil, ""); ok {
		t.Error("nobody hosts, and somebody was chosen")
	}
	among := []Candidate{
		candidate("cheap", model.PrecedenceDefault, 1, 1), candidate("also cheap", model.PrecedenceDefault, 0, 2),
		candidate("dear", model.PrecedenceDefault, 9, 9), candidate("failed", model.PrecedenceFailed, 0, 0),
	}
	smart := tally(t, snap, SmartRouting, among, "")
	if smart["cheap"] < 800 || smart["also cheap"] < 800 || len(smart) != 2 {
		t.Errorf("smartrouting chose %v", smart)
	}
	if random := tally(t, snap, Random, among, ""); random["dear"] < 500 || random["failed"] > 0 {
		t.Errorf("random chose %v", random)
	}
	// 1/3, 1/3 and 1/19 of the whole.
	if weighted := tally(t, snap, Weighted, among, ""); weighted["dear"] < 60 || weighted["dear"] > 300 || weighted["cheap"] < 700 || weighted["failed"] > 0 {
		t.Errorf("weighted chose %v", weighted)
	}
	if sticky := tally(t, snap, Sticky, among, "dear"); sticky["dear"] != 2000 {
		t.Errorf("sticky chose %v", sticky)
	}
	if sticky := tally(t, snap, Sticky, among, "gone"); sticky["dear"] > 0 || len(sticky) != 2 {
		t.Errorf("sticky without its host chose %v", sticky)
	}
	if last := tally(t, snap, SmartRouting, among[3:], ""); last["failed"] != 2000 {
		t.Errorf("of those that failed %v were chosen", last)
	}
	required := append(among, candidate("required", model.PrecedenceRequired, 60000, 60000))
	for _, strategy := range []string{SmartRouting, Random, Weighted, Sticky} {
		if first := tally(t, snap, strategy, required, "cheap"); first["required"] != 2000 {
			t.Errorf("%s chose %v", strategy, first)
		}
	}
}

// chooseOf is what Hosts.Choose does, by a look at all candidates: those of the
// best precedence go first; among them the service's strategy decides. sticky is
// the terminator that a client wants again, if it is known to it.
func chooseOf(snap *state.Snapshot, strategy string, among []Candidate, sticky string) (chosen Candidate, ok bool) {
	best := first(snap, among)
	if len(best) == 0 {
		return Candidate{}, false
	}
	switch strategy {
	case Random:
		return best[rand.IntN(len(best))], true
	case Weighted:
		return draw(best, func(c Candidate) float64 { return weight(c.cost()) }), true
	case Sticky:
		for _, c := range best {
			if c.ID == sticky {
				return c, true
			}
		}
	}
	return cheapest(best), true
}

// first returns the candidates of the best precedence that there is.
func first(snap *state.Snapshot, among []Candidate) []Candidate {
	var best []Candidate
	at := last + 1
	for _, c := range among {
		switch rank := standing(snap, c.Terminator); {
		case rank < at:
			best, at = append(best[:0], c), rank
		case rank == at:
			best = append(best, c)
		}
	}
	return best
}

// cheapest returns one of those that cost least, so that equals share the
// load.
func cheapest(among []Candidate) Candidate {
	best, n := among[0], 1
	for _, c := range among[1:] {
		switch {
		case c.cost() < best.cost():
			best, n = c, 1
		case c.cost() == best.cost():
			if n++; rand.IntN(n) == 0 {
				best = c
			}
		}
	}
	return best
}
