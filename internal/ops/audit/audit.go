// Package audit is the log of what happened in the network: entries of every
// change, made with the change, and of attempts that matter, which a Recorder
// gathers, in one chain of digests for all controllers. It owns what an entry says,
// which words there are for what happens, the blocks that the store holds entries in,
// how they are found again, and the check that none was altered, removed or moved. It
// imports lang, model and data/state, and nothing that decides or serves.
//
// There is one chain, not one for each controller: commits are made one after the
// other whoever makes them, so that another order would be less than what there is
// already, and of several chains a whole one could be missing.
package audit

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

const (
	// maxBlock is about how many bytes of entries a write puts into one block: a
	// record that any store takes.
	maxBlock = 256 << 10
	// maxEntry is how many bytes the record before and after may have together to
	// be in an entry. Both may be as large as a record can be.
	maxEntry = maxBlock
)

// digest is that of an entry.
type digest [sha256.Size]byte

func (d digest) String() string { return base64.RawStdEncoding.EncodeToString(d[:]) }

// none is what stands for the entry before the first.
var none digest

// Journal makes entries of changes.
type Journal struct{}

var _ state.Journal = Journal{}

// Continue returns where the log ends.
func (Journal) Continue(r kind.Reader) state.Chain {
	_, at, err := endOf(r)
	if err != nil {
		return nowhere{err}
	}
	return at
}

// ID is the id of the entry with a number.
func ID(number int64) string {
	const zeros = "000000000000"
	digits := strconv.FormatInt(number, 10)
	return zeros[:max(0, len(zeros)-len(digits))] + digits
}

// Note adds the entries of a write.
func (e end) Note(w state.Write, at time.Time) (state.Chain, []state.Entry, error) {
	if !at.After(e.at) { // another controller's clock is ahead
		at = e.at.Add(time.Microsecond)
	}
	e.at = at
	var b blocks
	for _, c := range w.Changes {
		entry, err := entryOf(w.Author, c)
		if err != nil {
			return nil, nil, err
		}
		if err := b.add(&e, entry); err != nil {
			return nil, nil, err
		}
	}
	for _, rec := range w.Told {
		entry := *rec.(*model.AuditEntry) // the write may be made again, elsewhere in the log
		if err := b.add(&e, &entry); err != nil {
			return nil, nil, err
		}
	}
	return e, b.all, nil
}

// blocks are what a write adds to the log.
type blocks struct {
	all  []state.Entry
	last *model.AuditBlock
}

// add puts an entry behind the last one.
func (b *blocks) add(e *end, entry *model.AuditEntry) error {
	line := scratches.Get().(*[]byte)
	defer scratches.Put(line)
	var err error
	if *line, err = e.add((*line)[:0], entry); err != nil {
		return err
	}
	*line = append(*line, '\n')
	if b.last == nil || len(b.last.Lines)+len(*line) > maxBlock {
		b.last = &model.AuditBlock{Meta: kind.Meta{ID: entry.ID, CreatedAt: entry.CreatedAt, UpdatedAt: entry.UpdatedAt}}
		b.all = append(b.all, state.Entry{Def: model.AuditBlocks.Def, Record: b.last})
	}
	b.last.Lines = append(b.last.Lines, *line...)
	b.last.Last = e.last
	return nil
}

// scratches are where lines are written before it is known how long they are.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// add puts an entry behind the last one and adds its stored form to a text.
func (e *end) add(dst []byte, entry *model.AuditEntry) ([]byte, error) {
	e.last++
	entry.ID, entry.Number = ID(e.last), e.last
	entry.CreatedAt = kind.MomentOf(e.at)
	entry.UpdatedAt = entry.CreatedAt
	if e.digest != none {
		entry.Previous = e.digest.String()
	}
	start := len(dst)
	dst, err := appendEntry(dst, entry)
	if err != nil {
		return dst, err
	}
	e.digest = sha256.Sum256(dst[start:])
	return dst, nil
}

// Fresh are the entries of a block that was added to the log. One that others were
// packed into has none that are new.
func Fresh(b *model.AuditBlock) (fresh []*model.AuditEntry) {
	if len(b.Deflated) > 0 {
		return nil
	}
	lines, err := linesOf(b)
	if err != nil {
		return nil
	}
	for _, l := range lines {
		if entry, err := l.entry(); err == nil {
			fresh = append(fresh, entry)
		}
	}
	return fresh
}

// entryOf tells of a change, all but its place in the log.
func entryOf(by state.Author, c state.Change) (*model.AuditEntry, error) {
	entry := &model.AuditEntry{
		Event: model.AuditUpdated, Outcome: model.AuditDone, Count: 1,
		ActorKind: by.Kind, ActorID: by.ID, ActorName: by.Name,
		APISessionID: by.Session, Factors: by.Factors, Address: by.Source, Operation: by.Operation, RequestID: by.Request,
		TargetKind: c.Def.Name, TargetID: c.ID,
	}
	switch {
	case c.After == nil && c.Before == nil: // nobody could read it
		entry.Event, entry.TargetName = model.AuditDeleted, c.ID
	case c.After == nil:
		entry.Event, entry.TargetName = model.AuditDeleted, c.Def.Label(c.Before)
	case c.Before == nil:
		entry.Event, entry.TargetName = model.AuditCreated, c.Def.Label(c.After)
	default:
		entry.TargetName = c.Def.Label(c.After)
	}
	delta, err := c.Def.Delta(c.Before, c.After)
	if err != nil {
		return nil, err
	}
	entry.Before, entry.After, entry.Withheld = delta.Before, delta.After, delta.Withheld
	if len(entry.Before)+len(entry.After) > maxEntry {
		shorten(entry)
	}
	return entry, nil
}
