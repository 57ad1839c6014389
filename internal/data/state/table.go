package state

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
)

// row is one record in a table. Rows are shared between snapshots and never
// written after they are published.
type row struct {
	id  string
	rec kind.Record
	rev store.Rev // that wrote the record; while it is not stored, the one it replaces
	ord uint32    // dense number within the table, for bitmaps
	// size is that of the stored form.
	size uint32
}

// table is the records of one kind with their indexes.
type table struct {
	def     *kind.Def
	rows    cow.Tree[*row]
	indexes []index      // in the order of def.Indexes
	texts   []*cow.Texts // the keys of each index that is searched for parts; nil for others
	ranked  *ranks       // only for kinds with an order of their own
	copying *sync.Mutex  // shared with all copies

	// Only for kinds with role attributes:
	byOrd cow.Tree[*row]
	bits  *cow.Bits        // attribute to ordinals
	free  cow.Tree[uint32] // ordinals given back by deletes
	next  uint32           // ordinals from here on were never used
}

// rowLess is the order of rows, and ordLess that of their ordinals.
func rowLess(a, b *row) bool { return a.id < b.id }
func ordLess(a, b *row) bool { return a.ord < b.ord }

func newTable(d *kind.Def) *table {
	t := &table{def: d, copying: new(sync.Mutex), rows: cow.NewTree(rowLess)}
	t.texts = make([]*cow.Texts, len(d.Indexes))
	for i, ix := range d.Indexes {
		t.indexes = append(t.indexes, newIndex(ix))
		if ix.Searched {
			t.texts[i] = cow.NewTexts()
		}
	}
	if d.Ranks() {
		t.ranked = newRanks()
	}
	if d.Attributes != nil {
		t.byOrd = cow.NewTree(ordLess)
		t.bits, t.free = cow.NewBits(), cow.NewTree(cmp.Less[uint32])
	}
	return t
}

// copy returns a table that may be written without t noticing. The owner of
// memory copies, and whoever tries a write: copying marks the original, which
// is nothing that readers see but must not be done by two at a time.
func (t *table) copy() *table {
	t.copying.Lock()
	defer t.copying.Unlock()
	c := *t
	c.rows = t.rows.Copy()
	c.indexes = make([]index, len(t.indexes))
	for i, ix := range t.indexes {
		c.indexes[i] = ix.copy()
	}
	c.texts = slices.Clone(t.texts)
	for i, texts := range t.texts {
		if texts != nil {
			c.texts[i] = texts.Copy()
		}
	}
	if t.ranked != nil {
		c.ranked = t.ranked.copy()
	}
	if t.bits != nil {
		c.byOrd, c.bits, c.free = t.byOrd.Copy(), t.bits.Copy(), t.free.Copy()
	}
	return &c
}

// get returns the row with an id, or nil.
func (t *table) get(id string) *row {
	r, _ := t.rows.Get(&row{id: id})
	return r
}

// rev returns the stored revision of a record, 0 if there is none.
func (t *table) rev(id string) store.Rev {
	if r := t.get(id); r != nil {
		return r.rev
	}
	return 0
}

// put adds r in the place of old, the row with its id, nil if there is none. It
// sets r's ordinal.
func (t *table) put(old, r *row) {
	if t.bits != nil {
		t.number(old, r)
	}
	t.place(old, r)
}

// putAt is put of a row that has its ordinal already, which is that of old or
// nobody's.
func (t *table) putAt(old, r *row) {
	if t.bits != nil {
		if old == nil {
			t.free.Delete(r.ord)
			t.next = max(t.next, r.ord+1)
			t.bits.Add(everyone, r.ord)
		}
		t.byOrd.Set(r)
	}
	t.place(old, r)
}

// place adds a row that has its ordinal.
func (t *table) place(old, r *row) {
	if t.bits != nil {
		t.tag(old, r)
	}
	for i := range t.indexes {
		t.file(i, old, r)
	}
	t.rank(old, r)
	t.rows.Set(r)
}

// delete removes a row that is in the table.
func (t *table) delete(old *row) {
	for i := range t.indexes {
		t.file(i, old, nil)
	}
	t.rank(old, nil)
	if t.bits != nil {
		t.tag(old, nil)
		t.bits.Remove(everyone, old.ord)
		t.byOrd.Delete(old)
		t.free.Set(old.ord)
	}
	t.rows.Delete(old)
}

// file moves a record from where an index has old to where it has r. Either
// may be nil.
func (t *table) file(slot int, old, r *row) {
	ix := t.indexes[slot]
	before, after := t.keys(slot, old), t.keys(slot, r)
	if !slices.Equal(before, after) {
		for _, key := range before {
			ix.delete(key, old)
		}
		t.spell(slot, before, after)
	}
	for _, key := range after {
		ix.set(key, r)
	}
}

func (t *table) keys(slot int, r *row) []string {
	if r == nil {
		return nil
	}
	var keys []string
	t.def.Indexes[slot].Keys(r.rec, func(key string) { keys = append(keys, key) })
	return keys
}

// everyone is the key of a bitmap with all ordinals. No attribute is empty.
const everyone = ""

// number gives r the ordinal of the row it replaces, or the lowest free one.
func (t *table) number(old, r *row) {
	if old != nil {
		r.ord = old.ord
	} else {
		r.ord = t.takeOrdinal()
		t.bits.Add(everyone, r.ord)
	}
	t.byOrd.Set(r)
}

func (t *table) takeOrdinal() uint32 {
	if ord, ok := t.free.Min(); ok {
		t.free.Delete(ord)
		return ord
	}
	t.next++
	return t.next - 1
}

// tag moves an ordinal from the bitmaps of old's attributes to those of r's.
// Bitmaps that stay the same are not touched: a write to one copies it.
func (t *table) tag(old, r *row) {
	before, after := t.attributes(old), t.attributes(r)
	for _, a := range before {
		if !slices.Contains(after, a) {
			t.bits.Remove(a, old.ord)
		}
	}
	for _, a := range after {
		if !slices.Contains(before, a) {
			t.bits.Add(a, r.ord)
		}
	}
}

func (t *table) attributes(r *row) []string {
	if r == nil {
		return nil
	}
	attributes := t.def.AttributesOf(r.rec)
	if slices.Contains(attributes, everyone) {
		attributes = slices.DeleteFunc(slices.Clone(attributes), func(a string) bool { return a == everyone })
	}
	return attributes
}

// filed yields the records that an index has under key.
func (t *table) filed(index, key string) iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		t.indexes[t.slot(index)].under(key, func(r *row) bool { return yield(r.rec) })
	}
}

func (t *table) slot(index string) int {
	for i, ix := range t.def.Indexes {
		if ix.Name == index {
			return i
		}
	}
	panic("state: kind " + t.def.Name + " has no index " + index)
}

func (t *table) all() iter.Seq[kind.Record] { return records(t.rows.All()) }

func records(rows iter.Seq[*row]) iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		for r := range rows {
			if !yield(r.rec) {
				return
			}
		}
	}
}

// at yields the records with the ordinals in set.
func (t *table) at(set *cow.Bitmap) iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		for it := set.Iterator(); it.HasNext(); {
			if r, ok := t.byOrd.Get(&row{ord: it.Next()}); ok && !yield(r.rec) {
				return
			}
		}
	}
}
