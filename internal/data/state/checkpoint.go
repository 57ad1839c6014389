package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/checkpoint"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/pack"
	"netkeep.internal/internal/lang/terse"
)

// Keeping says where a State keeps what it has in memory for its next start, and for whom:
// that takes a part of the time that it takes to read all records from the store.
type Keeping struct {
	// File is where it is kept; nothing is if empty.
	File string
	// Build is which program it is for, and Network whose records they are.
	Build, Network string
	// Least is of how many records at least it is: fewer are read as soon.
	Least int
}

// place is where in the log a checkpoint is, and what there was beside records.
type place struct {
	Rev     store.Rev `json:"rev"`
	Head    store.Rev `json:"head"`
	Time    time.Time `json:"time"`
	End     string    `json:"end"`
	Format  int64     `json:"format"`
	Witness []byte    `json:"witness"` // what the store says of the log up to there
	Samples [][]byte  `json:"samples"` // by which certificates are told
}

// mostBehind is how many revisions the log may have gone on since a checkpoint: to follow more
// takes longer than to read all records.
const mostBehind = 200_000

// reader is who can read a checkpoint: a program of the same build, whose records are the same.
func (s *State) reader() string {
	sum := sha256.New()
	for _, d := range s.set.Defs {
		if stays(d) {
			fmt.Fprintln(sum, d.Shape())
		}
	}
	return s.opt.Keeping.Build + " " + hex.EncodeToString(sum.Sum(nil))
}

// stays reports whether records of a kind are in memory and in the store.
func stays(d *kind.Def) bool { return d.Lane == kind.Model || d.Lane == kind.Session }

// restore has memory begin with what a checkpoint has, if there is one that can be used: what
// came after it is for who follows the log. One that cannot be used is taken away, so that
// none is ever met by a log that has become another one since.
func (s *State) restore(ctx context.Context) (done bool) {
	path := s.opt.Keeping.File
	if path == "" {
		return false
	}
	checkpoint.Clean(path)
	began := time.Now()
	next, at, err := s.unpack(ctx)
	switch {
	case errors.Is(err, checkpoint.ErrNone), errors.Is(err, errUnasked):
		return false
	case err != nil:
		s.opt.Logger.Info("the checkpoint is not used; all records are read from the store", "file", path, "reason", err)
		if err := os.Remove(path); err != nil {
			s.opt.Logger.Warn("a checkpoint that is of no use cannot be deleted", "file", path, "error", err)
		}
		return false
	}
	s.fed, s.restored = at.Rev, at.Rev
	s.format.Store(at.Format)
	s.publish(Event{Rev: next.Rev, Reset: next, After: next})
	s.opt.Logger.Info("memory begins with a checkpoint", "revision", int64(at.Rev), "took", time.Since(began).Round(time.Millisecond).String())
	return true
}

// unpack makes a snapshot of the checkpoint, if it is of this log.
func (s *State) unpack(ctx context.Context) (*Snapshot, place, error) {
	f, err := checkpoint.Open(s.opt.Keeping.File)
	if err != nil {
		return nil, place{}, err
	}
	defer f.Close()
	var at place
	switch {
	case f.Head.For != s.reader():
		return nil, at, errors.New("another version wrote it")
	case f.Head.Network != s.opt.Keeping.Network:
		return nil, at, errors.New("it is of another network")
	case json.Unmarshal(f.Head.Place, &at) != nil:
		return nil, at, errors.New("it does not say of when it is")
	case !terse.Adopt(at.Samples):
		return nil, at, errors.New("its certificates are told by others than those of this program")
	}
	if err := s.follows(ctx, at); err != nil {
		return nil, at, err
	}
	rows, err := s.unpackRows(f)
	if err != nil {
		return nil, at, err
	}
	next := newSnapshot(s.set)
	next.fill(rows)
	next.mark = mark{Rev: at.Rev, head: at.Head, Time: at.Time, end: at.End}
	return next, at, nil
}

// follows returns why the log cannot be followed from a checkpoint on, nil if it can.
func (s *State) follows(ctx context.Context, at place) error {
	said, err := s.store.Witness(ctx, at.Rev)
	switch {
	case errors.Is(err, store.ErrCompacted):
		return errors.New("what came after it is forgotten")
	case errors.Is(err, store.ErrInvalid):
		return errors.New("the store is older")
	case err != nil:
		return fmt.Errorf("%w: %w", errUnasked, err)
	case string(said) != string(at.Witness):
		return errors.New("it is of another store, or of what this one was before it was restored")
	}
	last, err := s.store.Last(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errUnasked, err)
	case last-at.Rev > mostBehind:
		return errors.New("too much has come after it")
	}
	return nil
}

// errUnasked says that the store did not answer whether a checkpoint is of it.
var errUnasked = errors.New("the store did not answer")

// unpackRows reads the parts of a checkpoint, several at a time, and returns rows by slot and
// in the order of ids.
func (s *State) unpackRows(f *checkpoint.File) ([][]*row, error) {
	parts := make([][]*row, len(f.Parts))
	failed := make([]error, len(f.Parts))
	turns := make(chan int)
	var reading sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		reading.Go(func() {
			for i := range turns {
				parts[i], failed[i] = s.unpackPart(f, f.Parts[i])
			}
		})
	}
	for i := range f.Parts {
		turns <- i
	}
	close(turns)
	reading.Wait()
	rows := make([][]*row, len(s.set.Defs))
	for slot, d := range s.set.Defs {
		n := 0
		for _, p := range f.Parts {
			if p.Name == d.Name {
				n += p.Count
			}
		}
		rows[slot] = make([]*row, 0, n)
		for i, p := range f.Parts {
			if p.Name == d.Name {
				rows[slot] = append(rows[slot], parts[i]...)
			}
		}
	}
	return rows, errors.Join(failed...)
}

func (s *State) unpackPart(f *checkpoint.File, p checkpoint.Part) ([]*row, error) {
	d := s.set.Named(p.Name)
	if d == nil || !stays(d) {
		return nil, fmt.Errorf("it has records of an unknown kind %q", p.Name)
	}
	data, err := f.Read(p)
	if err != nil {
		return nil, err
	}
	r := pack.NewReader(data)
	rows := make([]*row, 0, min(p.Count, len(data)))
	for range p.Count {
		rev, size := store.Rev(r.Number()), uint32(r.Count())
		rec, err := d.Unpack(r, s.fold.Seal)
		if err != nil {
			return nil, err
		}
		made := &row{id: rec.Base().ID, rec: rec, rev: rev, size: size}
		if s.fold.Frozen {
			made.freeze(d)
		}
		rows = append(rows, made)
	}
	if r.Len() > 0 {
		return nil, fmt.Errorf("%d bytes are left of a part with records of the kind %q", r.Len(), p.Name)
	}
	return rows, nil
}
