// Package path finds the cheapest ways between the routers of a network. It
// owns the graph of connected routers and the links between them, and one tree
// of cheapest paths for each router that was asked about, which all circuits
// from there share. It is told about routers and links and knows nothing else:
// it must not import anything of ours.
package path

import "sync"

const (
	// MaxCost is what a path costs at most, and thus a link or a router too: a
	// dearer one is taken for one that costs this much.
	MaxCost = 1 << 20
	// minRouterCost is what it costs at least to enter a router, so that more
	// hops cost more.
	minRouterCost = 10
)

// Router is what matters of a connected router.
type Router struct {
	// Cost is what it costs to enter it; if less than 10, then 10.
	Cost int
	// NoTraversal says that paths may begin and end there, and not go through.
	NoTraversal bool
}

// Link joins two routers, in both directions.
type Link struct {
	ID, A, B string
	Cost     int64
}

// Path is a way from its first router to its last; link i joins routers i and
// i+1.
type Path struct {
	Cost    int64
	Routers []string
	Links   []string
}

// Graph is the routers and links of a network. It may be used by many at once:
// who changes it waits for those who are being answered, and the other way
// round, but those who ask do not wait for each other unless they ask about the
// same router after a change.
//
// Of two paths that cost the same, the one with fewer hops is chosen; then the
// one whose last router but one has the lower id, and so on towards the first;
// of two links, the one with the lower id. So all who know the same links find
// the same paths, in whatever order they learned of them.
type Graph struct {
	mu    sync.RWMutex
	net   network
	trees shelf
}

// New returns a graph of nothing.
func New() *Graph {
	return &Graph{net: newNetwork(), trees: shelf{of: map[int32]*tree{}}}
}

// SetRouter says that a router is connected, and what it is like.
func (g *Graph) SetRouter(id string, r Router) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.net.setRouter(id, r)
}

// RemoveRouter says that a router is not connected. Its links stay known and
// are of use again when it is back.
func (g *Graph) RemoveRouter(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if was, ok := g.net.removeRouter(id); ok {
		g.trees.drop(was)
	}
}

// SetLink adds a link or changes the one with that id. Its routers need not be
// known yet.
func (g *Graph) SetLink(l Link) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.net.setLink(l)
}

// RemoveLink takes a link away.
func (g *Graph) RemoveLink(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.net.removeLink(id)
}

// Revision is another number whenever an answer may have become another one.
func (g *Graph) Revision() uint64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.net.revision
}

// Between returns the cheapest path from a connected router to another; ok is
// false if there is none. From a router to itself it has one router and costs
// nothing.
func (g *Graph) Between(from, to string) (p Path, ok bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	t, end, ok := g.ask(from, to)
	if !ok {
		return Path{}, false
	}
	return t.path(&g.net, end), true
}

// Cost returns what Between's path costs, for less than it takes to build it.
func (g *Graph) Cost(from, to string) (cost int64, ok bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	t, end, ok := g.ask(from, to)
	if !ok {
		return 0, false
	}
	return t.dist[end].cost(), true
}

// ask returns the tree of one router, up to date, and where another one is in
// it; ok is false if there is no path between them.
func (g *Graph) ask(from, to string) (t *tree, end int32, ok bool) {
	source, ok := g.net.connected(from)
	if !ok {
		return nil, 0, false
	}
	if end, ok = g.net.connected(to); !ok {
		return nil, 0, false
	}
	t = g.trees.get(source, len(g.net.nodes))
	t.update(&g.net)
	return t, end, t.dist[end] != nowhere
}
