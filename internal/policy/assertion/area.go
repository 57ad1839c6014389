package assertion

import (
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/model"
)

// block is pairs: each of some identities with each of some services.
type block struct {
	identities, services *cow.Bitmap
	by                   *model.ServicePolicy // that gives them, where that is told
}

func (b block) empty() bool { return b.identities.IsEmpty() || b.services.IsEmpty() }

func (b block) count() int {
	return int(b.identities.GetCardinality()) * int(b.services.GetCardinality())
}

func (b block) meets(o block) bool {
	return b.identities.Intersects(o.identities) && b.services.Intersects(o.services)
}

// within returns the pairs that two blocks have in common.
func (b block) within(o block) block {
	return block{common(b.identities, o.identities), common(b.services, o.services), b.by}
}

// appendWithout appends what is left of the block without the pairs of another.
func (b block) appendWithout(list []block, o block) []block {
	if !b.meets(o) {
		return append(list, b)
	}
	if others := less(b.identities, o.identities); !others.IsEmpty() {
		list = append(list, block{others, b.services, b.by})
	}
	if others := less(b.services, o.services); !others.IsEmpty() {
		list = append(list, block{common(b.identities, o.identities), others, b.by})
	}
	return list
}

// area is pairs in blocks. They have nothing in common as long as there are few.
type area struct {
	blocks []block
	rough  bool // there are so many that some pairs may be in several, or not in it
	most   int  // how many there are at most, of those not in it as well
}

// maxBlocks is how many blocks are kept apart. Each that is taken away may split all
// others.
var maxBlocks = 64

func (a *area) empty() bool { return len(a.blocks) == 0 }

// add adds the pairs of a block.
func (a *area) add(b block) {
	if b.empty() {
		return
	}
	if a.rough = a.rough || len(a.blocks) >= maxBlocks; a.rough {
		a.blocks = append(a.blocks, b)
		return
	}
	fresh := []block{b}
	for _, known := range a.blocks {
		if fresh = without(fresh, known); len(fresh) == 0 {
			return
		}
	}
	a.blocks = append(a.blocks, fresh...)
}

// join adds the blocks of an area that has no pair in common with this one.
func (a *area) join(o area) {
	a.blocks, a.rough = append(a.blocks, o.blocks...), a.rough || o.rough
}

// within returns the pairs that are in the block.
func (a *area) within(o block) area {
	in := area{rough: a.rough}
	for _, b := range a.blocks {
		if b.meets(o) {
			in.blocks = append(in.blocks, b.within(o))
		}
	}
	return in
}

// without returns the pairs that are not in the block.
func (a *area) without(o block) area { return area{blocks: without(a.blocks, o), rough: a.rough} }

// minus returns the pairs that are not in another area.
func (a *area) minus(o area) area {
	left := *a
	for _, b := range o.blocks {
		if left = left.without(b); left.empty() {
			break
		}
	}
	return left
}

// count is how many pairs there are; of a rough one at most so many.
func (a *area) count() (n int) {
	for _, b := range a.blocks {
		n += b.count()
	}
	return n
}

func without(blocks []block, o block) []block {
	var left []block
	for _, b := range blocks {
		left = b.appendWithout(left, o)
	}
	return left
}

// common returns what two sets have in common. Sets are shared: none is written to.
func common(a, b *cow.Bitmap) *cow.Bitmap {
	if a == b {
		return a
	}
	return cow.Common(a, b)
}

// less returns what is in the first set alone.
func less(a, b *cow.Bitmap) *cow.Bitmap {
	if !a.Intersects(b) {
		return a
	}
	c := a.Clone()
	c.AndNot(b)
	return c
}
