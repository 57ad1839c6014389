package state

import (
	"fmt"
	"hash/maphash"
	"runtime"
	"sync"
	"weak"

	"netkeep.internal/internal/lang/kind"
)

var frozenSeed = maphash.MakeSeed()

// sums is what records summed up to when they were frozen, by row. It is beside rows, and
// keeps none of them: where nothing is frozen they have no room for it.
var sums sync.Map // of weak.Pointer[row] to uint64

// freeze has a row's record looked at before it is replaced.
func (r *row) freeze(d *kind.Def) {
	at := weak.Make(r)
	sums.Store(at, digest(d, r.rec))
	runtime.AddCleanup(r, func(at weak.Pointer[row]) { sums.Delete(at) }, at)
}

// digest sums up a record's stored form.
func digest(d *kind.Def, rec kind.Record) uint64 {
	b, err := d.Encode(rec)
	if err != nil {
		panic(err)
	}
	return maphash.Bytes(frozenSeed, b)
}

// checkFrozen panics if somebody wrote to a shared record since it was
// stored.
func (r *row) checkFrozen(d *kind.Def) {
	if sum, frozen := sums.Load(weak.Make(r)); frozen && sum != digest(d, r.rec) {
		panic(fmt.Sprintf("state: shared %s %s was written to", d.Name, r.id))
	}
}
