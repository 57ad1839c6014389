package state

import (
	"iter"
	"slices"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
)

// change is what a write does to one record.
type change struct {
	def   *kind.Def
	id    string
	prev  store.Rev // the stored revision that it replaces, 0 for none
	old   *row      // what it replaces, nil for none
	row   *row      // nil for a delete
	value []byte    // the record's stored form, nil for a delete
}

// void reports whether the store need not hear of it: the record was created
// and deleted by the same write.
func (c change) void() bool { return c.row == nil && c.prev == 0 }

func (c change) key() string { return key(c.def, c.id) }

// key is where the store keeps a record.
func key(d *kind.Def, id string) string {
	if d.Lane == kind.Log {
		return store.EntryMark + d.Name + "/" + id
	}
	return d.Name + "/" + id
}

// changes is what a write does in all, at most one change a record.
type changes struct {
	byKey map[string]change
	order []string // keys, by their first change
	count int      // changes that the store will hear of
	bytes int      // and their size
}

func newChanges() changes { return changes{byKey: map[string]change{}} }

// note adds a change. It takes the place of an earlier one of the same record.
func (cs *changes) note(c change) {
	k := c.key()
	if before, again := cs.byKey[k]; again {
		c.prev, c.old = before.prev, before.old
		cs.weigh(k, before, -1)
	} else {
		cs.order = append(cs.order, k)
	}
	cs.byKey[k] = c
	cs.weigh(k, c, 1)
}

func (cs *changes) weigh(key string, c change, sign int) {
	if !c.void() {
		cs.count += sign
		cs.bytes += sign * (len(key) + len(c.value))
	}
}

// overlaps reports whether a later write changes a record that is among the
// changes.
func (cs *changes) overlaps(later changes) bool {
	return slices.ContainsFunc(later.order, func(k string) bool { _, has := cs.byKey[k]; return has })
}

// merge adds the changes of a later write, which does not overlap.
func (cs *changes) merge(later changes) {
	for _, k := range later.order {
		cs.note(later.byKey[k])
	}
}

func (cs *changes) fits(l store.Limits) bool { return cs.count <= l.Ops && cs.bytes <= l.Bytes }

// effective yields the changes that the store hears of, in order.
func (cs *changes) effective() iter.Seq[change] {
	return func(yield func(change) bool) {
		for _, k := range cs.order {
			if c := cs.byKey[k]; !c.void() && !yield(c) {
				return
			}
		}
	}
}

// guarded reports whether a change is guarded by its own record's revision. In
// a commit only those of sessions are: it has one guard for all of the model.
// Entries are new and nobody's but the writer's.
func guarded(lane kind.Lane, c change) bool {
	return c.def.Lane != kind.Log && (lane == kind.Session || c.def.Lane == kind.Session)
}

// ops is the changes as the store takes them in a lane.
func (cs *changes) ops(lane kind.Lane) []store.Op {
	ops := make([]store.Op, 0, cs.count)
	for c := range cs.effective() {
		op := store.Op{Key: c.key(), Value: c.value, Prev: store.Any}
		if guarded(lane, c) {
			op.Prev = c.prev
		}
		ops = append(ops, op)
	}
	return ops
}
