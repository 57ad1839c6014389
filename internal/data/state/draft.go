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

// again makes records what they were at another time: had says which row each
// had, nil for none. Those rows have their places in snapshots of then. Numbers that
// records give up are free before others take them.
func (w draft) again(writes []Write, had func(Change) *row) {
	each := func(do func(t *table, old, had *row)) {
		for _, by := range writes {
			for _, c := range by.Changes {
				t := w.writable(c.Def)
				do(t, t.get(c.ID), had(c))
			}
		}
	}
	each(func(t *table, old, had *row) {
		if old != nil && (had == nil || had.ord != old.ord) {
			t.delete(old)
		}
	})
	each(func(t *table, old, had *row) {
		if had != nil {
			r := *had
			t.putAt(old, &r)
		}
	})
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
