package filter

import "sync"

// counter counts elements of a set. Its visit is bound to it once: accessors
// take a callback, and a new closure for every row would be garbage.
type counter[T any] struct {
	n     int64
	visit func(T) bool
}

// tally returns a function that counts the elements of a row's set that a
// test accepts, and stops once there are enough of them.
func tally[R, T any](each func(R, func(T) bool), test func(T) bool, enough int64) func(R) int64 {
	pool := &sync.Pool{New: func() any {
		c := &counter[T]{}
		c.visit = func(v T) bool {
			if test(v) {
				c.n++
			}
			return c.n < enough
		}
		return c
	}}
	return func(row R) int64 {
		c := pool.Get().(*counter[T])
		c.n = 0
		each(row, c.visit)
		n := c.n
		pool.Put(c)
		return n
	}
}

// exists returns a function that tells whether a test accepts some element.
func exists[R, T any](each func(R, func(T) bool), test func(T) bool) func(R) bool {
	find := tally(each, test, 1)
	return func(row R) bool { return find(row) > 0 }
}

// window is what a sub query's clauses leave of the rows it selects. As in
// paging, a number that makes no sense has no effect.
type window struct{ skip, limit int64 }

func (t *Tree) window() window {
	w := window{limit: noLimit}
	if t.skip.n > 0 {
		w.skip = t.skip.n
	}
	if t.limit.n > 0 {
		w.limit = t.limit.n
	}
	return w
}

// enough is how many selected rows decide how many are left.
func (w window) enough() int64 {
	if w.limit > noLimit-w.skip {
		return noLimit
	}
	return w.skip + w.limit
}

// left is how many of the selected rows are left.
func (w window) left(selected int64) int64 {
	return min(max(selected-w.skip, 0), w.limit)
}
