package state

import (
	"netkeep.internal/internal/lang/kind"
)

// draft is a snapshot being written. Tables are copied when they are first
// touched.
type draft struct {
	*Snapshot
	owned []bool // tables already copied
}

func newDraft(base *Snapshot) draft {
	return draft{base.fork(), make([]bool, len(base.tables))}
}

// set does to a record what a change says.
func (w draft) set(c change) {
	switch {
	case c.def.Lane == kind.Log: // not in memory
	case c.row != nil:
		w.writable(c.def).put(c.old, c.row)
	case c.old != nil:
		w.writable(c.def).delete(c.old)
	}
}

// writable returns the draft's own copy of a table.
func (w draft) writable(d *kind.Def) *table {
	i := w.slots[d]
	if !w.owned[i] {
		w.tables[i] = w.tables[i].copy()
		w.owned[i] = true
	}
	return w.tables[i]
}
