package state

import (
	"time"

	"netkeep.internal/internal/lang/kind"
)

// Revised is a record as another snapshot is to have it; nil for none.
type Revised struct {
	Ref
	Record kind.Record
}

// Revise returns a snapshot of a time that has some records otherwise and shares all
// else with s. It is for what there was once: nobody checks that the records fit
// together, and they have the revisions of those in whose place they are.
func (s *Snapshot) Revise(recs []Revised, at time.Time) *Snapshot {
	w := newDraft(s)
	w.Time = at
	for _, rec := range recs {
		old := w.table(rec.Def).get(rec.ID)
		c := change{def: rec.Def, id: rec.ID, old: old}
		if rec.Record != nil {
			c.row = &row{id: rec.ID, rec: rec.Record}
			if old != nil {
				c.row.rev, c.row.size = old.rev, old.size
			}
		}
		w.set(c)
	}
	return w.Snapshot
}

// Without returns a snapshot that has no records of the kinds that a test holds for.
func (s *Snapshot) Without(leave func(*kind.Def) bool) *Snapshot {
	w := newDraft(s)
	for d, i := range w.slots {
		if leave(d) {
			w.tables[i] = newTable(d)
		}
	}
	return w.Snapshot
}
