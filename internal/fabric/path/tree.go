package path

import (
	"slices"
	"sync"
	"sync/atomic"
)

// tree is the cheapest paths from one router to all others. It is brought up to
// date by who asks for it, under a lock of its own while the network stands
// still; once it is, all may read it until the network changes.
type tree struct {
	source int32
	// used is when it was asked for last, by the shelf's clock.
	used uint64

	mu sync.Mutex
	// revision is that of the network which the tree shows; 0 is none yet.
	revision atomic.Uint64
	// dist is how far each router is, via the router before it on the path.
	dist []label
	via  []int32
	// visits counts the routers that were worked on.
	visits uint64
}

// none stands for no router.
const none int32 = -1

// update brings the tree up to date. The network must not change meanwhile.
func (t *tree) update(n *network) {
	if t.revision.Load() == n.revision {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.revision.Load() == n.revision {
		return
	}
	w := workshops.Get().(*workshop)
	if t.tooFar(n) {
		t.build(n, w)
	} else {
		t.catchUp(n, w)
	}
	workshops.Put(w)
	t.revision.Store(n.revision)
}

// workshop is what it takes to work on a tree, kept for the next one.
type workshop struct {
	heap heap
	// cut are routers that lost their way, and offers changed arcs that may be
	// better than what there was.
	cut    []int32
	offers []offer
}

var workshops = sync.Pool{New: func() any { return &workshop{} }}

// build makes the tree from nothing.
func (t *tree) build(n *network, w *workshop) {
	t.dist, t.via = t.dist[:0], t.via[:0]
	t.grow(len(n.nodes))
	t.dist[t.source] = 0
	w.heap.push(reached{0, t.source})
	t.spread(n, w)
}

// grow makes room for routers that the tree has not seen yet.
func (t *tree) grow(size int) {
	more := max(size-len(t.dist), 0)
	t.dist, t.via = slices.Grow(t.dist, more), slices.Grow(t.via, more)
	for len(t.dist) < size {
		t.dist = append(t.dist, nowhere)
		t.via = append(t.via, none)
	}
}

// spread goes on from the routers in the heap, the nearest first, for as long as
// it finds shorter ways.
func (t *tree) spread(n *network, w *workshop) {
	for {
		from, ok := w.heap.pop()
		if !ok {
			return
		}
		if from.dist != t.dist[from.at] || !t.through(n, from.at) {
			continue
		}
		t.visits++
		for _, a := range n.nodes[from.at].arcs {
			t.relax(n, w, from.at, a)
		}
	}
}

// through reports whether paths of this tree may go on from a router.
func (t *tree) through(n *network, at int32) bool {
	return n.nodes[at].through || at == t.source
}

// relax takes the way over an arc if it is better than the one that is known,
// and has the search go on from there if that makes it shorter.
func (t *tree) relax(n *network, w *workshop, from int32, a arc) {
	if n.nodes[a.to].connected && t.take(n, from, a) {
		w.heap.push(reached{t.dist[a.to], a.to})
	}
}

// take takes the way over an arc to a connected router if it is better than the
// one that is known, and reports whether it is shorter.
func (t *tree) take(n *network, from int32, a arc) bool {
	dist := t.dist[from] + n.step(a)
	if dist < t.dist[a.to] {
		t.dist[a.to], t.via[a.to] = dist, from
		return true
	}
	if dist == t.dist[a.to] && n.nodes[from].id < n.nodes[t.via[a.to]].id {
		t.via[a.to] = from
	}
	return false
}

// path writes down the way to a router that can be reached.
func (t *tree) path(n *network, end int32) Path {
	hops := t.dist[end].hops()
	p := Path{Cost: t.dist[end].cost(), Routers: make([]string, hops+1), Links: make([]string, hops)}
	for at := end; ; at = t.via[at] {
		p.Routers[hops] = n.nodes[at].id
		if hops == 0 {
			return p
		}
		hops--
		p.Links[hops] = n.bundles[pairOf(at, t.via[at])].links[0].id
	}
}
