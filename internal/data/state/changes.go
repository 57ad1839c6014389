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
	key   string    // where the store keeps it, once it is noted
	prev  store.Rev // the stored revision that it replaces, 0 for none
	old   *row      // what it replaces, nil for none
	row   *row      // nil for a delete
	value []byte    // the record's stored form, nil for a delete
	next  bool      // whether no key is between it and the one before, which is deleted too
}

// void reports whether the store need not hear of it: the record was created
// and deleted by the same write.
func (c change) void() bool { return c.row == nil && c.prev == 0 }

// key is where the store keeps a record.
func key(d *kind.Def, id string) string {
	if d.Lane == kind.Log {
		return store.EntryMark + d.Name + "/" + id
	}
	return d.Name + "/" + id
}

// changes is what a write does in all, at most one change a record, by the first
// change of each.
type changes struct {
	list  []change
	at    map[string]int // where in the list keys are, once there are many
	count int            // changes that the store will hear of
	bytes int            // and their size
}

// fewChanges are found faster one by one than in a map, which is as large as they are.
const fewChanges = 8

// find returns where the change of a record is, -1 for nowhere.
func (cs *changes) find(key string) int {
	if cs.at == nil {
		return slices.IndexFunc(cs.list, func(c change) bool { return c.key == key })
	}
	if i, has := cs.at[key]; has {
		return i
	}
	return -1
}

// note adds a change. It takes the place of an earlier one of the same record.
func (cs *changes) note(c change) {
	if c.key == "" {
		c.key = key(c.def, c.id)
	}
	i := cs.find(c.key)
	if i < 0 {
		i = len(cs.list)
		cs.list = append(cs.list, c)
		cs.file(i)
	} else {
		before := cs.list[i]
		c.prev, c.old, c.next = before.prev, before.old, false
		cs.weigh(before, -1)
		cs.list[i] = c
	}
	cs.weigh(c, 1)
}

// file keeps in mind where the last change is, if there are many.
func (cs *changes) file(last int) {
	switch {
	case cs.at != nil:
		cs.at[cs.list[last].key] = last
	case last == fewChanges:
		cs.at = make(map[string]int, 4*fewChanges)
		for i, c := range cs.list {
			cs.at[c.key] = i
		}
	}
}

func (cs *changes) weigh(c change, sign int) {
	if !c.void() {
		cs.count += sign
		cs.bytes += sign * (len(c.key) + len(c.value))
	}
}

// overlaps reports whether a later write changes a record that is among the
// changes.
func (cs *changes) overlaps(later changes) bool {
	return slices.ContainsFunc(later.list, func(c change) bool { return cs.find(c.key) >= 0 })
}

// merge adds the changes of a later write, which does not overlap.
func (cs *changes) merge(later changes) {
	if cs.list == nil {
		*cs = later
		return
	}
	for _, c := range later.list {
		cs.note(c)
	}
}

func (cs *changes) fits(l store.Limits) bool { return cs.count <= l.Ops && cs.bytes <= l.Bytes }

// effective yields the changes that the store hears of, in order.
func (cs *changes) effective() iter.Seq[change] {
	return func(yield func(change) bool) {
		for _, c := range cs.list {
			if !c.void() && !yield(c) {
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
		op := store.Op{Key: c.key, Value: c.value, Prev: store.Any, Next: c.next}
		if guarded(lane, c) {
			op.Prev = c.prev
		}
		ops = append(ops, op)
	}
	return ops
}
