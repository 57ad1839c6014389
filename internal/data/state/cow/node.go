package cow

import "slices"

// A node has most items at most, and is put together with another once it has less than
// least. They are few: a write copies every node on its way.
const (
	most  = 15
	least = 7
)

// node is items in order and, if it is no leaf, the nodes before, between and after them.
type node[T any] struct {
	owner    uint64 // the tree that may write it
	count    int    // of all items here and below
	items    []T
	children []*node[T] // nil for a leaf
}

// tally counts what is below, after a change there.
func (n *node[T]) tally() {
	n.count = len(n.items)
	for _, c := range n.children {
		n.count += c.count
	}
}

// child is the node before the item at i, nil if there is none.
func (n *node[T]) child(i int) *node[T] {
	if n.children == nil {
		return nil
	}
	return n.children[i]
}

// find is where an item is in a node, or before which it would be.
func (t *tree[T]) find(n *node[T], item T) (i int, is bool) {
	low, high := 0, len(n.items)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if t.less(n.items[mid], item) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, low < len(n.items) && !t.less(item, n.items[low])
}

// owned is a node that the tree may write, with room for so many more items.
func (t *tree[T]) owned(n *node[T], more int) *node[T] {
	if n.owner == t.owner {
		return n
	}
	c := &node[T]{owner: t.owner, count: n.count, items: append(make([]T, 0, len(n.items)+more), n.items...)}
	if n.children != nil {
		c.children = append(make([]*node[T], 0, len(n.children)+more), n.children...)
	}
	return c
}

// put is a node with an item. One that would be too large is two, with an item between.
// last says that there is nothing behind the node.
func (t *tree[T]) put(n *node[T], item T, last bool) (left *node[T], median T, right *node[T]) {
	i, is := t.find(n, item)
	switch {
	case is:
		n = t.owned(n, 0)
		n.items[i] = item
		return n, median, nil
	case n.children == nil:
		n = t.owned(n, 1)
		n.items = slices.Insert(n.items, i, item)
		n.count++
	default:
		l, m, r := t.put(n.children[i], item, last && i == len(n.items))
		n = t.owned(n, 1)
		n.children[i] = l
		if r != nil {
			n.items = slices.Insert(n.items, i, m)
			n.children = slices.Insert(n.children, i+1, r)
		}
		n.tally()
	}
	if len(n.items) <= most {
		return n, median, nil
	}
	half := len(n.items) / 2
	if last && i == len(n.items)-1 {
		half = len(n.items) - 2 // they seem to come in order: nothing more is for the left one
	}
	left, right = t.part(n.items, n.children, 0, half), t.part(n.items, n.children, half+1, len(n.items))
	return left, n.items[half], right
}

// part is a node of some items, and of the nodes around them.
func (t *tree[T]) part(items []T, children []*node[T], from, to int) *node[T] {
	n := &node[T]{owner: t.owner, items: slices.Clone(items[from:to])}
	if children != nil {
		n.children = slices.Clone(children[from : to+1])
	}
	n.tally()
	return n
}

// without is a node less an item that is in it or below.
func (t *tree[T]) without(n *node[T], item T) *node[T] {
	i, is := t.find(n, item)
	n = t.owned(n, 0)
	if n.children == nil {
		n.items = slices.Delete(n.items, i, i+1)
		n.count--
		return n
	}
	if is { // the one before takes its place
		n.items[i] = n.children[i].last()
		item = n.items[i]
	}
	n.children[i] = t.without(n.children[i], item)
	if len(n.children[i].items) < least {
		t.join(n, max(i-1, 0))
	}
	n.tally()
	return n
}

// last is the last item of a node and of all below.
func (n *node[T]) last() T {
	for n.children != nil {
		n = n.children[len(n.children)-1]
	}
	return n.items[len(n.items)-1]
}

// join makes of the nodes around an item one, or two of the same size if that were too large.
func (t *tree[T]) join(n *node[T], i int) {
	left, right := n.children[i], n.children[i+1]
	items := slices.Concat(left.items, n.items[i:i+1], right.items)
	var children []*node[T]
	if left.children != nil {
		children = slices.Concat(left.children, right.children)
	}
	if len(items) <= most {
		n.items = slices.Delete(n.items, i, i+1)
		n.children = slices.Delete(n.children, i+1, i+2)
		n.children[i] = t.part(items, children, 0, len(items))
		return
	}
	half := len(items) / 2
	n.items[i] = items[half]
	n.children[i] = t.part(items, children, 0, half)
	n.children[i+1] = t.part(items, children, half+1, len(items))
}

// grown is a node of a height, which has room for at least so many items, with all of
// those below it as full as the others.
func (t *tree[T]) grown(items []T, height, room int) *node[T] {
	if height == 0 {
		return &node[T]{owner: t.owner, count: len(items), items: slices.Clone(items)}
	}
	n := &node[T]{owner: t.owner, count: len(items)}
	below := (room+1)/(most+1) - 1                     // room of a child
	children := (len(items) + 1 + below) / (below + 1) // as many as it takes
	n.children = make([]*node[T], 0, children)
	n.items = make([]T, 0, children-1)
	for left := children; left > 0; left-- {
		size := (len(items) - left + 1) / left
		n.children = append(n.children, t.grown(items[:size], height-1, below))
		if left > 1 {
			n.items = append(n.items, items[size])
			size++
		}
		items = items[size:]
	}
	return n
}

// after yields the items that so many others of the node come before.
func (n *node[T]) after(skip int, yield func(T) bool) bool {
	if n == nil || skip >= n.count {
		return true
	}
	if n.children == nil {
		for _, item := range n.items[skip:] {
			if !yield(item) {
				return false
			}
		}
		return true
	}
	for i, c := range n.children {
		if skip < c.count && !c.after(skip, yield) {
			return false
		}
		skip -= c.count
		if skip <= 0 && i < len(n.items) && !yield(n.items[i]) {
			return false
		}
		skip = max(skip-1, 0)
	}
	return true
}

// ahead yields the items that so many others of the node come after, in reverse order.
func (n *node[T]) ahead(skip int, yield func(T) bool) bool {
	if n == nil || skip >= n.count {
		return true
	}
	if n.children == nil {
		for i := len(n.items) - 1 - skip; i >= 0; i-- {
			if !yield(n.items[i]) {
				return false
			}
		}
		return true
	}
	for i := len(n.items); i >= 0; i-- {
		c := n.children[i]
		if skip < c.count && !c.ahead(skip, yield) {
			return false
		}
		skip -= c.count
		if skip <= 0 && i > 0 && !yield(n.items[i-1]) {
			return false
		}
		skip = max(skip-1, 0)
	}
	return true
}

// from yields the items of a node from the first that is not less than pivot.
func (t *tree[T]) from(n *node[T], pivot T, yield func(T) bool) bool {
	if n == nil {
		return true
	}
	i, is := t.find(n, pivot)
	if !is && n.children != nil && !t.from(n.children[i], pivot, yield) {
		return false
	}
	for ; i < len(n.items); i++ {
		if !yield(n.items[i]) || n.children != nil && !n.children[i+1].after(0, yield) {
			return false
		}
	}
	return true
}

// until yields the items of a node from the last that is not behind pivot, in reverse order.
func (t *tree[T]) until(n *node[T], pivot T, yield func(T) bool) bool {
	if n == nil {
		return true
	}
	i, is := t.find(n, pivot)
	if !is && n.children != nil && !t.until(n.children[i], pivot, yield) {
		return false
	}
	if is {
		i++
	}
	for i--; i >= 0; i-- {
		if !yield(n.items[i]) || n.children != nil && !n.children[i].ahead(0, yield) {
			return false
		}
	}
	return true
}
