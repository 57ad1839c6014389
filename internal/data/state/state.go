// Package state is the network's model in memory: snapshots for readers,
// transactions for writers, and the goroutine between them and the store. The
// store is written first and memory second, never the other way. It knows
// kinds only as descriptors and must not import model.
//
// One goroutine, the owner, changes memory. It runs waiting writes one after
// the other, each on a private copy of what the one before left, commits them
// together and publishes the last copy. What others commit it learns from the
// store's feed, and it applies nothing that does not follow from what it has.
// So memory takes the steps of the log, all of them and in their order, and
// whoever subscribes is told of each.
package state

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Options of a State. The zero value is usable.
type Options struct {
	Logger *slog.Logger
	// Now gives commits their times. It is called while somebody writes.
	Now func() time.Time
	// Stored, if set, is told of every attempt to write to the store. It must
	// be quick and must not write: it runs on the goroutine that all writes
	// wait for.
	Stored func(Stored)
	// Outgrown, if set, is told when a newer version has brought the store to a
	// format that this one cannot read, under the same rules. Nothing is
	// written any more by then.
	Outgrown func(error)
	// Seal puts what kinds call sealed under seals in the store; nil leaves it
	// readable, which is for tests.
	Seal kind.Sealer
	// Journal, if set, makes entries of all that is changed here.
	Journal Journal
	// Judge, if set, may refuse what a write has come to.
	Judge Judge
	// Patience is how long a write may wait for its turn and for the store in
	// all, defaultPatience if 0. A large one gets largePatience more.
	Patience time.Duration
	// MaxBehind is about how many bytes of changes are kept for subscribers,
	// defaultBehind if 0. One that is further behind starts again.
	MaxBehind int
	// Keeping is where and for whom memory is kept for the next start, and Kept what the
	// last one left there, if somebody has begun to unpack it.
	Keeping Keeping
	Kept    *Kept
	// Frozen makes every write check that nobody wrote to shared records. It
	// costs an encoding per record and is for tests.
	Frozen bool
}

// Author is who makes a write, and on what occasion.
type Author = store.Author

// Nobody is an author of whom nothing is known.
var Nobody = Author{Kind: store.Anonymous}

// Program is the author of what a part of the program does by itself.
func Program(part string) Author { return Author{Kind: store.Program, Name: part} }

// State holds the current snapshot and accepts writes.
type State struct {
	set   *kind.Catalog
	fold  Fold
	store store.Store
	opt   Options

	current atomic.Pointer[Snapshot]
	queues  [2]chan *request // by lane
	feed    chan delivery

	// telling is held while current changes and those are told who want to
	// know, so that nobody misses a step or sees one twice.
	telling    sync.Mutex
	attendants []func(before, after *Snapshot, changed []Ref)
	ring       *ring

	// Owned by the goroutine that runs own:
	fed    store.Rev          // how far the feed has come
	loaded []chan<- store.Rev // to be told of the next load
	retry  <-chan time.Time   // when to try a failed load again
	alien  map[string]bool    // unknown kinds that were reported

	stamped time.Time // the last time that a record got

	unusable error // why nothing may be written, if so

	awaited store.Rev // the last write of our own that the feed has to repeat

	unrepeated stretch // that the feed lacks a write of our own
	brokenOff  stretch // that there is no feed
	unloaded   stretch // that a load was due and failed

	format     atomic.Int64 // which the store has
	restored   store.Rev    // of the checkpoint that memory began with; 0 for none
	unreadable unreadable
	cursors    cursors

	life    context.Context // ends with Close
	stop    context.CancelFunc
	stopped chan struct{}
	wg      sync.WaitGroup
}

const (
	// defaultBehind is enough for some thousands of changes. They are in memory
	// whether anybody is behind or not, and every collection of garbage walks
	// through them.
	defaultBehind = 4 << 20
	// defaultPatience is longer than any disk should take.
	defaultPatience = 10 * time.Second
	// largePatience is longer than the largest commit should take.
	largePatience = time.Minute
	// maxQueue bounds how many writes may wait in each lane.
	maxQueue = 4096
	// feedAhead is how many batches the feed may be ahead of the owner, so
	// that it finds more than one at a time when it must catch up.
	feedAhead = 64
)

// Open loads every record, or begins with what was kept of them, and starts following the store. The store stays the
// caller's to close, after Close.
func Open(ctx context.Context, st store.Store, set *kind.Catalog, opt Options) (*State, error) {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.MaxBehind == 0 {
		opt.MaxBehind = defaultBehind
	}
	if opt.Patience == 0 {
		opt.Patience = defaultPatience
	}
	if opt.Stored == nil {
		opt.Stored = func(Stored) {}
	}
	if opt.Outgrown == nil {
		opt.Outgrown = func(error) {}
	}
	s := &State{
		set: set, store: st, opt: opt,
		feed: make(chan delivery, feedAhead), stopped: make(chan struct{}),
		fold: Fold{Kinds: set, Seal: opt.Seal, Frozen: opt.Frozen}, ring: newRing(opt.MaxBehind),
		alien: map[string]bool{},
	}
	for lane := range s.queues {
		s.queues[lane] = make(chan *request, maxQueue)
	}
	begun := s.restore(ctx)
	if !begun {
		if err := s.load(ctx); err != nil {
			return nil, err
		}
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.life, s.stop = run, stop
	from := s.fed // the owner may move it before the feed starts
	s.wg.Go(func() { s.own(run) })
	s.wg.Go(func() { s.follow(run, from) })
	s.wg.Go(func() { s.ring.wake(run) })
	if begun { // and has yet to get what came after it
		if _, err := s.Current(ctx); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Close stops accepting writes. The one that is being stored ends first; all
// others are refused.
func (s *State) Close() {
	s.stop()
	s.wg.Wait()
}

// Snapshot returns everything as it is now.
func (s *State) Snapshot() *Snapshot { return s.current.Load() }

// Logger is where the state tells of what goes wrong.
func (s *State) Logger() *slog.Logger { return s.opt.Logger }

// Quick is what a batch may hold to be written in one go.
func (s *State) Quick() store.Limits { return s.store.Quick() }

// Kinds returns what records there may be.
func (s *State) Kinds() *kind.Catalog { return s.set }

// Fold returns how memory reads what is stored.
func (s *State) Fold() Fold { return s.fold }

// Update runs fn as one write of model records, and of what session records go
// with them. When it returns nil the write is in the store and in every later
// Snapshot. After CodeUnavailable, or when
// ctx ends first, it may have been stored or not; after any other error it was
// not.
//
// fn may run several times, so it must not do anything that cannot be repeated
// or that takes long: no network, no signing, no hashing. It never runs once
// Update has returned.
func (s *State) Update(ctx context.Context, by Author, fn func(*Tx) error) error {
	return s.submit(kind.Model, &request{ctx: ctx, by: by, fn: fn})
}

// UpdateSessions runs fn as one write of session records alone, under the same
// rules.
func (s *State) UpdateSessions(ctx context.Context, by Author, fn func(*Tx) error) error {
	return s.submit(kind.Session, &request{ctx: ctx, by: by, fn: fn})
}

// Delete removes one record and what depends on it. If that is more than one
// commit can hold it takes several, dependents first, so that an interruption
// leaves nothing dangling.
func (s *State) Delete(ctx context.Context, by Author, d *kind.Def, id string) error {
	// The whole is tried first even if it cannot fit: a refusal somewhere in
	// the cascade must show before the first part is gone.
	_, err := s.deleteSome(ctx, by, d, id, 0)
	if !fault.Is(err, fault.CodeTooLarge) {
		return err
	}
	ctx = Deciding(ctx) // with the first part
	for budget := max(1, s.store.Quick().Ops/2); ; {
		more, err := s.deleteSome(ctx, by, d, id, budget)
		switch {
		case fault.Is(err, fault.CodeTooLarge) && budget > 1:
			budget /= 2 // few ops, but large records
		case err != nil || !more:
			return err
		}
	}
}

// deleteSome deletes with a budget of ops, 0 for no limit, and reports whether
// there is more to do.
func (s *State) deleteSome(ctx context.Context, by Author, d *kind.Def, id string, budget int) (more bool, err error) {
	err = s.submit(d.Lane, &request{ctx: ctx, by: by, part: budget > 0, fn: func(tx *Tx) (err error) {
		more, err = tx.deleteWithin(budget, d, id)
		return err
	}})
	return more && err == nil, err
}
