package state

import (
	"iter"
	"slices"
	"strings"

	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
)

// sparse is how many times larger than a set a table must be for looking its
// records up to be faster than passing over all of them.
const sparse = 16

// Within yields the records of a kind with role attributes that have the
// ordinals in set, by id.
func (s *Snapshot) Within(d *kind.Def, set *cow.Bitmap) iter.Seq[kind.Record] {
	t := s.table(d)
	switch n := int(set.GetCardinality()); {
	case set == t.bits.Get(everyone):
		return t.all()
	case n < t.rows.Len()/sparse:
		return t.pick(set, n)
	}
	return func(yield func(kind.Record) bool) {
		for r := range t.rows.All() {
			if set.Contains(r.ord) && !yield(r.rec) {
				return
			}
		}
	}
}

// pick yields the records with n ordinals, by id.
func (t *table) pick(set *cow.Bitmap, n int) iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		rows := make([]*row, 0, n)
		key := new(row)
		for it := set.Iterator(); it.HasNext(); {
			key.ord = it.Next()
			if r, ok := t.byOrd.Get(key); ok {
				rows = append(rows, r)
			}
		}
		slices.SortFunc(rows, func(a, b *row) int { return strings.Compare(a.id, b.id) })
		for _, r := range rows {
			if !yield(r.rec) {
				return
			}
		}
	}
}
