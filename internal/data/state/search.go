package state

import (
	"iter"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
)

// mostFound is how many records that have a part in a text are fetched by the text, at least
// and as a share of all. Where there are more, a page of them is found sooner by looking at
// one record after the other, which ends with the page as it is known how many there are.
const (
	mostFound  = 4000
	foundShare = 32
)

// search returns a page of the records that a query selects, if what it asks for is in
// texts that can be searched, and that is quicker than to look at every record.
func (t *table) search(q *filter.Query[kind.Record], p filter.Page) (page []kind.Record, total int64, ok bool) {
	part, slot := t.part(q.Parts())
	if slot < 0 {
		return nil, 0, false
	}
	order := q.Sort()
	if part.Whole && len(order) > 0 && order[0].Symbol.Index == part.Symbol.Index && !p.Unlimited {
		page, total = t.named(slot, part, order[0].Desc, p)
		return page, total, true
	}
	most := int64(max(mostFound, t.rows.Len()/foundShare))
	var keys []string
	t.texts[slot].With(part.Text, part.Folded, false, func(key string) bool {
		if total++; total <= most {
			keys = append(keys, key)
		}
		return part.Whole || total <= most
	})
	rows := filter.Rows[kind.Record]{Seq: t.called(slot, keys), Matched: part.Whole}
	if total > most {
		if !part.Whole {
			return nil, 0, false
		}
		rows = t.scan(q, p)
		rows.Matches = total
	}
	page, total = q.Select(rows, p)
	return page, total, true
}

// part is the longest of the parts that can be searched for, and the slot of its index; -1
// if there is none.
func (t *table) part(parts []filter.Part[kind.Record]) (best filter.Part[kind.Record], slot int) {
	slot = -1
	for _, part := range parts {
		if part.Symbol.Index == byID || len(part.Text) <= len(best.Text) {
			continue
		}
		// As many texts as records that have one: else two have the same.
		if i := t.slot(part.Symbol.Index); t.texts[i] != nil && t.texts[i].Len() == t.indexes[i].len() {
			best, slot = part, i
		}
	}
	return best, slot
}

// named is a page of the records with a part in the text of an index, in its order, and how
// many there are.
func (t *table) named(slot int, part filter.Part[kind.Record], down bool, p filter.Page) (page []kind.Record, total int64) {
	var keys []string
	t.texts[slot].With(part.Text, part.Folded, down, func(key string) bool {
		if total >= p.Offset && total < p.Offset+p.Limit {
			keys = append(keys, key)
		}
		total++
		return true
	})
	page = make([]kind.Record, 0, len(keys))
	for rec := range t.called(slot, keys) {
		page = append(page, rec)
	}
	return page, total
}

// called yields the records that an index has under keys.
func (t *table) called(slot int, keys []string) iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		for _, key := range keys {
			for rec := range t.filed(t.def.Indexes[slot].Name, key) {
				if !yield(rec) {
					return
				}
			}
		}
	}
}

// spell moves a record's text from the one that an index had it under to the one it has.
// Another record may have the first by now.
func (t *table) spell(index int, before, after []string) {
	texts := t.texts[index]
	if texts == nil {
		return
	}
	for _, key := range before {
		if t.indexes[index].count(key) == 0 {
			texts.Remove(key)
		}
	}
	for _, key := range after {
		texts.Add(key)
	}
}

// keysIn yields the keys of an index in order, each once.
func (t *table) keysIn(index int) iter.Seq[string] {
	return func(yield func(string) bool) {
		last := ""
		for key := range t.indexes[index].all() {
			if key != last && !yield(key) {
				return
			}
			last = key
		}
	}
}
