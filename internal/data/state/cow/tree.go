// Package cow holds the containers that snapshots are made of: an ordered tree,
// texts that are searched and a set of bitmaps, all copied in constant time and shared until written.
// It is the only user of the B-tree and bitmap libraries and imports nothing
// of ours.
//
// A container has one writer. A copy may be written while its original is
// read, but two must not copy at a time: the libraries mark the original when
// it is copied.
package cow

import (
	"iter"
	"sort"

	"github.com/tidwall/btree"
)

// options have a quarter of the usual degree: a write copies every node on its
// way, and smaller ones are less to copy and to collect. Scans hardly notice.
var options = btree.Options{NoLocks: true, Degree: 8}

// Tree is an ordered set.
type Tree[T any] struct {
	tree *btree.BTreeG[T]
}

// NewTree returns an empty tree in the order of less.
func NewTree[T any](less func(a, b T) bool) Tree[T] {
	return Tree[T]{btree.NewBTreeGOptions(less, options)}
}

// Copy returns a tree that may be written without the original noticing.
func (t Tree[T]) Copy() Tree[T] { return Tree[T]{t.tree.IsoCopy()} }

// Set adds an item, or replaces the one equal to it.
func (t Tree[T]) Set(item T) { t.tree.Set(item) }

// Delete removes the item equal to this one.
func (t Tree[T]) Delete(item T) { t.tree.Delete(item) }

// Get returns the item equal to this one.
func (t Tree[T]) Get(item T) (T, bool) { return t.tree.Get(item) }

// Min returns the first item, if there is one.
func (t Tree[T]) Min() (T, bool) { return t.tree.Min() }

// Len is the number of items.
func (t Tree[T]) Len() int { return t.tree.Len() }

// At returns the item that n others come before, if there is one.
func (t Tree[T]) At(n int) (T, bool) { return t.tree.GetAt(n) }

// Before is how many items come before pivot, which need not be in the tree.
func (t Tree[T]) Before(pivot T) int {
	return sort.Search(t.tree.Len(), func(n int) bool {
		item, _ := t.tree.GetAt(n)
		return !t.tree.Less(item, pivot)
	})
}

// All yields every item in order.
func (t Tree[T]) All() iter.Seq[T] { return t.tree.Scan }

// AllFrom yields the items that n others come before, in order.
func (t Tree[T]) AllFrom(n int) iter.Seq[T] {
	return func(yield func(T) bool) {
		if first, ok := t.tree.GetAt(n); ok {
			t.tree.Ascend(first, yield)
		}
	}
}

// BackwardFrom yields the items that n others come after, in reverse order.
func (t Tree[T]) BackwardFrom(n int) iter.Seq[T] {
	return func(yield func(T) bool) {
		if first, ok := t.tree.GetAt(t.tree.Len() - 1 - n); ok {
			t.tree.Descend(first, yield)
		}
	}
}

// From yields the items from the first that is not less than pivot. It is no
// iterator because every lookup in an index comes here.
func (t Tree[T]) From(pivot T, yield func(T) bool) { t.tree.Ascend(pivot, yield) }
