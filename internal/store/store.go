// Package store is the contract of the log: records as bytes, kept in the
// order in which they changed. It knows revisions and batches and nothing of
// what a record means. It imports nothing of ours; its engine is in etcdstore,
// its test suite in storetest.
package store

import (
	"context"
	"errors"
	"io"
	"time"
)

// Rev is a position in the log. Later positions are larger; 0 is before all.
type Rev int64

// Record is one stored value. Its key is "<kind>/<id>".
type Record struct {
	Key   string
	Value []byte
	Rev   Rev // when the record last changed
}

// Any as an Op's Prev writes whatever the record's revision is.
const Any Rev = -1

// Op changes one record.
type Op struct {
	Key   string
	Value []byte // nil deletes
	Prev  Rev    // what Put expects: the record's revision, 0 for "does not exist", or Any
}

// Head describes one Commit. The store fills in Prev and Ops.
type Head struct {
	Prev   Rev       `json:"prev"` // revision of the commit before
	Ops    int       `json:"ops"`
	Time   time.Time `json:"time"`
	Author string    `json:"author,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// Batch is what one Commit or Put wrote. Head is nil for a Put.
type Batch struct {
	Rev  Rev
	Head *Head
	Ops  []Op
}

// Mark is a position reached by Load: the revision the records belong to, and
// the revision and time of the last commit up to there.
type Mark struct {
	Rev  Rev
	Head Rev
	Time time.Time
}

// Limits is what one Commit or Put may hold.
type Limits struct {
	Ops   int
	Bytes int
}

var (
	// ErrConflict says that somebody else wrote first. Nothing was written.
	ErrConflict = errors.New("store: written by another in the meantime")
	// ErrCompacted says that the history asked for is gone: Load again.
	ErrCompacted = errors.New("store: history is compacted")
	// ErrTooLarge says that a batch exceeds Limits. Nothing was written.
	ErrTooLarge = errors.New("store: batch exceeds the limits")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("store: closed")
)

// Store keeps records and the order in which they changed.
//
// An error other than the ones above leaves open whether a write happened;
// who must know follows the log.
type Store interface {
	// Load calls fn for every record, in key order, at one revision.
	Load(ctx context.Context, fn func(Record) error) (Mark, error)

	// Commit writes ops as one batch if the last commit is still prev, and
	// returns ErrConflict if not. The ops' own Prev is not looked at.
	Commit(ctx context.Context, prev Rev, head Head, ops []Op) (Rev, error)

	// Put writes independent records as one batch, each guarded by its own
	// Prev only. If one guard fails nothing is written and the error is
	// ErrConflict.
	Put(ctx context.Context, ops []Op) (Rev, error)

	// Get reads one record as it is now; ok is false if there is none.
	Get(ctx context.Context, key string) (rec Record, ok bool, err error)

	// Follow calls fn for every batch after rev, in order and without gaps,
	// until ctx ends or fn fails. ErrCompacted means that history is gone.
	Follow(ctx context.Context, rev Rev, fn func(Batch) error) error

	// Compact forgets history up to rev.
	Compact(ctx context.Context, rev Rev) error

	// Snapshot writes a copy of everything at one revision.
	Snapshot(ctx context.Context, w io.Writer) error

	Limits() Limits
	Close() error
}
