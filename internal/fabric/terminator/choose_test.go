package terminator

import (
	"testing"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

func candidate(id, precedence string, cost, path int) Candidate {
	return Candidate{Terminator: &model.Terminator{Meta: kind.Meta{ID: id}, Precedence: precedence, Cost: cost}, Path: path, rank: rank(precedence)}
}

// tally chooses many times and counts who was chosen.
func tally(t *testing.T, strategy string, among []Candidate, sticky string) map[string]int {
	t.Helper()
	chosen := map[string]int{}
	for range 2000 {
		c, ok := Choose(strategy, among, sticky)
		if !ok {
			t.Fatal("nobody was chosen")
		}
		chosen[c.ID]++
	}
	return chosen
}

// TestChoose has every strategy choose among hosts that differ.
func TestChoose(t *testing.T) {
	if _, ok := Choose(SmartRouting, nil, ""); ok {
		t.Error("nobody hosts, and somebody was chosen")
	}
	among := []Candidate{
		candidate("cheap", model.PrecedenceDefault, 1, 1), candidate("also cheap", model.PrecedenceDefault, 0, 2),
		candidate("dear", model.PrecedenceDefault, 9, 9), candidate("failed", model.PrecedenceFailed, 0, 0),
	}
	smart := tally(t, SmartRouting, among, "")
	if smart["cheap"] < 800 || smart["also cheap"] < 800 || len(smart) != 2 {
		t.Errorf("smartrouting chose %v", smart)
	}
	if random := tally(t, Random, among, ""); random["dear"] < 500 || random["failed"] > 0 {
		t.Errorf("random chose %v", random)
	}
	// 1/3, 1/3 and 1/19 of the whole.
	if weighted := tally(t, Weighted, among, ""); weighted["dear"] < 60 || weighted["dear"] > 300 || weighted["cheap"] < 700 || weighted["failed"] > 0 {
		t.Errorf("weighted chose %v", weighted)
	}
	if sticky := tally(t, Sticky, among, "dear"); sticky["dear"] != 2000 {
		t.Errorf("sticky chose %v", sticky)
	}
	if sticky := tally(t, Sticky, among, "gone"); sticky["dear"] > 0 || len(sticky) != 2 {
		t.Errorf("sticky without its host chose %v", sticky)
	}
	if last := tally(t, SmartRouting, among[3:], ""); last["failed"] != 2000 {
		t.Errorf("of those that failed %v were chosen", last)
	}
	required := append(among, candidate("required", model.PrecedenceRequired, 60000, 60000))
	for _, strategy := range []string{SmartRouting, Random, Weighted, Sticky} {
		if first := tally(t, strategy, required, "cheap"); first["required"] != 2000 {
			t.Errorf("%s chose %v", strategy, first)
		}
	}
}
