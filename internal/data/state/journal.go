package state

import (
	"time"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
)

// Journal makes entries of what writes change. They are stored in the same batch
// as the changes, by whoever writes: a caller can neither forget nor forge them.
// It is asked while somebody writes, so it must be quick and must not write.
type Journal interface {
	// Continue returns where the journal ends in memory.
	Continue(r kind.Reader) Chain
}

// Chain is the end of a journal while a batch is prepared. It is a value: of one
// that nobody goes on with no trace is left.
type Chain interface {
	// Note returns the end of the journal after a write that was made at a time,
	// and what is to be added to logs with it; nothing if nobody asks for such
	// changes.
	Note(w Write, at time.Time) (Chain, []Entry, error)
	// End returns what a commit is to say of where the journal ends, and the
	// record that is to be stored with it, given how that was before; none if it
	// may stay as it is. Where others use the store who do not know that commits
	// say it, told is false and the record alone does. Its kind is of the session
	// lane, so that its own revision guards it in every batch.
	End(r kind.Reader, told bool) (end string, rec *Entry)
}

// Tell has the journal note something that is no change of a record, with what the
// write changes. The record is shared from then on. Where there is no journal it is
// forgotten.
func (tx *Tx) Tell(rec kind.Record) { tx.told = append(tx.told, rec) }

// journalist is the author of the record that tells of the journal.
var journalist = Program("journal")

// keep adds the entries of a write to it. It returns nil if there are none.
func (tx *Tx) keep(on Chain, by Author) (Chain, error) {
	if on == nil || tx.count+len(tx.told) == 0 {
		return nil, nil
	}
	w := Write{Author: by, Changes: make([]Change, 0, tx.count), Told: tx.told}
	for c := range tx.effective() {
		if !c.def.Noted {
			continue
		}
		told := Change{Ref: Ref{c.def, c.id}}
		if c.old != nil {
			told.Before = c.old.rec
		}
		if c.row != nil {
			told.After = c.row.rec
		}
		w.Changes = append(w.Changes, told)
	}
	if len(w.Changes)+len(w.Told) == 0 {
		return nil, nil
	}
	next, entries, err := on.Note(w, tx.clock.stamp())
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		value, err := e.Def.EncodeSealed(e.Record, tx.seal)
		if err != nil {
			return nil, err
		}
		id := e.Record.Base().ID
		tx.note(change{def: e.Def, id: id, row: &row{id: id, rec: e.Record, size: uint32(len(value))}, value: value})
	}
	return next, nil
}

// close says where the journal ends, once for all writes of the group.
func (g *group) close(s *State) error {
	if !g.kept {
		return nil
	}
	told := s.format.Load() >= format.Ends
	text, end := g.chain.End(g.draft, told)
	if told {
		g.ends, g.end = true, text
		g.bytes += len(text)
	}
	if end == nil {
		return nil
	}
	d, id := end.Def, end.Record.Base().ID
	value, err := d.EncodeSealed(end.Record, s.opt.Seal)
	if err != nil {
		return err
	}
	r := &row{id: id, rec: end.Record, size: uint32(len(value))}
	if s.opt.Frozen {
		r.freeze(d)
	}
	w := newDraft(g.draft)
	c := change{def: d, id: id, old: w.table(d).get(id), row: r, value: value}
	if c.old != nil {
		c.prev, r.rev = c.old.rev, c.old.rev
	}
	w.set(c)
	g.draft = w.Snapshot
	if g.find(key(d, id)) < 0 { // or a write of the group has changed it: that is its change then
		g.writes = append(g.writes, store.Write{Author: journalist, Ops: 1})
		g.bytes += journalist.Size()
	}
	g.note(c)
	return nil
}
