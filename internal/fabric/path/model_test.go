package path

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// plain is a graph that knows no tricks: what the package promises, in the
// fewest lines.
type plain struct {
	routers map[string]Router
	links   map[string]Link
}

// place is how good the best path to a router is.
type place struct{ cost, hops int64 }

func (p place) before(q place) bool {
	return p.cost < q.cost || p.cost == q.cost && p.hops < q.hops
}

// hop is a way over one link.
type hop struct {
	link     string
	from, to string
	cost     int64
}

// hops returns the ways over one link on paths from a router.
func (g plain) hops(source string) (hops []hop) {
	for _, l := range g.links {
		for _, h := range []hop{{l.ID, l.A, l.B, l.Cost}, {l.ID, l.B, l.A, l.Cost}} {
			from, fromOK := g.routers[h.from]
			to, toOK := g.routers[h.to]
			if !fromOK || !toOK || h.from != source && from.NoTraversal {
				continue
			}
			h.cost = min(max(l.Cost, 0), MaxCost) + min(max(int64(to.Cost), 10), MaxCost)
			hops = append(hops, h)
		}
	}
	return hops
}

// places returns how good the best paths from a router are: it goes over every
// link until nothing gets better.
func places(source string, hops []hop) map[string]place {
	best := map[string]place{source: {}}
	for better := true; better; {
		better = false
		for _, h := range hops {
			from, ok := best[h.from]
			if !ok {
				continue
			}
			next := place{from.cost + h.cost, from.hops + 1}
			if known, ok := best[h.to]; !ok || next.before(known) {
				best[h.to], better = next, true
			}
		}
	}
	return best
}

// paths returns the best path from a router to each that can be reached.
func (g plain) paths(source string) map[string]Path {
	found := map[string]Path{}
	if _, ok := g.routers[source]; !ok {
		return found
	}
	hops := g.hops(source)
	best := places(source, hops)
	for end, at := range best {
		p := Path{Cost: min(at.cost, MaxCost), Routers: []string{end}, Links: []string{}}
		for to := end; to != source; {
			var last hop
			for _, h := range hops {
				from, ok := best[h.from]
				if !ok || h.to != to || (place{from.cost + h.cost, from.hops + 1}) != best[to] {
					continue
				}
				if last.from == "" || h.from < last.from || h.from == last.from && h.link < last.link {
					last = h
				}
			}
			p.Routers, p.Links = append(p.Routers, last.from), append(p.Links, last.link)
			to = last.from
		}
		slices.Reverse(p.Routers)
		slices.Reverse(p.Links)
		found[end] = p
	}
	return found
}

var (
	// names are few, so that routers come back and links are parallel.
	names   = []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	linkIDs = []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14"}
	// costs are often equal, sometimes nothing and sometimes too much.
	linkCosts   = []int64{1, 1, 1, 1, 1, 1, 12, 12, 12, 12, 0, 2, 130_001, MaxCost - 1, MaxCost, 1<<63 - 1, -5}
	routerCosts = []int{0, 0, 0, 9, 10, 11, 12, 20, 65_535, 1 << 40, -1}
)

// TestLikePlain changes a graph in every way, asks in between, and finds what a
// plain search over a copy finds.
func TestLikePlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, want := New(), plain{map[string]Router{}, map[string]Link{}}
		router, linkID := rapid.SampledFrom(names), rapid.SampledFrom(linkIDs)
		for _, id := range names[:rapid.IntRange(0, len(names)).Draw(t, "routers at first")] {
			g.SetRouter(id, Router{})
			want.routers[id] = Router{}
		}
		for _, id := range linkIDs[:rapid.IntRange(0, len(linkIDs)).Draw(t, "links at first")] {
			l := Link{id, router.Draw(t, "a"), router.Draw(t, "b"), rapid.SampledFrom(linkCosts).Draw(t, "cost")}
			g.SetLink(l)
			want.links[id] = l
		}
		revision, answers := g.Revision(), map[string]map[string]Path{}
		ask := func(t *rapid.T, from string) {
			now := want.paths(from)
			if then, ok := answers[from]; ok && revision == g.Revision() && !maps.EqualFunc(then, now, samePath) {
				t.Fatalf("from %s: other paths in the same revision %d: %v, then %v", from, revision, then, now)
			}
			if revision != g.Revision() {
				revision = g.Revision()
				clear(answers)
			}
			answers[from] = now
			compare(t, g, from, now)
		}
		t.Repeat(map[string]func(*rapid.T){
			"set router": func(t *rapid.T) {
				id := router.Draw(t, "router")
				r := Router{rapid.SampledFrom(routerCosts).Draw(t, "cost"), rapid.IntRange(0, 4).Draw(t, "end only") == 0}
				g.SetRouter(id, r)
				want.routers[id] = r
			},
			"remove router": func(t *rapid.T) {
				id := router.Draw(t, "router")
				g.RemoveRouter(id)
				delete(want.routers, id)
			},
			"set link": func(t *rapid.T) {
				l := Link{linkID.Draw(t, "link"), router.Draw(t, "a"), router.Draw(t, "b"), rapid.SampledFrom(linkCosts).Draw(t, "cost")}
				g.SetLink(l)
				want.links[l.ID] = l
			},
			"change link": func(t *rapid.T) {
				id := linkID.Draw(t, "link")
				if l, ok := want.links[id]; ok {
					l.Cost = rapid.SampledFrom(linkCosts).Draw(t, "cost")
					g.SetLink(l)
					want.links[id] = l
				}
			},
			"remove link": func(t *rapid.T) {
				id := linkID.Draw(t, "link")
				g.RemoveLink(id)
				delete(want.links, id)
			},
			// Most trees are asked for seldom, and have much to catch up with; one
			// is after each change.
			"ask": func(t *rapid.T) { ask(t, router.Draw(t, "from")) },
			"":    func(t *rapid.T) { ask(t, names[0]) },
		})
		for _, from := range names {
			compare(t, g, from, want.paths(from))
		}
	})
}

func samePath(a, b Path) bool {
	return a.Cost == b.Cost && slices.Equal(a.Routers, b.Routers) && slices.Equal(a.Links, b.Links)
}

// compare asks a graph for all paths from a router and compares them.
func compare(t rapid.TB, g *Graph, from string, want map[string]Path) {
	t.Helper()
	for _, to := range names {
		wanted, wantOK := want[to]
		got, ok := g.Between(from, to)
		if ok != wantOK || ok && !samePath(got, wanted) {
			t.Fatalf("%s to %s: %v %v, not %v %v", from, to, got, ok, wanted, wantOK)
		}
		if cost, ok := g.Cost(from, to); ok != wantOK || cost != wanted.Cost {
			t.Fatalf("%s to %s costs %d %v, not %d %v", from, to, cost, ok, wanted.Cost, wantOK)
		}
	}
}
