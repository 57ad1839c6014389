// Package store is the contract of the log: records as bytes, kept in the
// order in which they changed. It knows revisions and batches and nothing of
// what a record means. It imports nothing of ours; its engine is in etcdstore,
// its test suite in storetest.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Rev is a position in the log. Later positions are larger; 0 is before all.
type Rev int64

// Record is one stored value. Its key is "<kind>/<id>". Who reads a record may
// keep its value but not change it.
type Record struct {
	Key   string
	Value []byte
	Rev   Rev // when the record last changed
}

// EntryMark is what the keys of entries begin with: records that are added,
// read by range and forgotten by their age, of which there may be very many.
// They are in batches as all others are; Load leaves them out.
const EntryMark = "+"

// IsEntry reports whether a key is that of an entry.
func IsEntry(key string) bool { return strings.HasPrefix(key, EntryMark) }

// Any as an Op's Prev writes whatever the record's revision is.
const Any Rev = -1

// Op changes one record.
type Op struct {
	Key   string
	Value []byte // nil deletes; what is not there cannot be deleted, that is a conflict
	Prev  Rev    // what the write expects: the record's revision, 0 for "does not exist", or Any
	// Next says of an entry that is deleted, as is that of the op before, that no key
	// is between the two. A store may delete such a run as one: it looks whether the
	// first and the last are there, and that the others are is for who writes to know.
	Next bool
}

// Runs reports whether an op may be deleted as one with the op before it.
func (op Op) Runs(before Op) bool {
	gone := func(op Op) bool { return op.Value == nil && op.Prev == Any && IsEntry(op.Key) }
	return op.Next && gone(op) && gone(before) && before.Key < op.Key
}

// Head describes one batch. The store fills in Prev and Ops.
type Head struct {
	Prev Rev       `json:"prev,omitzero"` // revision of the commit before; 0 for a Put
	Ops  int       `json:"ops"`
	Time time.Time `json:"time,omitzero"`
	// Writes are who wrote the ops, in their order: the first so many, the
	// next so many. Batches of older versions have none.
	Writes []Write `json:"writes,omitempty"`
	// End is what a commit says of all up to it, in the words of who writes: who
	// has nothing new to say repeats what the commit before said. It is no
	// record since every commit would change it. A Put says nothing.
	End string `json:"end,omitempty"`
}

// Batch is what one Commit or Put wrote: all of its ops, in their order, with
// no Prev and no Next.
type Batch struct {
	Rev    Rev
	Commit bool // or else a Put
	Head   Head
	Ops    []Op
}

// Written is where a batch is in the log: its revision and that of the batch
// before it, 0 for none.
type Written struct {
	Rev   Rev
	After Rev
}

// Mark is a position reached by Load: the revision the records belong to, and
// the revision and time of the last commit up to there, with what it says.
type Mark struct {
	Rev  Rev
	Head Rev
	Time time.Time
	End  string
}

// Limits is a bound of what one Commit or Put holds. Bytes counts keys and
// values.
type Limits struct {
	Ops   int
	Bytes int
}

// Check returns ErrInvalid or ErrTooLarge if ops cannot be one batch. Stores
// check every batch before they write it.
func (l Limits) Check(ops []Op) error {
	if len(ops) == 0 {
		return fmt.Errorf("%w: the batch is empty", ErrInvalid)
	}
	if len(ops) > l.Ops {
		return fmt.Errorf("%w: %d ops of at most %d", ErrTooLarge, len(ops), l.Ops)
	}
	var seen map[string]struct{} // of one that is alone nothing can be repeated
	if len(ops) > 1 {
		seen = make(map[string]struct{}, len(ops))
	}
	for _, op := range ops {
		if op.Key == "" {
			return fmt.Errorf("%w: a key is empty", ErrInvalid)
		}
		if _, dup := seen[op.Key]; dup {
			return fmt.Errorf("%w: key %q is repeated", ErrInvalid, op.Key)
		}
		if seen != nil {
			seen[op.Key] = struct{}{}
		}
	}
	if bytes := size(ops); bytes > l.Bytes {
		return fmt.Errorf("%w: %d bytes of at most %d", ErrTooLarge, bytes, l.Bytes)
	}
	return nil
}

// Hold reports whether ops are within the limits.
func (l Limits) Hold(ops []Op) bool { return len(ops) <= l.Ops && size(ops) <= l.Bytes }

// size is what ops weigh.
func size(ops []Op) (bytes int) {
	for _, op := range ops {
		bytes += len(op.Key) + len(op.Value)
	}
	return bytes
}

var (
	// ErrConflict says that somebody else wrote first. Nothing was written.
	ErrConflict = errors.New("store: written by another in the meantime")
	// ErrCompacted says that the history asked for is gone: Load again.
	ErrCompacted = errors.New("store: history is compacted")
	// ErrTooLarge says that a batch exceeds Limits. Nothing was written.
	ErrTooLarge = errors.New("store: batch exceeds the limits")
	// ErrInvalid says that the call can never succeed: the batch is empty, a
	// key in it is empty or repeated. Nothing was written.
	ErrInvalid = errors.New("store: invalid")
	// ErrGap says that the feed lacks something, or that the store has gone
	// back before the revision asked for: Load again.
	ErrGap = errors.New("store: the feed is not continuous")
	// ErrClosed says that the store was closed before. Nothing was written.
	ErrClosed = errors.New("store: closed")
	// ErrFailed says that a store inside this process cannot go on, for want of
	// disk space say. Whether writes under way happened is open; only a new
	// process can tell.
	ErrFailed = errors.New("the store failed")
)

// Store keeps records and the order in which they changed.
//
// An error other than the ones above leaves open whether a write happened;
// who must know follows the log.
type Store interface {
	// Load calls fn for every record that is no entry, in key order, at one
	// revision.
	Load(ctx context.Context, fn func(Record) error) (Mark, error)

	// Put writes independent records as one batch, each guarded by its own
	// Prev only. If one guard fails nothing is written and the error is
	// ErrConflict.
	Put(ctx context.Context, head Head, ops []Op) (Written, error)

	// Commit is a Put that is also guarded by the last commit: that must
	// still be prev.
	Commit(ctx context.Context, prev Rev, head Head, ops []Op) (Written, error)

	// Get reads one record as it is now; ok is false if there is none.
	Get(ctx context.Context, key string) (rec Record, ok bool, err error)

	// Range reads entries as they are now: those with keys from one on and
	// before another, both of entries, up to so many; the last of them in
	// descending order if newest, or else the first. more is whether there are
	// others.
	Range(ctx context.Context, from, to string, most int, newest bool) (recs []Record, more bool, err error)

	// Last is the revision of the last batch as it is now, 0 if there is none.
	Last(ctx context.Context) (Rev, error)

	// Witness is what tells this log as it was at a revision from every other that has
	// come as far: the same bytes for as long as that is not forgotten. It fails with
	// ErrCompacted where it is, and with ErrInvalid where the log has yet to come.
	Witness(ctx context.Context, rev Rev) ([]byte, error)

	// Follow calls fn for every batch after rev, in order and without gaps,
	// until ctx ends or fn fails. ErrCompacted means that history is gone,
	// ErrGap that it is not whole.
	Follow(ctx context.Context, rev Rev, fn func(Batch) error) error

	// Compact forgets history up to rev: from there Follow still works, from
	// before it does not. A revision not reached yet is ErrInvalid.
	Compact(ctx context.Context, rev Rev) error

	// Snapshot writes a copy of everything at one revision.
	Snapshot(ctx context.Context, w io.Writer) error

	// Limits is what one batch may hold.
	Limits() Limits

	// Quick is what a batch may hold to be written in one go, and each of its
	// records in any case. A larger one is as whole as any other and takes
	// longer, and all other writes wait for it.
	Quick() Limits

	// Close waits for writes under way, within reason, and ends all else
	// with ErrClosed.
	Close() error
}
