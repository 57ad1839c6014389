package cow

import "iter"

// Shelves is an ordered set of items for each of few keys. A key is there once, however many
// items it has.
type Shelves[T any] struct {
	less  func(a, b T) bool
	tree  Tree[shelf[T]]
	n     int
	owner uint64 // of the nodes of sets that may be written
}

// shelf is the items of a key, of which there are some.
type shelf[T any] struct {
	key  string
	root *node[T]
}

// NewShelves returns sets without items, in the order of less.
func NewShelves[T any](less func(a, b T) bool) *Shelves[T] {
	byKey := func(a, b shelf[T]) bool { return a.key < b.key }
	return &Shelves[T]{less: less, tree: NewTree(byKey), owner: owners.Add(1)}
}

// Copy returns sets that may be written without the original noticing.
func (s *Shelves[T]) Copy() *Shelves[T] {
	s.owner = owners.Add(1)
	return &Shelves[T]{less: s.less, tree: s.tree.Copy(), n: s.n, owner: owners.Add(1)}
}

// Of is the items of a key. They must not be written. Who reads does so while the sets are
// copied, and looks at nothing that copying changes.
func (s *Shelves[T]) Of(key string) Tree[T] { return s.of(key, nobody) }

// nobody owns no node.
const nobody = 0

// of is the items of a key, whose nodes may be written that an owner has.
func (s *Shelves[T]) of(key string, owner uint64) Tree[T] {
	on, _ := s.tree.Get(shelf[T]{key: key})
	return Tree[T]{&tree[T]{less: s.less, root: on.root, owner: owner}}
}

// Len is how many items all keys have together.
func (s *Shelves[T]) Len() int { return s.n }

// Set adds an item to those of a key, or replaces the one equal to it.
func (s *Shelves[T]) Set(key string, item T) {
	items := s.of(key, s.owner)
	before := items.Len()
	items.Set(item)
	s.put(key, items, before)
}

// Delete removes the item of a key that is equal to this one.
func (s *Shelves[T]) Delete(key string, item T) {
	items := s.of(key, s.owner)
	before := items.Len()
	items.Delete(item)
	s.put(key, items, before)
}

// Fill gives a key that has none the items that come in the order of less, each once.
func (s *Shelves[T]) Fill(key string, items []T) { s.put(key, TreeOf(s.less, items), 0) }

// put says which items a key has now that had so many before.
func (s *Shelves[T]) put(key string, items Tree[T], before int) {
	s.n += items.Len() - before
	if items.root == nil {
		s.tree.Delete(shelf[T]{key: key})
		return
	}
	s.tree.Set(shelf[T]{key, items.root})
}

// All yields every item with its key, in the order of keys and then of items.
func (s *Shelves[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for on := range s.tree.All() {
			if !on.root.after(0, func(item T) bool { return yield(on.key, item) }) {
				return
			}
		}
	}
}
