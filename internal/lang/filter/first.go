package filter

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// mark stands for a row among those that are kept. It is small and leads nowhere, so
// that to move one costs little, also while memory is collected.
type mark struct {
	head uint64 // how the row's first key begins, in the direction of the order
	slot uint32 // where the row is
	came uint32 // after how many others
}

// mostHeaped is up to how many rows a heap is quicker than to keep more than are wanted
// and to divide them now and then.
const mostHeaped = 1000

// kept is where rows are while the first of them are looked for. Their first keys are
// read once: a row is compared with others many times.
type kept[R any] struct {
	marks []mark
	rows  []R     // by slot
	keys  []Value // by slot
}

// first keeps the first rows in an order, as many as its size. A few are in a heap with
// the last of them at the root; of many there are up to twice as many, in no order.
type first[R any] struct {
	*kept[R]
	q    *Query[R]
	byID bool // rows come in the order of ids
	size int64
	n    int // how many marks stand for rows; the slots of the others are free
	came uint32
}

// most is the most rows that a page and those before it are, twice.
const most = 2 * (MaxOffset + MaxLimit)

// spare has what was used to look for the first rows, for whoever does so next: it takes
// megabytes, and to collect them takes longer than to look.
var spare sync.Pool

// newFirst returns one for so many rows out of a number of them, 0 if that is not known.
func newFirst[R any](q *Query[R], byID bool, size, of int64) *first[R] {
	h := &first[R]{q: q, byID: byID, size: size}
	if size > mostHeaped {
		h.kept, _ = spare.Get().(*kept[R]) // of another type if others were asked for
	}
	if h.kept == nil {
		h.kept = &kept[R]{}
		if size > mostHeaped && of > mostHeaped {
			h.grow(int(min(size, of/2))) // of which some may match
		}
	}
	return h
}

func (k *kept[R]) grow(n int) {
	k.marks, k.rows, k.keys = slices.Grow(k.marks, n), slices.Grow(k.rows, n), slices.Grow(k.keys, n)
}

// done gives back what it used.
func (h *first[R]) done() {
	if h.size <= mostHeaped || len(h.rows) > most {
		return
	}
	clear(h.rows)
	clear(h.keys)
	h.marks, h.rows, h.keys = h.marks[:0], h.rows[:0], h.keys[:0]
	spare.Put(h.kept)
	h.kept = nil
}

func (h *first[R]) add(row R) {
	m := mark{came: h.came}
	h.came++
	key := h.q.first(row)
	m.head = key.head()
	if len(h.q.orders) > 0 && h.q.orders[0].Desc {
		m.head = ^m.head
	}
	switch {
	case h.size > mostHeaped:
		h.put(m, row, key)
		if int64(h.n/2) >= h.size {
			h.divide(h.marks[:h.n], int(h.size))
			h.n = int(h.size)
		}
	case int64(h.n) < h.size:
		h.put(m, row, key)
		if int64(h.n) == h.size {
			for i := h.n/2 - 1; i >= 0; i-- {
				h.sink(i)
			}
		}
	case h.n > 0 && m.head <= h.marks[0].head:
		h.put(m, row, key) // beside the heap, in the one slot that is free
		if h.n--; h.before(h.marks[h.n], h.marks[0]) < 0 {
			h.marks[0], h.marks[h.n] = h.marks[h.n], h.marks[0]
			h.sink(0)
		}
	}
}

// put adds a row after the others.
func (h *first[R]) put(m mark, row R, key Value) {
	if h.n < len(h.marks) {
		m.slot = h.marks[h.n].slot
		h.rows[m.slot], h.keys[m.slot] = row, key
		h.marks[h.n] = m
	} else {
		m.slot = uint32(len(h.rows))
		h.marks, h.rows, h.keys = append(h.marks, m), append(h.rows, row), append(h.keys, key)
	}
	h.n++
}

// first reads what a row is sorted by first.
func (q *Query[R]) first(row R) Value {
	if len(q.orders) == 0 {
		return q.schema.symbols[idName].One(row)
	}
	return q.orders[0].value(row)
}

// before orders two rows as Compare does.
func (h *first[R]) before(a, b mark) int {
	if a.head != b.head {
		return cmp.Compare(a.head, b.head)
	}
	if c := compareForSort(h.keys[a.slot], h.keys[b.slot]); c != 0 {
		if len(h.q.orders) > 0 && h.q.orders[0].Desc {
			return -c
		}
		return c
	}
	if h.byID && len(h.q.orders) <= 1 {
		return cmp.Compare(a.came, b.came)
	}
	return h.q.compareFrom(min(1, len(h.q.orders)), h.rows[a.slot], h.rows[b.slot])
}

// sink moves the row at i down until no later row is below it.
func (h *first[R]) sink(i int) {
	for {
		last := i
		for child := 2*i + 1; child <= 2*i+2 && child < h.n; child++ {
			if h.before(h.marks[child], h.marks[last]) > 0 {
				last = child
			}
		}
		if last == i {
			return
		}
		h.marks[i], h.marks[last] = h.marks[last], h.marks[i]
		i = last
	}
}

// from returns the rows in order, without those that come before an offset.
func (h *first[R]) from(offset int64) []R {
	marks := h.marks[:h.n]
	if offset >= int64(len(marks)) {
		return []R{}
	}
	if h.size < int64(len(marks)) {
		h.divide(marks, int(h.size))
		marks = marks[:h.size]
	}
	if offset > 0 {
		h.divide(marks, int(offset))
		marks = marks[offset:]
	}
	slices.SortFunc(marks, h.before)
	rows := make([]R, len(marks))
	for i, m := range marks {
		rows[i] = h.rows[m.slot]
	}
	return rows
}

// divide puts those that come first, n of them, before all others, without an order among
// either. The row that each round goes by is drawn, so that nobody can choose names that
// make it slow.
func (h *first[R]) divide(marks []mark, n int) {
	for len(marks) > 1 && n > 0 && n < len(marks) {
		last := len(marks) - 1
		i := rand.IntN(len(marks))
		marks[i], marks[last] = marks[last], marks[i]
		pivot, at := marks[last], 0
		for i, m := range marks[:last] {
			if m.head < pivot.head || m.head == pivot.head && h.before(m, pivot) < 0 {
				marks[i], marks[at] = marks[at], m
				at++
			}
		}
		marks[at], marks[last] = marks[last], marks[at]
		if n <= at {
			marks = marks[:at]
		} else {
			marks, n = marks[at+1:], n-at-1
		}
	}
}

// head is how a value begins, as a number: of two values the one that comes first has no
// larger one, and those that are absent have 0.
func (v Value) head() uint64 {
	const second = int64(time.Second)
	switch v.typ {
	case None:
		return 0
	case String:
		var n uint64
		for i := range min(len(v.text), 8) {
			n |= uint64(v.text[i]) << (56 - 8*i)
		}
		return n
	case Time:
		switch { // beyond what nanoseconds can count, all are alike
		case v.bits < math.MinInt64/second:
			return 0
		case v.bits >= math.MaxInt64/second:
			return math.MaxUint64
		}
		return signed(v.bits*second + int64(v.nano))
	case Int:
		return floating(float64(v.bits))
	case Float:
		return floating(v.Float())
	}
	return signed(v.bits)
}

// signed is an integer as a number in the same order.
func signed(i int64) uint64 { return uint64(i) ^ 1<<63 }

// floating is a floating-point number as one in the same order: those that are none come
// first, and both zeros are one.
func floating(f float64) uint64 {
	if math.IsNaN(f) {
		return 0
	}
	if f == 0 {
		f = 0
	}
	bits := math.Float64bits(f)
	if bits>>63 != 0 {
		return ^bits
	}
	return bits | 1<<63
}
