package filter

import (
	"iter"
	"math"
)

// The bounds of a page.
const (
	DefaultLimit = 10
	MaxLimit     = 500
	MaxOffset    = 100_000

	noLimit = math.MaxInt64
)

// Page is a part of the selected rows: Limit of them after the first Offset.
type Page struct {
	Limit     int64 // what the answer shows; the largest int64 if Unlimited
	Offset    int64
	Unlimited bool
}

// Page returns the page that the query's clauses ask for, and where it has
// none, the limit and offset parameters of the request, which may be nil.
func (q *Query[R]) Page(limit, offset *int64) Page {
	p := Page{Limit: DefaultLimit}
	if q.limit.set {
		limit = &q.limit.n
	}
	switch {
	case q.limit.none, limit != nil && *limit == -1:
		p.Limit, p.Unlimited = noLimit, true
	case limit != nil && *limit > 0:
		p.Limit = min(*limit, MaxLimit)
	}
	if q.skip.set {
		offset = &q.skip.n
	}
	if offset != nil {
		p.Offset = min(max(*offset, 0), MaxOffset)
	}
	return p
}

// Rows are the candidates for a page and what is known about them.
type Rows[R any] struct {
	Seq     iter.Seq[R]
	Matched bool  // all of them match the query
	Ordered bool  // they come in the query's order
	ByID    bool  // they come in the order of ids, which is the query's if it has none
	Count   int64 // how many there are; 0 if nobody knows
	Matches int64 // how many of them match the query; 0 if nobody knows
	Skipped int64 // how many that match were left out because they come before the page
}

// Select returns a page of the rows that match the query, in its order, and
// how many match in all. It keeps no more rows than the page and those before
// it, twice at most. The result is never nil.
func (q *Query[R]) Select(rows Rows[R], p Page) (selected []R, total int64) {
	end := int64(noLimit)
	if !p.Unlimited {
		end = p.Offset + p.Limit
	}
	ordered := rows.Ordered || rows.ByID && len(q.orders) == 0
	all := rows.Matched || q.All()
	if all && rows.Matches == 0 {
		rows.Matches = rows.Count
	}
	counted := ordered && rows.Matches > 0
	var best *first[R]
	if selected = []R{}; !ordered {
		best = newFirst(q, rows.ByID, end, rows.Count)
		defer best.done()
	}
	total = rows.Skipped
	for row := range rows.Seq {
		if counted && total >= end {
			break // the rest would only be counted
		}
		if !all && !q.Match(row) {
			continue
		}
		total++
		switch {
		case !ordered:
			best.add(row)
		case total > p.Offset && total <= end:
			selected = append(selected, row)
		}
	}
	if counted {
		total = rows.Matches
	}
	if ordered {
		return selected, total
	}
	return best.from(p.Offset), total
}
