package state

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Tx is one write in progress: a private copy of the state that sees its own
// changes. It is dropped whole if the closure fails, and is of no use after
// the closure has ended.
type Tx struct {
	draft
	changes
	base     *Snapshot // what it began with
	set      *kind.Catalog
	lane     kind.Lane
	now      time.Time
	clock    *clock
	seal     kind.Sealer
	freeze   bool
	over     bool            // the closure has ended
	budget   int             // a delete stops after this many changes; 0 for no limit
	deleting map[string]bool // keys of the records whose delete is under way
	doomed   map[Ref]bool    // records that are going to be deleted
	told     []kind.Record   // what the journal is to note beside changes
}

var _ kind.Writer = (*Tx)(nil)

// errMore says that a delete reached its budget. What it has deleted by then
// stands on its own and may be committed.
var errMore = errors.New("state: more to delete")

func newTx(base *Snapshot, set *kind.Catalog, lane kind.Lane, clock *clock, seal kind.Sealer, freeze bool) *Tx {
	return &Tx{
		draft: newDraft(base), base: base, set: set, lane: lane, now: clock.next.Truncate(time.Millisecond), clock: clock, seal: seal, freeze: freeze,
		deleting: map[string]bool{},
	}
}

// Now is when this write began, to the millisecond. It never runs backwards
// from one write to the next. The records that it writes are a little later,
// each at its own time.
func (tx *Tx) Now() time.Time { return tx.now }

// Kinds returns what records there may be.
func (tx *Tx) Kinds() *kind.Catalog { return tx.set }

// NewID returns a fresh id.
func (tx *Tx) NewID() string { return newRecordID(tx.now) }

// NewSessionID returns a fresh id in the form that session records have.
func (tx *Tx) NewSessionID() string { return newSessionID(tx.now) }

// Create adds a record, after all rules of its kind. It fills in what is
// missing of id and time. The record is shared from then on: the closure must
// not write to it any more, and must make another if it runs again.
func (tx *Tx) Create(d *kind.Def, rec kind.Record) error {
	m := rec.Base()
	if m.ID == "" {
		m.ID = tx.idFor(d)
	}
	if _, taken := tx.Lookup(d, m.ID); taken {
		return fault.Invalid("id", "must be unique", m.ID)
	}
	m.UpdatedAt = kind.MomentOf(tx.clock.stamp())
	if m.CreatedAt.IsZero() {
		m.CreatedAt = m.UpdatedAt
	}
	return tx.save(d, nil, rec)
}

// Edit changes a copy of a record and stores it, after all rules of its kind.
func (tx *Tx) Edit(d *kind.Def, id string, change func(kind.Record) error) error {
	old, next, err := tx.changed(d, id, change)
	if err != nil {
		return err
	}
	next.Base().UpdatedAt = kind.MomentOf(tx.clock.stamp())
	return tx.save(d, old, next)
}

// Amend is Edit, except that a record stays as it is, with its time, if the
// change leaves nothing of it different.
func (tx *Tx) Amend(d *kind.Def, id string, change func(kind.Record) error) (different bool, err error) {
	old, next, err := tx.changed(d, id, change)
	if err != nil {
		return false, err
	}
	if err := tx.set.Validate(tx, d, old, next); err != nil {
		return false, err
	}
	before, err := d.Encode(old)
	if err != nil {
		return false, err
	}
	after, err := d.Encode(next)
	if err != nil || bytes.Equal(before, after) {
		return false, err
	}
	next.Base().UpdatedAt = kind.MomentOf(tx.clock.stamp())
	return true, tx.write(d, old, next)
}

// changed returns a record and a copy of it that was changed.
func (tx *Tx) changed(d *kind.Def, id string, change func(kind.Record) error) (old, next kind.Record, err error) {
	old, ok := tx.Lookup(d, id)
	if !ok {
		return nil, nil, fault.NotFound(d.Name, id)
	}
	next = d.Clone(old)
	if err := change(next); err != nil {
		return nil, nil, err
	}
	next.Base().ID = id
	return old, next, nil
}

// save checks a record and stores it. old is nil on create.
func (tx *Tx) save(d *kind.Def, old, next kind.Record) error {
	if err := tx.set.Validate(tx, d, old, next); err != nil {
		return err
	}
	return tx.write(d, old, next)
}

// write stores a record that was checked.
func (tx *Tx) write(d *kind.Def, old, next kind.Record) error {
	if err := tx.put(d, next); err != nil {
		return err
	}
	return tx.whole(func() error { return d.Saved(tx, old, next) })
}

// settle asks the kinds of what was written whether the write as a whole may be.
func (tx *Tx) settle() error {
	for c := range tx.effective() {
		next, ok := tx.Lookup(c.def, c.id)
		if !ok {
			continue
		}
		old, _ := tx.base.Lookup(c.def, c.id)
		if err := c.def.Whole(tx, old, next); err != nil {
			return err
		}
	}
	return nil
}

// Doom says which records the deletes that follow are about, so that a record
// that refers to many of them is changed once. A write that leaves one of them
// must not be stored.
func (tx *Tx) Doom(refs []Ref) {
	tx.doomed = make(map[Ref]bool, len(refs))
	for _, ref := range refs {
		tx.doomed[ref] = true
	}
}

// Delete removes a record and does to those that refer to it what their tags
// say. Those of another lane are left to the sweeper.
func (tx *Tx) Delete(d *kind.Def, id string) error {
	k := key(d, id)
	if tx.deleting[k] {
		return nil // a cascade that leads back here
	}
	rec, ok := tx.Lookup(d, id)
	if !ok {
		return fault.NotFound(d.Name, id)
	}
	if err := d.Guard(tx, rec); err != nil {
		return err
	}
	tx.deleting[k] = true
	defer delete(tx.deleting, k)
	for _, rf := range tx.set.Referrers(d) {
		if rf.Def.Lane != d.Lane {
			continue
		}
		if err := tx.release(rf, d, id); err != nil {
			return err
		}
	}
	if tx.spent() {
		return errMore
	}
	rec, _ = tx.Lookup(d, id) // the cascade may have changed it
	tx.remove(d, id)
	return tx.whole(func() error { return d.Deleted(tx, rec) })
}

// deleteWithin deletes with a budget and reports whether there is more to do.
func (tx *Tx) deleteWithin(budget int, d *kind.Def, id string) (more bool, err error) {
	tx.budget = budget
	err = tx.Delete(d, id)
	if errors.Is(err, errMore) {
		return true, nil
	}
	return false, err
}

// spent reports whether a delete must stop here.
func (tx *Tx) spent() bool { return tx.budget > 0 && tx.count >= tx.budget }

// whole runs a hook outside of the budget: its writes belong to the change
// that it follows and must not be cut off from it.
func (tx *Tx) whole(hook func() error) error {
	budget := tx.budget
	tx.budget = 0
	defer func() { tx.budget = budget }()
	return hook()
}

// release frees an id from the records that hold it, except for those that
// are being deleted themselves.
func (tx *Tx) release(rf kind.Referrer, d *kind.Def, id string) error {
	var holders []string
	for _, holder := range rf.Holders(tx, id) {
		if !tx.deleting[key(rf.Def, holder)] {
			holders = append(holders, holder)
		}
	}
	if len(holders) > 0 && rf.OnDelete() == kind.Restrict {
		return fault.On(fault.CodeReferenced, rf.Field.Name, "still refers to it from "+rf.Def.Path, holders)
	}
	for _, holder := range holders {
		if tx.spent() {
			return errMore
		}
		if _, still := tx.Lookup(rf.Def, holder); !still {
			continue
		}
		if err := tx.letGo(rf, holder, d, id); err != nil {
			return err
		}
	}
	return nil
}

// letGo deletes a holder or takes the id of a target out of it, as its tags
// say.
func (tx *Tx) letGo(rf kind.Referrer, holder string, target *kind.Def, id string) error {
	if rf.OnDelete() == kind.Cascade {
		return tx.Delete(rf.Def, holder)
	}
	return tx.Edit(rf.Def, holder, func(rec kind.Record) error {
		rf.Drop(rec, id, func(other string) bool { return tx.doomed[Ref{target, other}] })
		return nil
	})
}

func (tx *Tx) put(d *kind.Def, rec kind.Record) error {
	value, err := d.EncodeSealed(rec, tx.seal)
	if err != nil {
		return err
	}
	rec = d.Kept(rec)
	r := &row{id: rec.Base().ID, rec: rec, size: uint32(len(value))}
	if tx.freeze {
		r.freeze(d)
	}
	t := tx.table(d)
	old := tx.replaced(t, r.id)
	if old != nil {
		r.rev = old.rev
	}
	t.put(old, r)
	tx.note(change{def: d, id: r.id, prev: r.rev, old: old, row: r, value: value})
	return nil
}

func (tx *Tx) remove(d *kind.Def, id string) {
	t := tx.table(d)
	old := tx.replaced(t, id)
	t.delete(old)
	tx.note(change{def: d, id: id, prev: old.rev, old: old})
}

// replaced returns the row that a write takes the place of, if there is one.
func (tx *Tx) replaced(t *table, id string) *row {
	r := t.get(id)
	if r != nil && tx.freeze {
		r.checkFrozen(t.def)
	}
	return r
}

// table returns this Tx's own copy of a table.
func (tx *Tx) table(d *kind.Def) *table {
	switch {
	case tx.over:
		panic("state: a write after its closure has ended")
	case d.Lane == kind.Model && tx.lane == kind.Session, d.Lane == kind.Log, d.Lane == kind.Volatile:
		panic(fmt.Sprintf("state: a write of %s in the wrong lane", d.Name))
	}
	return tx.writable(d)
}

func (tx *Tx) idFor(d *kind.Def) string {
	if d.Lane == kind.Session {
		return tx.NewSessionID()
	}
	return freeID(tx, d, tx.now)
}
