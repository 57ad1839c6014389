package path

import "math"

// label is how far a router is from the source of a tree: the cost of the path
// above hopBits, the number of hops below, so that comparing labels compares
// costs first and hops second, and adding steps adds both. The cost is not
// capped here, since which of two paths is cheaper must not depend on what they
// go on with. A step costs at most twice MaxCost, so paths of up to a million
// hops fit.
type label int64

const (
	hopBits       = 20
	nowhere label = math.MaxInt64
)

// step is what the path grows by over an arc.
func (n *network) step(a arc) label {
	return label(a.cost+n.nodes[a.to].enter)<<hopBits | 1
}

func (l label) cost() int64 { return min(int64(l>>hopBits), MaxCost) }

func (l label) hops() int { return int(l & (1<<hopBits - 1)) }
