package state

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/invite"
	"netkeep.internal/internal/data/keyring"
	"netkeep.internal/internal/data/owner"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
)

// Fold is what batches of the log do to snapshots. It is a function of the two:
// it tells nobody, keeps nothing and writes to neither.
type Fold struct {
	Kinds *kind.Catalog
	// Seal and Frozen are as in Options.
	Seal   kind.Sealer
	Frozen bool
}

// Keys are those of a batch of which not all is in the event.
type Keys struct {
	Unknown []string         // of no kind that this version has
	Read    map[string]error // of every record, with why it cannot be read, or nil
}

var errBroken = errors.New("state: the batch does not follow from what there is")

// Empty is what there is before the first batch.
func (f Fold) Empty() *Snapshot { return newSnapshot(f.Kinds) }

// Next is the step that a batch is after a snapshot. A record that cannot be
// read is as good as none. It fails if the batch cannot be the one that follows.
func (f Fold) Next(before *Snapshot, b store.Batch) (Event, Keys, error) {
	if b.Rev <= before.Rev || b.Commit && (b.Head.Prev != before.head || b.Head.Ops != len(b.Ops)) {
		return Event{}, Keys{}, errBroken
	}
	w := newDraft(before)
	ev := Event{Rev: b.Rev, After: w.Snapshot, Time: b.Head.Time, before: before.mark}
	seen := Keys{Read: make(map[string]error, len(b.Ops))}
	for by, ops := range shares(b) {
		var changes []change
		for _, op := range ops {
			if c, ok := f.change(w, op, b.Rev, &seen); ok {
				w.set(c)
				changes = append(changes, c)
			}
		}
		ev.add(by, changes)
	}
	w.Rev = b.Rev
	if b.Commit {
		w.head, w.Time, w.end = b.Rev, b.Head.Time, b.Head.End
	}
	return ev, seen, nil
}

// shares yields the ops of a batch by author. Whose author it does not name
// are nobody's.
func shares(b store.Batch) iter.Seq2[Author, []store.Op] {
	return func(yield func(Author, []store.Op) bool) {
		rest := b.Ops
		for _, w := range b.Head.Writes {
			n := min(max(w.Ops, 0), len(rest))
			if !yield(w.Author, rest[:n]) {
				return
			}
			rest = rest[n:]
		}
		yield(Author{}, rest)
	}
}

// change is what an op of the log does to the record as the draft has it.
func (f Fold) change(w draft, op store.Op, rev store.Rev, seen *Keys) (change, bool) {
	d, id, ok := f.Split(op.Key)
	if !ok {
		if !foreign(op.Key) {
			seen.Unknown = append(seen.Unknown, op.Key)
		}
		return change{}, false
	}
	c := change{def: d, id: id, old: w.Snapshot.table(d).get(id)}
	var err error
	if op.Value != nil {
		c.row, err = f.read(d, id, store.Record{Key: op.Key, Value: op.Value, Rev: rev})
	}
	if d.Lane == kind.Log {
		return c, c.row != nil // nobody relies on those that cannot be read
	}
	seen.Read[op.Key] = err
	return c, true
}

// foreign reports whether what a key names is of no kind.
func foreign(key string) bool {
	return key == format.Key || key == owner.Key || key == invite.Key || key == keyring.Key
}

// Split tells which record a key names; ok is false if it is of no known kind.
func (f Fold) Split(key string) (d *kind.Def, id string, ok bool) {
	name, id, _ := strings.Cut(strings.TrimPrefix(key, store.EntryMark), "/")
	d = f.Kinds.Named(name)
	return d, id, d != nil && d.Lane != kind.Volatile && id != "" && !foreign(key) && store.IsEntry(key) == (d.Lane == kind.Log)
}

// read makes a row of a stored record.
func (f Fold) read(d *kind.Def, id string, rec store.Record) (*row, error) {
	v, err := d.DecodeSealed(rec.Value, id, f.Seal)
	if err == nil && v.Base().ID != id {
		err = fmt.Errorf("it holds the id %q", v.Base().ID)
	}
	if err != nil {
		return nil, err
	}
	d.Settle(v)
	r := &row{id: v.Base().ID, rec: v, rev: rec.Rev, size: uint32(len(rec.Value))}
	if f.Frozen {
		r.freeze(d)
	}
	return r, nil
}

// Undo is what there was before an event, given what there is after it.
func (e Event) Undo(after *Snapshot) (*Snapshot, error) {
	if e.Reset != nil || after.Rev != e.Rev {
		return nil, fmt.Errorf("state: what is at revision %d does not follow from the step to %d", after.Rev, e.Rev)
	}
	return e.undone(after), nil
}

// undone is what there was before, given what there is after it, to the last number
// of a record.
func (e Event) undone(after *Snapshot) *Snapshot {
	w := newDraft(after)
	w.again(e.Writes, func(c Change) *row { return c.old })
	w.mark = e.before
	return w.Snapshot
}

// done is what there is after the event, given what there was before it.
func (e Event) done(before *Snapshot) *Snapshot {
	w := newDraft(before)
	w.again(e.Writes, func(c Change) *row { return c.row })
	w.mark = e.after
	return w.Snapshot
}
