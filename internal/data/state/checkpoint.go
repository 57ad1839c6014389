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
	"sync/atomic"
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

// readerOf is who can read a checkpoint: a program of the same build, whose records are the same.
func readerOf(k Keeping, set *kind.Catalog) string {
	sum := sha256.New()
	for _, d := range set.Defs {
		if stays(d) {
			fmt.Fprintln(sum, d.Shape())
		}
	}
	return k.Build + " " + hex.EncodeToString(sum.Sum(nil))
}

// stays reports whether records of a kind are in memory and in the store.
func stays(d *kind.Def) bool { return d.Lane == kind.Model || d.Lane == kind.Session }

// Kept is what a checkpoint has, while it is unpacked: that may begin before there is a store
// that it could be of.
type Kept struct {
	seal   later
	stop   atomic.Bool
	opened chan struct{} // closed when head, at and err are there
	head   checkpoint.Head
	at     place
	err    error
	done   chan struct{} // closed when next and failed are there
	next   *Snapshot
	failed error
}

// Unpack begins to unpack what was kept, if anything was. Who does not open a State with it
// closes it.
func Unpack(k Keeping, set *kind.Catalog, frozen bool) *Kept {
	u := &Kept{seal: later{given: make(chan struct{})}, opened: make(chan struct{}), done: make(chan struct{})}
	go u.unpack(k, set, Fold{Kinds: set, Seal: &u.seal, Frozen: frozen})
	return u
}

// Close gives up what was kept.
func (u *Kept) Close() {
	u.stop.Store(true)
	u.seal.give(nil, errUnused)
	<-u.done
	u.next = nil // which whoever opened a State has by now
}

func (u *Kept) unpack(k Keeping, set *kind.Catalog, fold Fold) {
	defer close(u.done)
	f, err := u.open(k, set)
	close(u.opened)
	if err != nil {
		return
	}
	defer f.Close()
	rows, err := fold.unpackRows(f, u.stop.Load)
	if err != nil {
		u.failed = err
		return
	}
	u.next = newSnapshot(set)
	u.next.fill(rows)
	u.next.mark = mark{Rev: u.at.Rev, head: u.at.Head, Time: u.at.Time, end: u.at.End}
}

// open opens the file, if this program can read it.
func (u *Kept) open(k Keeping, set *kind.Catalog) (f *checkpoint.File, err error) {
	defer func() { u.err = err }()
	checkpoint.Clean(k.File)
	f, err = checkpoint.Open(k.File)
	if err != nil {
		return nil, err
	}
	switch u.head = f.Head; {
	case f.Head.For != readerOf(k, set):
		err = errors.New("another version wrote it")
	case json.Unmarshal(f.Head.Place, &u.at) != nil:
		err = errors.New("it does not say of when it is")
	case !terse.Adopt(u.at.Samples):
		err = errors.New("its certificates are told by others than those of this program")
	default:
		return f, nil
	}
	f.Close()
	return nil, err
}

// later is a sealer that is there after a while: what is under a seal waits for it.
type later struct {
	once  sync.Once
	given chan struct{}
	kind.Sealer
	err error
}

var errUnused = errors.New("it is not used")

func (l *later) give(s kind.Sealer, err error) {
	l.once.Do(func() {
		l.Sealer, l.err = s, err
		close(l.given)
	})
}

// Open waits for the sealer, and opens with it.
func (l *later) Open(place string, sealed []byte) ([]byte, error) {
	<-l.given
	switch {
	case l.err != nil:
		return nil, l.err
	case l.Sealer == nil: // nothing is sealed where there is none
		return sealed, nil
	}
	return l.Sealer.Open(place, sealed)
}

// restore has memory begin with what a checkpoint has, if there is one that can be used: what
// came after it is for who follows the log. One that cannot be used is taken away, so that
// none is ever met by a log that has become another one since.
func (s *State) restore(ctx context.Context) (done bool) {
	path := s.opt.Keeping.File
	if path == "" {
		return false
	}
	u := s.opt.Kept
	if u == nil {
		u = Unpack(s.opt.Keeping, s.set, s.opt.Frozen)
	}
	defer u.Close()
	switch err := s.use(ctx, u); {
	case errors.Is(err, checkpoint.ErrNone), errors.Is(err, errUnasked):
		return false
	case err != nil:
		s.opt.Logger.Info("the checkpoint is not used; all records are read from the store", "file", path, "reason", err)
		if err := os.Remove(path); err != nil {
			s.opt.Logger.Warn("a checkpoint that is of no use cannot be deleted", "file", path, "error", err)
		}
		return false
	}
	s.fed, s.restored = u.at.Rev, u.at.Rev
	s.format.Store(u.at.Format)
	s.publish(Event{Rev: u.next.Rev, Reset: u.next, After: u.next})
	s.opt.Logger.Info("memory begins with a checkpoint", "revision", int64(u.at.Rev))
	return true
}

// use waits for what a checkpoint has, if it is of this log.
func (s *State) use(ctx context.Context, u *Kept) error {
	<-u.opened
	if u.err != nil {
		return u.err
	}
	if u.head.Network != s.opt.Keeping.Network {
		return errors.New("it is of another network")
	}
	if err := s.follows(ctx, u.at); err != nil {
		return err
	}
	u.seal.give(s.opt.Seal, nil)
	<-u.done
	return u.failed
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
// in the order of ids, unless somebody says stop.
func (f Fold) unpackRows(from *checkpoint.File, stop func() bool) ([][]*row, error) {
	parts := make([][]*row, len(from.Parts))
	failed := make([]error, len(from.Parts))
	turns := make(chan int)
	var reading sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		reading.Go(func() {
			for i := range turns {
				if failed[i] = errUnused; !stop() {
					parts[i], failed[i] = f.unpackPart(from, from.Parts[i])
				}
			}
		})
	}
	for i := range from.Parts {
		turns <- i
	}
	close(turns)
	reading.Wait()
	rows := make([][]*row, len(f.Kinds.Defs))
	for slot, d := range f.Kinds.Defs {
		n := 0
		for _, p := range from.Parts {
			if p.Name == d.Name {
				n += p.Count
			}
		}
		rows[slot] = make([]*row, 0, n)
		for i, p := range from.Parts {
			if p.Name == d.Name {
				rows[slot] = append(rows[slot], parts[i]...)
			}
		}
	}
	return rows, errors.Join(failed...)
}

func (f Fold) unpackPart(from *checkpoint.File, p checkpoint.Part) ([]*row, error) {
	d := f.Kinds.Named(p.Name)
	if d == nil || !stays(d) {
		return nil, fmt.Errorf("it has records of an unknown kind %q", p.Name)
	}
	data, err := from.Read(p)
	if err != nil {
		return nil, err
	}
	r := pack.NewReader(data)
	rows := make([]*row, 0, min(p.Count, len(data)))
	for range p.Count {
		rev, size := store.Rev(r.Number()), uint32(r.Count())
		rec, err := d.Unpack(r, f.Seal)
		if err != nil {
			return nil, err
		}
		made := &row{id: rec.Base().ID, rec: rec, rev: rev, size: size}
		if f.Frozen {
			made.freeze(d)
		}
		rows = append(rows, made)
	}
	if r.Len() > 0 {
		return nil, fmt.Errorf("%d bytes are left of a part with records of the kind %q", r.Len(), p.Name)
	}
	return rows, nil
}
