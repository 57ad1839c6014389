package cow

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
)

// Bitmap is a set of ordinals.
type Bitmap = roaring.Bitmap

// NewBitmap returns an empty set.
func NewBitmap() *Bitmap { return roaring.New() }

// Common returns what two sets have in common, as a set of its own: to copy one of them
// for that takes longer where it is large.
func Common(a, b *Bitmap) *Bitmap { return roaring.And(a, b) }

// Bits is a bitmap of ordinals for each of many keys.
type Bits struct {
	tree  Tree[bitmap]
	owner *byte // a set with the same owner is not shared and may be written
}

type bitmap struct {
	key string
	*set
}

// NewBits returns an empty set of bitmaps.
func NewBits() *Bits {
	return &Bits{NewTree(func(a, b bitmap) bool { return a.key < b.key }), new(byte)}
}

// Copy returns bitmaps that may be written without the original noticing.
func (b *Bits) Copy() *Bits { return &Bits{b.tree.Copy(), new(byte)} }

// Add puts an ordinal into the bitmap of a key.
func (b *Bits) Add(key string, ord uint32) {
	e, ok := b.tree.Get(bitmap{key: key})
	switch {
	case !ok:
		b.tree.Set(bitmap{key, &set{owner: b.owner, base: roaring.BitmapOf(ord)}})
	case e.has(ord):
	case e.owner == b.owner:
		e.base.Add(ord)
	default:
		b.tree.Set(bitmap{key, e.with(b.owner, ord)})
	}
}

// Remove takes an ordinal out of the bitmap of a key. A bitmap that becomes
// empty is dropped.
func (b *Bits) Remove(key string, ord uint32) {
	e, ok := b.tree.Get(bitmap{key: key})
	switch {
	case !ok || !e.has(ord):
	case e.len() == 1:
		b.tree.Delete(e)
	case e.owner == b.owner:
		e.base.Remove(ord)
	default:
		b.tree.Set(bitmap{key, e.without(b.owner, ord)})
	}
}

// Get returns the bitmap of a key, nil if there is none. It must not be
// written.
func (b *Bits) Get(key string) *Bitmap {
	e, ok := b.tree.Get(bitmap{key: key})
	if !ok {
		return nil
	}
	return e.bitmap()
}

// Count is how many ordinals the bitmap of a key has.
func (b *Bits) Count(key string) int {
	if e, ok := b.tree.Get(bitmap{key: key}); ok {
		return e.len()
	}
	return 0
}

// Has reports whether the bitmap of a key has an ordinal.
func (b *Bits) Has(key string, ord uint32) bool {
	e, ok := b.tree.Get(bitmap{key: key})
	return ok && e.has(ord)
}

// Len is how many ordinals all bitmaps have together.
func (b *Bits) Len() (n int) {
	for e := range b.tree.All() {
		n += e.len()
	}
	return n
}

// Keys yields the keys in order.
func (b *Bits) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		b.tree.All()(func(e bitmap) bool { return yield(e.key) })
	}
}

// maxPending is how many changes a set collects before it is copied.
const maxPending = 32

// set is a bitmap that was changed since it was last copied. A copy is as
// large as the table, so it is made only when somebody wants to see it, or
// once for many changes.
type set struct {
	owner   *byte // who may write to base; nil if there are pending changes
	base    *Bitmap
	added   []uint32 // not in base
	removed []uint32 // in base
	whole   atomic.Pointer[Bitmap]
}

func (s *set) has(ord uint32) bool {
	return slices.Contains(s.added, ord) || s.base.Contains(ord) && !slices.Contains(s.removed, ord)
}

func (s *set) len() int {
	return int(s.base.GetCardinality()) + len(s.added) - len(s.removed)
}

// bitmap returns the set with all changes. Readers that come at the same time
// may all make one, but see the same.
func (s *set) bitmap() *Bitmap {
	if len(s.added)+len(s.removed) == 0 {
		return s.base
	}
	if whole := s.whole.Load(); whole != nil {
		return whole
	}
	s.whole.CompareAndSwap(nil, s.merge())
	return s.whole.Load()
}

func (s *set) merge() *Bitmap {
	whole := s.base.Clone()
	whole.AddMany(s.added)
	for _, ord := range s.removed {
		whole.Remove(ord)
	}
	return whole
}

// with returns the set and an ordinal that it does not have.
func (s *set) with(owner *byte, ord uint32) *set {
	next := s.next(owner)
	switch i := slices.Index(next.removed, ord); {
	case next.owner == owner:
		next.base.Add(ord)
	case i >= 0:
		next.removed = slices.Delete(next.removed, i, i+1)
	default:
		next.added = append(next.added, ord)
	}
	return next
}

// without returns the set less an ordinal that it has.
func (s *set) without(owner *byte, ord uint32) *set {
	next := s.next(owner)
	switch i := slices.Index(next.added, ord); {
	case next.owner == owner:
		next.base.Remove(ord)
	case i >= 0:
		next.added = slices.Delete(next.added, i, i+1)
	default:
		next.removed = append(next.removed, ord)
	}
	return next
}

// next returns an equal set for one more change. If it belongs to owner, its
// base may be written.
func (s *set) next(owner *byte) *set {
	if len(s.added)+len(s.removed) >= maxPending {
		return &set{owner: owner, base: s.merge()}
	}
	if whole := s.whole.Load(); whole != nil {
		return &set{base: whole}
	}
	return &set{base: s.base, added: slices.Clone(s.added), removed: slices.Clone(s.removed)}
}
