package state

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
)

// Append adds an entry to a log, in the same commit as all else that the write
// does. It fills in what is missing of id and time; ids are in the order in
// which this controller adds entries, and by time among several. The record is
// shared from then on.
func (tx *Tx) Append(d *kind.Def, rec kind.Record) error {
	tx.mustLog(d)
	m := rec.Base()
	at := tx.clock.stamp()
	m.CreatedAt, m.UpdatedAt, m.ID = kind.MomentOf(at), kind.MomentOf(at), entryID(at)+random(base62, 6)
	if err := tx.set.Validate(tx, d, nil, rec); err != nil {
		return err
	}
	value, err := d.EncodeSealed(rec, tx.seal)
	if err != nil {
		return err
	}
	tx.note(change{def: d, id: m.ID, row: &row{id: m.ID, rec: rec, size: uint32(len(value))}, value: value})
	return nil
}

// entryID is what the ids of entries of a moment begin with.
func entryID(at time.Time) string {
	stamp := strconv.FormatInt(max(0, at.UnixMicro()), 36)
	return zeros[:max(0, len(zeros)-len(stamp))] + stamp
}

// zeros is as long as a moment is in ids: until the year 7000.
const zeros = "00000000000"

// Stretch is the entries of a log from a moment on and before another. The zero
// value is all of them.
type Stretch struct {
	From, Before time.Time
	// After and Until are ids: what follows the one, and what comes before the
	// other. They are for who reads on.
	After, Until string
}

// keys are the first key of a stretch and the first that is none of its.
func (s Stretch) keys(d *kind.Def) (from, to string) {
	from, to = key(d, ""), store.EntryMark+d.Name+"0" // '0' follows '/'
	if !s.From.IsZero() {
		from = max(from, key(d, entryID(s.From)))
	}
	if s.After != "" {
		from = max(from, key(d, s.After)+"\x00")
	}
	if !s.Before.IsZero() {
		to = min(to, key(d, entryID(s.Before)))
	}
	if s.Until != "" {
		to = min(to, key(d, s.Until))
	}
	return from, to
}

// maxEntries is how many entries are read at a time.
const maxEntries = 1000

// Entries reads entries of a log from the store, oldest first or newest first,
// up to so many. more is whether there are others. What cannot be read is left
// out.
func (s *State) Entries(ctx context.Context, d *kind.Def, in Stretch, most int, newest bool) (entries []kind.Record, more bool, err error) {
	from, to := in.keys(d)
	if from >= to {
		return nil, false, nil
	}
	recs, more, err := s.store.Range(ctx, from, to, min(most, maxEntries), newest)
	if err != nil {
		return nil, false, err
	}
	for _, rec := range recs {
		_, id, _ := s.fold.Split(rec.Key)
		r, err := s.fold.read(d, id, rec)
		if err != nil {
			s.opt.Logger.Error("a stored entry cannot be read", "key", rec.Key, "error", err)
			continue
		}
		entries = append(entries, r.rec)
	}
	return entries, more, nil
}

// Forget removes the oldest entries of a stretch, up to so many, and returns how
// many there were. Another controller may do the same.
func (s *State) Forget(ctx context.Context, by Author, d *kind.Def, in Stretch, most int) (gone int, err error) {
	from, to := in.keys(d)
	if from >= to {
		return 0, nil
	}
	for {
		recs, _, err := s.store.Range(ctx, from, to, min(most, maxEntries, s.store.Quick().Ops/2), false)
		if err != nil || len(recs) == 0 {
			return 0, err
		}
		ops := make([]store.Op, len(recs))
		for i, rec := range recs {
			ops[i] = store.Op{Key: rec.Key, Prev: store.Any}
		}
		// Not by the owner of memory, which has nothing of this: it hears of it
		// as of what others write.
		_, err = s.store.Put(ctx, store.Head{Time: s.opt.Now(), Writes: []store.Write{{Author: by, Ops: len(ops)}}}, ops)
		if !errors.Is(err, store.ErrConflict) {
			return len(ops), err
		}
	}
}

// Strike removes entries of a log that follow each other with none between, in the
// same commit as all else that the write does. That the first or the last is not there
// is a conflict with whoever has removed it; of the others the caller must know.
func (tx *Tx) Strike(d *kind.Def, ids ...string) {
	tx.mustLog(d)
	for i, id := range ids {
		next := i > 0 && tx.list[len(tx.list)-1].key == key(d, ids[i-1])
		tx.note(change{def: d, id: id, prev: store.Any, next: next})
	}
}

// Recast puts an entry of a log in the place of the one that has its id.
func (tx *Tx) Recast(d *kind.Def, rec kind.Record) error {
	tx.mustLog(d)
	value, err := d.EncodeSealed(rec, tx.seal)
	if err != nil {
		return err
	}
	id := rec.Base().ID
	tx.note(change{def: d, id: id, row: &row{id: id, rec: rec, size: uint32(len(value))}, value: value})
	return nil
}

// mustLog panics if a write that is over adds to a log, or one to what is none.
func (tx *Tx) mustLog(d *kind.Def) {
	switch {
	case tx.over:
		panic("state: a write after its closure has ended")
	case d.Lane != kind.Log:
		panic(fmt.Sprintf("state: %s is no log", d.Name))
	}
}
