package state

import (
	"iter"

	"netkeep.internal/internal/lang/kind"
)

// together is how many records are fetched at once.
const together = 32

// fetched yields the records of rows that nobody writes meanwhile. They lie anywhere in
// memory, and most of the time of a scan is waiting for it: those that are asked for at
// once are waited for together.
func fetched(rows iter.Seq[*row]) iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		var some [together]*row
		n := 0
		for r := range rows {
			if some[n] = r; n < together-1 {
				n++
				continue
			}
			if !yieldAll(some[:], yield) {
				return
			}
			n = 0
		}
		yieldAll(some[:n], yield)
	}
}

// yieldAll fetches what rows lead to, and then yields it.
func yieldAll(rows []*row, yield func(kind.Record) bool) bool {
	var recs [together]kind.Record
	for i, r := range rows {
		recs[i] = r.rec
	}
	begun := 0
	for _, rec := range recs[:len(rows)] {
		begun += len(rec.Base().ID)
	}
	if begun < 0 { // never: the sum is there so that it is read
		return false
	}
	for _, rec := range recs[:len(rows)] {
		if !yield(rec) {
			return false
		}
	}
	return true
}
