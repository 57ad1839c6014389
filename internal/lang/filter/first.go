package filter

import (
	"math/rand/v2"
	"slices"
)

// keyed is a row with the value that it is sorted by first, which is read once: a row
// is compared with others many times.
type keyed[R any] struct {
	row R
	key Value
}

// keyed reads what a row is sorted by first.
func (q *Query[R]) keyed(row R) keyed[R] {
	if len(q.orders) == 0 {
		return keyed[R]{row, q.schema.symbols[idName].One(row)}
	}
	return keyed[R]{row, q.orders[0].value(row)}
}

// before orders two rows as Compare does.
func (q *Query[R]) before(a, b keyed[R]) int {
	c := compareForSort(a.key, b.key)
	switch {
	case c == 0 && len(q.orders) > 0:
		return q.compareFrom(1, a.row, b.row)
	case len(q.orders) > 0 && q.orders[0].Desc:
		return -c
	}
	return c
}

// mostHeaped is up to how many rows a heap is quicker than to keep more than are wanted
// and to divide them now and then.
const mostHeaped = 1000

// first keeps the first rows in an order, as many as its size. A few are in a heap with
// the last of them at the root; of many there are up to twice as many, in no order.
type first[R any] struct {
	before func(a, b keyed[R]) int
	size   int64
	rows   []keyed[R]
}

// newFirst returns one for so many rows out of a number of them, 0 if that is not known.
func newFirst[R any](before func(a, b keyed[R]) int, size, of int64) first[R] {
	h := first[R]{before: before, size: size}
	if size > mostHeaped && of > mostHeaped {
		h.rows = make([]keyed[R], 0, min(size, of/2)) // of which some may match
	}
	return h
}

func (h *first[R]) add(row keyed[R]) {
	n := int64(len(h.rows))
	if h.size > mostHeaped {
		h.rows = append(h.rows, row)
		if n/2 >= h.size {
			divide(h.rows, int(h.size), h.before)
			clear(h.rows[h.size:])
			h.rows = h.rows[:h.size]
		}
		return
	}
	switch {
	case n < h.size:
		h.rows = append(h.rows, row)
		if n+1 == h.size {
			for i := len(h.rows)/2 - 1; i >= 0; i-- {
				h.sink(i)
			}
		}
	case n > 0 && h.before(row, h.rows[0]) < 0:
		h.rows[0] = row
		h.sink(0)
	}
}

// sink moves the row at i down until no later row is below it.
func (h *first[R]) sink(i int) {
	for {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h.rows); child++ {
			if h.before(h.rows[child], h.rows[last]) > 0 {
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

// from returns the rows in order, without those that come before an offset.
func (h *first[R]) from(offset int64) []keyed[R] {
	rows := h.rows
	if offset >= int64(len(rows)) {
		return nil
	}
	if h.size < int64(len(rows)) {
		divide(rows, int(h.size), h.before)
		rows = rows[:h.size]
	}
	if offset > 0 {
		divide(rows, int(offset), h.before)
		rows = rows[offset:]
	}
	slices.SortFunc(rows, h.before)
	return rows
}

// divide puts those that come first, n of them, before all others, without an order among
// either. The row that each round goes by is drawn, so that nobody can choose names that
// make it slow.
func divide[R any](rows []keyed[R], n int, before func(a, b keyed[R]) int) {
	for len(rows) > 1 && n > 0 && n < len(rows) {
		last := len(rows) - 1
		i := rand.IntN(len(rows))
		rows[i], rows[last] = rows[last], rows[i]
		at := 0
		for i := range last {
			if before(rows[i], rows[last]) < 0 {
				rows[i], rows[at] = rows[at], rows[i]
				at++
			}
		}
		rows[at], rows[last] = rows[last], rows[at]
		if n <= at {
			rows = rows[:at]
		} else {
			rows, n = rows[at+1:], n-at-1
		}
	}
}
