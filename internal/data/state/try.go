package state

import (
	"context"
	"slices"
	"time"

	"netkeep.internal/internal/lang/kind"
)

// Step is what a write does: everything before and after it, and which records
// differ.
type Step struct {
	Before, After *Snapshot
	Changed       []Ref
	// Tell, for a judge alone, has the journal note something with the write, as
	// Tx.Tell does.
	Tell func(rec kind.Record)
}

// Try runs fn as Update would, on a snapshot and without storing anything, and
// returns what it would have done, if that author may. It runs on the caller's
// goroutine, so that no write waits for it.
func (s *State) Try(ctx context.Context, by Author, on *Snapshot, fn func(*Tx) error) (Step, error) {
	tx, err := s.runOn(ctx, on, s.opt.Now(), fn)
	if err != nil {
		return Step{}, err
	}
	if err := s.judge(ctx, tx, by); err != nil {
		return Step{}, err
	}
	step := tx.Step()
	if s.opt.Journal != nil { // its entries have to fit too
		if _, err := tx.keep(s.opt.Journal.Continue(on), Nobody); err != nil {
			return Step{}, err
		}
	}
	if !tx.fits(s.store.Limits()) {
		return Step{}, errTooLarge
	}
	return step, nil
}

// TryAt shows what fn comes to at a time, which may be to come and never is before
// the snapshot's own. Nobody is to make that write, and so nobody judges it.
func (s *State) TryAt(ctx context.Context, on *Snapshot, when time.Time, fn func(*Tx) error) (Step, error) {
	tx, err := s.runOn(ctx, on, when, fn)
	if err != nil {
		return Step{}, err
	}
	return tx.Step(), nil
}

// runOn runs fn on a snapshot.
func (s *State) runOn(ctx context.Context, on *Snapshot, when time.Time, fn func(*Tx) error) (*Tx, error) {
	tx := newTx(on, s.set, kind.Model, newClock(when, on.Time), s.opt.Seal, s.opt.Frozen)
	req := &request{ctx: ctx, fn: fn}
	return tx, req.run(tx)
}

// Step returns what the write has done so far. It is for the end of a closure:
// whatever the write does later may show in it or not.
func (tx *Tx) Step() Step {
	step := Step{Before: tx.base, After: tx.Snapshot}
	for c := range tx.effective() {
		step.Changed = append(step.Changed, Ref{c.def, c.id})
	}
	return step
}

// Same reports whether the write began with the records of these kinds as a
// snapshot has them, every one of them.
func (tx *Tx) Same(as *Snapshot, kinds ...*kind.Def) bool {
	return !slices.ContainsFunc(kinds, func(d *kind.Def) bool { return tx.base.table(d) != as.table(d) })
}
