package state

import (
	"iter"
	"slices"

	"netkeep.internal/internal/lang/kind"
)

// Filing yields, for each record of a kind, its id and whether it is found as it
// should be by all else that it can be found by, and then the ids of those that are
// also found as they should not. All is right unless somebody wrote to a shared
// record, or there is a fault in here.
func (s *Snapshot) Filing(d *kind.Def) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		t := s.table(d)
		right := make([]int, len(t.indexes)) // entries that there should be
		tags := 0
		for r := range t.rows.All() {
			if !yield(r.id, t.reaches(r, right, &tags)) {
				return
			}
		}
		_ = t.indexed(right, yield) && t.tagged(tags, yield)
	}
}

// reaches reports whether a row is found in every way, and counts the ways.
func (t *table) reaches(r *row, right []int, tags *int) bool {
	found := true
	for i, index := range t.indexes {
		keys := t.keys(i, r)
		for at, key := range keys {
			if slices.Contains(keys[:at], key) {
				continue
			}
			right[i]++
			at, ok := index.get(key, r)
			found = found && ok && at == r && (t.texts[i] == nil || t.texts[i].Has(key))
		}
	}
	if t.bits == nil {
		return found
	}
	at, ok := t.byOrd.Get(r)
	found = found && ok && at == r && t.bits.Has(everyone, r.ord)
	attributes := t.attributes(r)
	for at, a := range attributes {
		if !slices.Contains(attributes[:at], a) {
			*tags++
			found = found && t.bits.Has(a, r.ord)
		}
	}
	*tags++ // everyone
	return found
}

// indexed goes over the indexes that have more entries than is right.
func (t *table) indexed(right []int, yield func(id string, right bool) bool) bool {
	for i, index := range t.indexes {
		if texts := t.texts[i]; texts != nil && texts.Len() > index.len() && !yield("?", false) {
			return false
		}
		if index.len() == right[i] {
			continue
		}
		for key, r := range index.all() {
			if !yield(r.id, t.get(r.id) == r && slices.Contains(t.keys(i, r), key)) {
				return false
			}
		}
	}
	return true
}

// tagged goes over the attributes if more records have them than is right.
func (t *table) tagged(right int, yield func(id string, right bool) bool) bool {
	if t.bits == nil || t.bits.Len() == right {
		return true
	}
	for attribute := range t.bits.Keys() {
		for it := t.bits.Get(attribute).Iterator(); it.HasNext(); {
			r, ok := t.byOrd.Get(&row{ord: it.Next()})
			if !ok {
				r = &row{id: "?"}
			}
			right := ok && t.get(r.id) == r && (attribute == everyone || slices.Contains(t.attributes(r), attribute))
			if !yield(r.id, right) {
				return false
			}
		}
	}
	return true
}
