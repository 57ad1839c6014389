package state

import (
	"fmt"
	"hash/maphash"

	"netkeep.internal/internal/lang/kind"
)

var frozenSeed = maphash.MakeSeed()

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
	if r.sum != 0 && r.sum != digest(d, r.rec) {
		panic(fmt.Sprintf("state: shared %s %s was written to", d.Name, r.id))
	}
}
