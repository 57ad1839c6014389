package state

import (
	"iter"
	"slices"

	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
)

// Query returns a page of the records of a kind that match q, and how many
// match in all. It uses an index where the query allows.
func (s *Snapshot) Query(d *kind.Def, q *filter.Query[kind.Record], p filter.Page) ([]kind.Record, int64) {
	t := s.table(d)
	if choice, ok := t.plan(q.Needs()); ok {
		// What an index has under one key is in the order of ids.
		ordered := len(choice) == 1 && len(choice[0].Values) == 1 && len(q.Sort()) == 0 && !t.attributed(choice[0])
		rows := filter.Rows[kind.Record]{Seq: t.lookUp(choice), Ordered: ordered}
		if ordered {
			t.skip(&rows, q, choice[0], p)
		}
		return q.Select(rows, p)
	}
	if page, total, ok := t.search(q, p); ok {
		return page, total
	}
	rows := t.scan(q, p)
	if !rows.Matched {
		rows.Count = int64(t.rows.Len())
	}
	return q.Select(rows, p)
}

// skip leaves out what comes before the page, if a query asks for nothing but a value that
// many records may have: all that an index has under it match.
func (t *table) skip(rows *filter.Rows[kind.Record], q *filter.Query[kind.Record], term filter.Term[kind.Record], p filter.Page) {
	index, key := term.Symbol.Index, term.Values[0].String()
	if index == byID || t.def.Indexes[t.slot(index)].Unique {
		return
	}
	if test, only := q.Only(term.Symbol); !only || !test(term.Values[0]) {
		return
	}
	ix := t.indexes[t.slot(index)]
	rows.Matched, rows.Count = true, int64(ix.count(key))
	rows.Skipped = min(p.Offset, rows.Count)
	rows.Seq = records(ix.after(key, int(rows.Skipped)))
}

// terms are equalities of which every record that a query selects satisfies
// one.
type terms = []filter.Term[kind.Record]

// plan picks the choice to look up, if the indexes can answer one of them: the
// one that finds the fewest records.
func (t *table) plan(choices []terms) (best terms, ok bool) {
	fewest := 0
	for _, choice := range choices {
		if slices.ContainsFunc(choice, unfiled) {
			continue
		}
		n, dear := t.found(choice)
		if dear && n > t.rows.Len() {
			continue // to look at all of them is quicker
		}
		if !ok || n < fewest {
			best, ok, fewest = choice, true, n
		}
	}
	return best, ok
}

// apart is how many records can be looked at one after the other in the time in
// which one is found by its ordinal.
const apart = 4

// found is how many records satisfy a choice, or a little more. If it is dear, it
// counts what it costs to find them by ordinals.
func (t *table) found(choice terms) (n int, dear bool) {
	for _, term := range choice {
		for _, v := range term.Values {
			switch index := term.Symbol.Index; {
			case t.attributed(term):
				dear = true
				n += apart * t.bits.Count(v.String())
			case index == byID || t.def.Indexes[t.slot(index)].Unique:
				n++
			default:
				n += t.indexes[t.slot(index)].count(v.String())
			}
		}
	}
	return n, dear
}

// attributed reports whether a term is about role attributes.
func (t *table) attributed(term filter.Term[kind.Record]) bool {
	return t.bits != nil && term.Symbol.Index == t.def.Attributes.Name
}

// unfiled reports whether an index leaves records out that satisfy the term:
// none has those with an empty text.
func unfiled(term filter.Term[kind.Record]) bool {
	return slices.ContainsFunc(term.Values, func(v filter.Value) bool { return v.String() == "" })
}

// byID stands for the records themselves where an index is named.
const byID = "id"

// lookUp yields the records that satisfy one of the terms, each once.
func (t *table) lookUp(choice terms) iter.Seq[kind.Record] {
	if len(choice) == 1 {
		return t.satisfying(choice[0])
	}
	return func(yield func(kind.Record) bool) {
		seen := map[kind.Record]bool{}
		for _, term := range choice {
			for rec := range t.satisfying(term) {
				if seen[rec] {
					continue
				}
				seen[rec] = true
				if !yield(rec) {
					return
				}
			}
		}
	}
}

// satisfying yields the records that satisfy a term. Indexed fields that
// queries can name have one value, but for attributes, so there is none twice.
func (t *table) satisfying(term filter.Term[kind.Record]) iter.Seq[kind.Record] {
	if t.attributed(term) {
		set := cow.NewBitmap()
		for _, v := range term.Values {
			if some := t.bits.Get(v.String()); some != nil {
				set.Or(some)
			}
		}
		return t.at(set)
	}
	return func(yield func(kind.Record) bool) {
		for _, v := range term.Values {
			for rec := range t.equal(term.Symbol.Index, v.String()) {
				if !yield(rec) {
					return
				}
			}
		}
	}
}

func (t *table) equal(index, key string) iter.Seq[kind.Record] {
	if index != byID {
		return t.filed(index, key)
	}
	return func(yield func(kind.Record) bool) {
		if r := t.get(key); r != nil {
			yield(r.rec)
		}
	}
}

// scan yields the records that a query has to look at, in the order asked for
// if an index has it. If it selects all of them, those before the page are left out.
func (t *table) scan(q *filter.Query[kind.Record], p filter.Page) filter.Rows[kind.Record] {
	orders := q.Sort()
	n := 0
	if q.All() {
		n = int(min(p.Offset, int64(t.rows.Len())))
	}
	if len(orders) == 0 {
		return filter.Rows[kind.Record]{Seq: fetched(t.rows.AllFrom(n)), ByID: true, Skipped: int64(n)}
	}
	first := orders[0] // the others decide nothing if it differs everywhere
	switch {
	case first.Symbol.Index == "":
		return filter.Rows[kind.Record]{Seq: fetched(t.rows.All()), ByID: true}
	case first.Symbol.Index != byID:
		return t.scanIndex(q, first, n)
	case first.Desc:
		return filter.Rows[kind.Record]{Seq: fetched(t.rows.BackwardFrom(n)), Ordered: true, Skipped: int64(n)}
	}
	return filter.Rows[kind.Record]{Seq: fetched(t.rows.AllFrom(n)), Ordered: true, Skipped: int64(n)}
}

// scanIndex yields the records in the order of an index, if it holds all of
// them under keys of their own, without so many at the beginning. A query about nothing but
// the indexed field is judged by the keys: records in that order lie anywhere in memory, and
// most of the time of a scan would go into fetching them.
func (t *table) scanIndex(q *filter.Query[kind.Record], order filter.Order[kind.Record], skip int) filter.Rows[kind.Record] {
	i := t.slot(order.Symbol.Index)
	tree, is := t.indexes[i].(sorted)
	if !is || !t.def.Indexes[i].Unique || tree.len() != t.rows.Len() {
		return filter.Rows[kind.Record]{Seq: fetched(t.rows.All()), ByID: true}
	}
	entries := tree.AllFrom(skip)
	if order.Desc {
		entries = tree.BackwardFrom(skip)
	}
	test, judged := q.Only(order.Symbol)
	judged = judged && !q.All()
	return filter.Rows[kind.Record]{Ordered: true, Matched: judged, Skipped: int64(skip), Seq: func(yield func(kind.Record) bool) {
		for e := range entries {
			if judged && !test(filter.StringValue(e.key)) {
				continue
			}
			if !yield(e.row.rec) {
				return
			}
		}
	}}
}
