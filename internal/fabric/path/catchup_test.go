package path

import (
	"fmt"
	"testing"
)

// visits returns how many routers were worked on to answer a question.
func visits(t *testing.T, g *Graph, from, to string) uint64 {
	t.Helper()
	before := uint64(0)
	at, _ := g.net.connected(from)
	if kept := g.trees.of[at]; kept != nil {
		before = kept.visits
	}
	if _, ok := g.Between(from, to); !ok {
		t.Fatalf("no path from %s to %s", from, to)
	}
	return g.trees.of[at].visits - before
}

// TestOnlyWhatChanged counts the work that a change makes for a tree: none if
// no path goes that way, and else that of the routers behind it.
func TestOnlyWhatChanged(t *testing.T) {
	const size = 100
	g := New()
	for i := range size {
		g.SetRouter(fmt.Sprint("r", i), Router{})
		if i > 0 {
			g.SetLink(Link{fmt.Sprint("l", i), fmt.Sprint("r", i-1), fmt.Sprint("r", i), 10})
		}
	}
	g.SetLink(Link{"dear", "r0", "r50", 2000})
	asks := []struct {
		why    string
		change func()
		work   uint64
	}{
		{"the first time", func() {}, size},
		{"nothing changed", func() {}, 0},
		{"a link that is not used became dearer", func() { g.SetLink(Link{"dear", "r0", "r50", 3000}) }, 0},
		{"and cheaper, but not enough", func() { g.SetLink(Link{"dear", "r0", "r50", 1500}) }, 0},
		{"and went", func() { g.RemoveLink("dear") }, 0},
		{"a link beside one that is used came", func() { g.SetLink(Link{"beside", "r8", "r9", 10}) }, 0},
		{"and the other one went", func() { g.RemoveLink("l9") }, 0},
		{"a link near the end became dearer", func() { g.SetLink(Link{"l98", "r97", "r98", 11}) }, 2 * 2},
		{"and cheaper", func() { g.SetLink(Link{"l98", "r97", "r98", 5}) }, 2},
		{"the last router became dearer", func() { g.SetRouter("r99", Router{Cost: 20}) }, 2},
		{"the one that is asked from became dearer", func() { g.SetRouter("r0", Router{Cost: 20}) }, 0},
		{"a router came", func() { g.SetRouter("new", Router{}); g.SetLink(Link{"new", "r5", "new", 5}) }, 2},
		{"and went", func() { g.RemoveRouter("new") }, 1},
		{"more changed than there is", func() {
			for i := range int64(2 * size) {
				g.SetLink(Link{"l99", "r98", "r99", i})
			}
		}, size},
	}
	for _, ask := range asks {
		ask.change()
		if work := visits(t, g, "r0", "r9"); work != ask.work {
			t.Errorf("%s: %d routers were worked on, not %d", ask.why, work, ask.work)
		}
	}
}

// TestForgotten has more trees asked for than may be kept: those that were not
// asked for the longest are forgotten.
func TestForgotten(t *testing.T) {
	s := shelf{of: map[int32]*tree{}}
	const size = maxEntries / 4
	for _, source := range []int32{1, 2, 3, 4, 1, 5} {
		s.get(source, size)
	}
	if len(s.of) != 4 || s.of[1] == nil || s.of[2] != nil {
		t.Errorf("kept %v", s.of)
	}
	if s.get(5, size*2); len(s.of) != 2 || s.of[1] == nil {
		t.Errorf("kept %v of a network that grew", s.of)
	}
	if s.get(6, 2*maxEntries); len(s.of) != 1 || s.of[6] == nil {
		t.Errorf("kept %v beside a tree that is larger than all may be", s.of)
	}
}
