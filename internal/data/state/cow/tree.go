// Package cow holds the containers that snapshots are made of: an ordered tree,
// texts that are searched and a set of bitmaps, all copied in constant time and shared until written.
// It is the only user of the bitmap library and imports nothing of ours.
//
// A container has one writer. A copy may be written while its original is
// read, but two must not copy at a time: the original is marked when it is copied.
package cow

import (
	"iter"
	"sync/atomic"
)

// Tree is an ordered set: a B-tree whose nodes belong to one tree, and are copied before
// another writes to them.
type Tree[T any] struct{ *tree[T] }

type tree[T any] struct {
	less  func(a, b T) bool
	root  *node[T] // nil if there is nothing
	owner uint64
}

// owners counts those that there were: no two trees have the same.
var owners atomic.Uint64

// NewTree returns an empty tree in the order of less.
func NewTree[T any](less func(a, b T) bool) Tree[T] {
	return Tree[T]{&tree[T]{less: less, owner: owners.Add(1)}}
}

// TreeOf returns a tree of items that come in the order of less, each once. It has as few
// nodes as there can be.
func TreeOf[T any](less func(a, b T) bool, items []T) Tree[T] {
	t := NewTree(less)
	if len(items) > 0 {
		height, room := 0, most
		for room < len(items) {
			height, room = height+1, (room+1)*(most+1)-1
		}
		t.root = t.grown(items, height, room)
	}
	return t
}

// Copy returns a tree that may be written without the original noticing.
func (t Tree[T]) Copy() Tree[T] {
	t.owner = owners.Add(1) // nor does the copy notice if the original is
	return Tree[T]{&tree[T]{less: t.less, root: t.root, owner: owners.Add(1)}}
}

// Set adds an item, or replaces the one equal to it.
func (t Tree[T]) Set(item T) {
	if t.root == nil {
		t.root = &node[T]{owner: t.owner, count: 1, items: []T{item}}
		return
	}
	left, median, right := t.put(t.root, item, true)
	t.root = left
	if right != nil {
		t.root = &node[T]{owner: t.owner, items: []T{median}, children: []*node[T]{left, right}}
		t.root.tally()
	}
}

// Delete removes the item equal to this one.
func (t Tree[T]) Delete(item T) {
	if _, has := t.Get(item); !has { // nodes would be copied for nothing
		return
	}
	t.root = t.without(t.root, item)
	switch {
	case len(t.root.items) > 0:
	case t.root.children != nil:
		t.root = t.root.children[0]
	default:
		t.root = nil
	}
}

// Get returns the item equal to this one.
func (t Tree[T]) Get(item T) (found T, has bool) {
	for n := t.root; n != nil; {
		i, is := t.find(n, item)
		if is {
			return n.items[i], true
		}
		n = n.child(i)
	}
	return found, false
}

// Min returns the first item, if there is one.
func (t Tree[T]) Min() (T, bool) { return t.At(0) }

// Len is the number of items.
func (t Tree[T]) Len() int {
	if t.root == nil {
		return 0
	}
	return t.root.count
}

// At returns the item that n others come before, if there is one.
func (t Tree[T]) At(n int) (item T, has bool) {
	if n < 0 || n >= t.Len() {
		return item, false
	}
	at := t.root
	for at.children != nil {
		i := 0
		for n > at.children[i].count {
			n -= at.children[i].count + 1
			i++
		}
		if n == at.children[i].count {
			return at.items[i], true
		}
		at = at.children[i]
	}
	return at.items[n], true
}

// Before is how many items come before pivot, which need not be in the tree.
func (t Tree[T]) Before(pivot T) (before int) {
	for n := t.root; n != nil; {
		i, is := t.find(n, pivot)
		before += i
		for j := range min(i, len(n.children)) {
			before += n.children[j].count
		}
		if is && n.children != nil {
			return before + n.children[i].count
		}
		n = n.child(i)
	}
	return before
}

// All yields every item in order.
func (t Tree[T]) All() iter.Seq[T] { return t.AllFrom(0) }

// AllFrom yields the items that n others come before, in order.
func (t Tree[T]) AllFrom(n int) iter.Seq[T] {
	return func(yield func(T) bool) { t.root.after(max(n, 0), yield) }
}

// BackwardFrom yields the items that n others come after, in reverse order.
func (t Tree[T]) BackwardFrom(n int) iter.Seq[T] {
	return func(yield func(T) bool) { t.root.ahead(max(n, 0), yield) }
}

// From yields the items from the first that is not less than pivot. It is no
// iterator because every lookup in an index comes here.
func (t Tree[T]) From(pivot T, yield func(T) bool) { t.from(t.root, pivot, yield) }

// Until yields the items from the last that is not behind pivot, in reverse order.
func (t Tree[T]) Until(pivot T, yield func(T) bool) { t.until(t.root, pivot, yield) }
