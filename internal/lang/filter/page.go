package filter

import (
	"iter"
	"math"
	"slices"
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
	Count   int64 // how many there are; 0 if nobody knows
}

// Select returns a page of the rows that match the query, in its order, and
// how many match in all. It keeps no more rows than the page and those before
// it. The result is never nil.
func (q *Query[R]) Select(rows Rows[R], p Page) (selected []R, total int64) {
	end := int64(noLimit)
	if !p.Unlimited {
		end = p.Offset + p.Limit
	}
	selected = []R{}
	best := heap[R]{compare: q.Compare, size: end}
	all := rows.Matched || q.All()
	counted := all && rows.Ordered && rows.Count > 0
	for row := range rows.Seq {
		if counted && total >= end {
			break // the rest would only be counted
		}
		if !all && !q.Match(row) {
			continue
		}
		total++
		switch {
		case !rows.Ordered:
			best.add(row)
		case total > p.Offset && total <= end:
			selected = append(selected, row)
		}
	}
	if counted {
		total = rows.Count
	}
	if rows.Ordered {
		return selected, total
	}
	slices.SortFunc(best.rows, q.Compare)
	if p.Offset >= int64(len(best.rows)) {
		return selected, total
	}
	return best.rows[p.Offset:], total
}

// heap keeps the first rows in an order, as many as its size. Once full, the
// last of them is at the root.
type heap[R any] struct {
	compare func(a, b R) int
	size    int64
	rows    []R
}

func (h *heap[R]) add(row R) {
	switch n := int64(len(h.rows)); {
	case n < h.size:
		h.rows = append(h.rows, row)
		if n+1 == h.size {
			for i := len(h.rows)/2 - 1; i >= 0; i-- {
				h.sink(i)
			}
		}
	case n > 0 && h.compare(row, h.rows[0]) < 0:
		h.rows[0] = row
		h.sink(0)
	}
}

// sink moves the row at i down until no later row is below it.
func (h *heap[R]) sink(i int) {
	for {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.rows); child++ {
			if h.compare(h.rows[child], h.rows[last]) > 0 {
				last = child
			}
		}
		if last == i {
			return
		}
		h.rows[i], h.rows[last] = h.rows[last], h.rows[i]
		i = last
	}
}
