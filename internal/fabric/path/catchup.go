package path

// A tree that is behind catches up with all changes at once. It takes what it
// shows as still true, except where a change says otherwise:
//
//  1. Routers whose way broke, or became dearer, are cut off, along with all
//     that are reached through them.
//  2. Changed links that are better than what they lead to has are taken.
//  3. Routers that are cut off look for the best way among their neighbours.
//
// From the routers that got another place in 2 and 3 it spreads as if the tree
// were being built, and stops where nothing becomes better. Among ways that cost
// the same only a neighbour's place and id decide, not how it got there; so the
// result is the tree that would be built from nothing.

// offer is a changed arc that may be better than what it leads to has.
type offer struct {
	from int32
	arc  arc
}

// tooFar reports whether building anew takes less than catching up, which it
// does after about as many changes as an eighth of the links.
func (t *tree) tooFar(n *network) bool {
	was := t.revision.Load()
	return was == 0 || n.revision-was > uint64(min(max(len(n.bundles)/8, 16), journalSize))
}

// catchUp brings a tree that is not too far behind up to date.
func (t *tree) catchUp(n *network, w *workshop) {
	t.grow(len(n.nodes))
	w.cut, w.offers = w.cut[:0], w.offers[:0]
	for revision := t.revision.Load() + 1; revision <= n.revision; revision++ {
		switch c := n.at(revision); {
		case c.b != none:
			cost, ok := n.arcCost(c.a, c.b)
			t.check(n, w, c.a, arc{c.b, cost}, ok)
			t.check(n, w, c.b, arc{c.a, cost}, ok)
		case c.a != t.source:
			t.cut(n, w, c.a)
		}
	}
	for _, o := range w.offers {
		if t.dist[o.from] != nowhere {
			t.relax(n, w, o.from, o.arc)
		}
	}
	for _, at := range w.cut {
		t.look(n, w, at)
	}
	t.spread(n, w)
}

// check cuts off the router at the end of a changed arc if its way is over that
// and is not what it was, and else keeps the arc in mind if it may be better. ok
// is false if there is no such arc any more.
func (t *tree) check(n *network, w *workshop, from int32, a arc, ok bool) {
	ok = ok && t.dist[from] != nowhere && t.through(n, from)
	hangs := t.via[a.to] == from
	if !ok {
		if hangs {
			t.cut(n, w, a.to)
		}
		return
	}
	switch dist := t.dist[from] + n.step(a); {
	case hangs && dist > t.dist[a.to]:
		t.cut(n, w, a.to)
	case dist < t.dist[a.to], !hangs && dist == t.dist[a.to]:
		w.offers = append(w.offers, offer{from, a})
	}
}

// cut takes a router and all that are reached through it out of the tree.
func (t *tree) cut(n *network, w *workshop, root int32) {
	next := len(w.cut)
	t.loosen(w, root)
	for ; next < len(w.cut); next++ {
		from := w.cut[next]
		for _, a := range n.nodes[from].arcs {
			if t.via[a.to] == from {
				t.loosen(w, a.to)
			}
		}
	}
}

func (t *tree) loosen(w *workshop, at int32) {
	t.dist[at], t.via[at] = nowhere, none
	w.cut = append(w.cut, at)
}

// look finds the best way to a router that is cut off from its neighbours that
// have a place.
func (t *tree) look(n *network, w *workshop, at int32) {
	t.visits++
	if !n.nodes[at].connected {
		return
	}
	found := false
	for _, a := range n.nodes[at].arcs {
		if t.dist[a.to] != nowhere && t.through(n, a.to) && t.take(n, a.to, arc{at, a.cost}) {
			found = true
		}
	}
	if found {
		w.heap.push(reached{t.dist[at], at})
	}
}
