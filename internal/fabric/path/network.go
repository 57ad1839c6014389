package path

import (
	"cmp"
	"slices"
)

// network is the routers and links as trees see them: routers are small
// numbers, and all links between two of them are one arc at each end.
type network struct {
	index map[string]int32
	nodes []node
	// free are numbers of routers that are gone, for the next new ones.
	free    []int32
	links   map[string]link
	bundles map[pair]*bundle
	journal
}

// node is a router, connected or not. It is known as long as it is connected
// or has links.
type node struct {
	id        string
	connected bool
	// through is whether paths may go on from here.
	through bool
	// enter is what it costs to enter it.
	enter int32
	arcs  []arc
}

// arc is a neighbour, and the cost of the cheapest link to it.
type arc struct{ to, cost int32 }

// link is a link by its routers' numbers.
type link struct {
	pair
	cost int32
}

// pair is two routers, the lower number first.
type pair struct{ a, b int32 }

// bundle is the links between two routers, the cheapest first.
type bundle struct {
	links []strand
	// best is the first of them when trees were told last.
	best strand
}

// strand is one link of a bundle.
type strand struct {
	cost int32
	id   string
}

func compareStrands(a, b strand) int {
	return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.id, b.id))
}

func newNetwork() network {
	return network{index: map[string]int32{}, links: map[string]link{}, bundles: map[pair]*bundle{}, journal: newJournal()}
}

// pairOf returns two routers as a pair.
func pairOf(a, b int32) pair {
	return pair{min(a, b), max(a, b)}
}

// connected returns the number of a router that is connected.
func (n *network) connected(id string) (int32, bool) {
	at, ok := n.index[id]
	return at, ok && n.nodes[at].connected
}

// place returns the number of a router and gives it one if it has none.
func (n *network) place(id string) int32 {
	if at, ok := n.index[id]; ok {
		return at
	}
	var at int32
	if last := len(n.free) - 1; last >= 0 {
		at, n.free = n.free[last], n.free[:last]
	} else {
		at = int32(len(n.nodes))
		n.nodes = append(n.nodes, node{})
	}
	n.nodes[at].id = id
	n.index[id] = at
	return at
}

// release takes the number of a router back if nothing is known of it any more.
func (n *network) release(at int32) {
	if of := &n.nodes[at]; !of.connected && len(of.arcs) == 0 {
		delete(n.index, of.id)
		*of = node{}
		n.free = append(n.free, at)
	}
}

func (n *network) setRouter(id string, r Router) {
	enter := int32(min(max(int64(r.Cost), minRouterCost), MaxCost))
	at := n.place(id)
	of := &n.nodes[at]
	if of.connected && of.enter == enter && of.through != r.NoTraversal {
		return
	}
	of.connected, of.enter, of.through = true, enter, !r.NoTraversal
	n.note(change{at, none})
}

func (n *network) removeRouter(id string) (at int32, ok bool) {
	if at, ok = n.connected(id); !ok {
		return 0, false
	}
	n.nodes[at].connected = false
	n.note(change{at, none})
	n.release(at)
	return at, true
}

// setLink adds or changes a link. One from a router to itself is of no use.
func (n *network) setLink(l Link) {
	if l.A == l.B {
		n.removeLink(l.ID)
		return
	}
	was, known := n.links[l.ID]
	now := link{pairOf(n.place(l.A), n.place(l.B)), int32(min(max(l.Cost, 0), MaxCost))}
	if known && was == now {
		return
	}
	n.links[l.ID] = now
	b := n.bundles[now.pair]
	if b == nil {
		b = &bundle{best: strand{cost: -1}}
		n.bundles[now.pair] = b
	}
	if known && was.pair == now.pair {
		b.remove(strand{was.cost, l.ID})
	}
	b.add(strand{now.cost, l.ID})
	n.bundled(now.pair, b)
	if known && was.pair != now.pair {
		n.unbundle(l.ID, was)
	}
}

func (n *network) removeLink(id string) {
	if was, ok := n.links[id]; ok {
		delete(n.links, id)
		n.unbundle(id, was)
	}
}

// unbundle takes a link out of the bundle that it was in.
func (n *network) unbundle(id string, was link) {
	b := n.bundles[was.pair]
	b.remove(strand{was.cost, id})
	if len(b.links) == 0 {
		delete(n.bundles, was.pair)
	}
	n.bundled(was.pair, b)
	n.release(was.a)
	n.release(was.b)
}

// bundled takes note that a bundle changed, which matters if its best link did.
func (n *network) bundled(p pair, b *bundle) {
	if len(b.links) > 0 {
		if b.best == b.links[0] {
			return
		}
		b.best = b.links[0]
	}
	n.setArc(p.a, p.b, b)
	n.setArc(p.b, p.a, b)
	n.note(change(p))
}

// arcCost returns the cost of the arc between two routers if there is one.
func (n *network) arcCost(a, b int32) (cost int32, ok bool) {
	if len(n.nodes[a].arcs) > len(n.nodes[b].arcs) {
		a, b = b, a
	}
	for _, arc := range n.nodes[a].arcs {
		if arc.to == b {
			return arc.cost, true
		}
	}
	return 0, false
}

// setArc gives a router's arc to another the cost of their bundle.
func (n *network) setArc(from, to int32, b *bundle) {
	of := &n.nodes[from]
	at := slices.IndexFunc(of.arcs, func(a arc) bool { return a.to == to })
	switch {
	case len(b.links) == 0:
		last := len(of.arcs) - 1
		of.arcs[at] = of.arcs[last]
		of.arcs = of.arcs[:last]
	case at < 0:
		of.arcs = append(of.arcs, arc{to, b.links[0].cost})
	default:
		of.arcs[at].cost = b.links[0].cost
	}
}

func (b *bundle) add(s strand) {
	at, _ := slices.BinarySearchFunc(b.links, s, compareStrands)
	b.links = slices.Insert(b.links, at, s)
}

func (b *bundle) remove(s strand) {
	if at, ok := slices.BinarySearchFunc(b.links, s, compareStrands); ok {
		b.links = slices.Delete(b.links, at, at+1)
	}
}
