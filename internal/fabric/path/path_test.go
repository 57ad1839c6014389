package path

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// ring returns routers r0, r1, … and a link of cost 10 between each and the
// next, and between the last and the first: l0 is that of r0 and r1.
func ring(size int) *Graph {
	g := New()
	for i := range size {
		g.SetRouter(fmt.Sprint("r", i), Router{})
		g.SetLink(Link{fmt.Sprint("l", i), fmt.Sprint("r", i), fmt.Sprint("r", (i+1)%size), 10})
	}
	return g
}

// expect fails unless the path costs that much and goes through these routers;
// none if there must be no path.
func expect(t *testing.T, g *Graph, cost int64, routers ...string) {
	t.Helper()
	from, to := routers[0], routers[len(routers)-1]
	p, ok := g.Between(from, to)
	if !ok || p.Cost != cost || !slices.Equal(p.Routers, routers) || len(p.Links) != len(routers)-1 {
		t.Errorf("%s to %s: %v %v, not %d %v", from, to, p, ok, cost, routers)
	}
}

// TestWays is the rules in one small network: what a path costs, what bends it
// and what ends it.
func TestWays(t *testing.T) {
	g := ring(5)
	expect(t, g, 0, "r0")
	expect(t, g, 20, "r0", "r1")
	expect(t, g, 40, "r0", "r1", "r2")

	g.SetRouter("r1", Router{Cost: 15})
	expect(t, g, 45, "r0", "r1", "r2")
	g.SetRouter("r1", Router{Cost: 50})
	expect(t, g, 60, "r0", "r4", "r3", "r2")
	g.SetRouter("r1", Router{NoTraversal: true})
	expect(t, g, 60, "r0", "r4", "r3", "r2")
	expect(t, g, 20, "r0", "r1")
	expect(t, g, 40, "r1", "r2", "r3")

	g.RemoveRouter("r4")
	if p, ok := g.Between("r0", "r2"); ok {
		t.Errorf("a path where there is none: %v", p)
	}
	g.SetRouter("r4", Router{})
	expect(t, g, 60, "r0", "r4", "r3", "r2")
	g.SetLink(Link{"direct", "r2", "r0", 49})
	expect(t, g, 59, "r0", "r2")
	g.SetLink(Link{"direct", "r2", "r0", 1 << 50})
	expect(t, g, 60, "r0", "r4", "r3", "r2")
	g.RemoveLink("l3")
	expect(t, g, MaxCost, "r0", "r2")
}

// TestTies has paths that cost the same: fewer hops go first, then lower ids,
// and of two links the lower id.
func TestTies(t *testing.T) {
	g := ring(4)
	expect(t, g, 40, "r0", "r1", "r2")
	g.RemoveLink("l1")
	expect(t, g, 40, "r0", "r3", "r2")
	g.SetLink(Link{"l1", "r1", "r2", 10})
	expect(t, g, 40, "r0", "r1", "r2")
	g.SetLink(Link{"direct", "r0", "r2", 30})
	expect(t, g, 40, "r0", "r2")
	g.RemoveLink("direct")
	g.SetRouter("r1", Router{Cost: 11})
	expect(t, g, 40, "r0", "r3", "r2")
	g.SetLink(Link{"also l2", "r2", "r3", 10})
	if p, _ := g.Between("r0", "r2"); p.Links[1] != "also l2" {
		t.Errorf("went over %v", p.Links)
	}
}

// TestSameAgain has nothing said that matters, which must not look like a
// change.
func TestSameAgain(t *testing.T) {
	g := ring(4)
	before := g.Revision()
	g.SetRouter("r0", Router{})
	g.SetLink(Link{"l0", "r1", "r0", 10})
	g.RemoveLink("unknown")
	g.RemoveRouter("unknown")
	g.SetLink(Link{"dear", "r0", "r1", 11})
	g.SetLink(Link{"dear", "r0", "r1", 10_000})
	g.RemoveLink("dear")
	if now := g.Revision(); now != before {
		t.Errorf("revision %d became %d by nothing", before, now)
	}
}

// TestNumbersAreUsedAgain has many routers come and go, and only as much memory
// in use as there are routers at a time.
func TestNumbersAreUsedAgain(t *testing.T) {
	g := ring(4)
	for i := range 100 {
		id, link := fmt.Sprint("guest", i), fmt.Sprint("to guest", i)
		g.SetRouter(id, Router{})
		g.SetLink(Link{link, "r0", id, 5})
		expect(t, g, 55, "r2", "r1", "r0", id)
		expect(t, g, 35, id, "r0", "r1")
		g.RemoveRouter(id)
		g.RemoveLink(link)
	}
	if len(g.net.nodes) != 5 || len(g.net.index) != 4 || len(g.trees.of) != 1 {
		t.Errorf("%d nodes, %d names and %d trees", len(g.net.nodes), len(g.net.index), len(g.trees.of))
	}
}

// TestManyAtOnce asks from all sides while links change; every answer must be a
// path of one moment: over joined links, and of the cost that they had.
func TestManyAtOnce(t *testing.T) {
	const size = 24
	g := ring(size)
	var asking, changing sync.WaitGroup
	stop := make(chan struct{})
	changing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			// Either way round the ring is possible at any time.
			g.SetLink(Link{"l3", "r3", "r4", int64(10 + i%2*1000)})
			g.RemoveRouter("r9")
			g.SetRouter("r9", Router{})
		}
	})
	for reader := range 4 {
		asking.Go(func() {
			for i := range 2000 {
				from, to := fmt.Sprint("r", (i*5+reader)%size), fmt.Sprint("r", i%size)
				if p, ok := g.Between(from, to); ok && !plausible(p, from, to, size) {
					t.Errorf("%s to %s: %v", from, to, p)
					return
				}
			}
		})
	}
	asking.Wait()
	close(stop)
	changing.Wait()
}

// plausible reports whether a path goes round the ring of TestManyAtOnce.
func plausible(p Path, from, to string, size int) bool {
	hops := len(p.Links)
	if len(p.Routers) != hops+1 || p.Routers[0] != from || p.Routers[hops] != to || hops >= size {
		return false
	}
	return p.Cost == int64(hops*20) || slices.Contains(p.Links, "l3") && p.Cost == int64(hops*20+1000)
}
