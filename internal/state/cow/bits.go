package cow

import (
	"iter"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/tidwall/btree"
)

// Bitmap is a set of ordinals.
type Bitmap = roaring.Bitmap

// Bits is a bitmap of ordinals for each of many keys.
type Bits struct {
	tree  *btree.BTreeG[bitmap]
	owner *byte // a bitmap with the same owner is not shared and may be written
}

type bitmap struct {
	key   string
	owner *byte
	bits  *Bitmap
}

// NewBits returns an empty set of bitmaps.
func NewBits() *Bits {
	less := func(a, b bitmap) bool { return a.key < b.key }
	return &Bits{btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), new(byte)}
}

// Copy returns bitmaps that may be written without the original noticing.
// Each is cloned when it is first written, not before.
func (b *Bits) Copy() *Bits { return &Bits{b.tree.IsoCopy(), new(byte)} }

// Add puts an ordinal into the bitmap of a key.
func (b *Bits) Add(key string, ord uint32) { b.writable(key).Add(ord) }

// Remove takes an ordinal out of the bitmap of a key. A bitmap that becomes
// empty is dropped.
func (b *Bits) Remove(key string, ord uint32) {
	if bits := b.Get(key); bits == nil || !bits.Contains(ord) {
		return
	}
	bits := b.writable(key)
	if bits.Remove(ord); bits.IsEmpty() {
		b.tree.Delete(bitmap{key: key})
	}
}

// Get returns the bitmap of a key, nil if there is none. It must not be
// written.
func (b *Bits) Get(key string) *Bitmap {
	e, _ := b.tree.Get(bitmap{key: key})
	return e.bits
}

// Keys yields the keys in order.
func (b *Bits) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		b.tree.Scan(func(e bitmap) bool { return yield(e.key) })
	}
}

func (b *Bits) writable(key string) *Bitmap {
	e, ok := b.tree.Get(bitmap{key: key})
	switch {
	case !ok:
		e.bits = roaring.New()
	case e.owner == b.owner:
		return e.bits
	default:
		e.bits = e.bits.Clone()
	}
	b.tree.Set(bitmap{key, b.owner, e.bits})
	return e.bits
}
