package stream

import "math/bits"

// idleSlots is how many slots a ring keeps when nothing is in it.
const idleSlots = 8

// ring holds things by number modulo its length, which is a power of two. Who
// uses it knows from which number to which it is in use; all other slots are
// zero.
type ring[T any] struct{ slots []T }

func (r *ring[T]) at(n int64) *T { return &r.slots[n&int64(len(r.slots)-1)] }

// fit makes room for numbers from to to, to excluded.
func (r *ring[T]) fit(from, to int64) {
	if to-from <= int64(len(r.slots)) {
		return
	}
	next := ring[T]{make([]T, max(idleSlots, 1<<bits.Len64(uint64(to-from-1))))}
	for i := range r.slots {
		n := from + int64(i)
		*next.at(n) = *r.at(n)
	}
	*r = next
}

// idle gives memory back when nothing is in the ring.
func (r *ring[T]) idle() {
	if len(r.slots) > idleSlots {
		r.slots = nil
	}
}
