package state

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/checkpoint"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/pack"
	"netkeep.internal/internal/lang/terse"
)

const (
	// keepLook is how often it is looked whether a checkpoint is due. After a start that had
	// none one is due at once.
	keepLook = time.Second
	// keepBehind is how many revisions after the last one the next is due: a start follows
	// them in about a second.
	keepBehind = 20_000
	// keepAge is after how long it is due if anything has changed. History is kept for
	// an hour for who wants it.
	keepAge = 50 * time.Minute
	// keepShare is how many times as long as to make one, in processor time, it is until
	// the next: so all of them take a fiftieth of a processor.
	keepShare = 50
	// keepPause is how many times as long as to make a part it is waited afterwards, for
	// others who want to do something.
	keepPause = 9
	// keepPart is how many records a part has.
	keepPart = 4096
)

// keeper is who makes checkpoints.
type keeper struct {
	*State
	at     store.Rev // of the last one; 0 for none
	when   time.Time // it was made, or the start that began with it
	cost   time.Duration
	size   int64   // of its file; 0 if that is not known
	cursor *Cursor // keeps history from there on
	failed bool    // whether the last try failed
}

// Keep keeps what is in memory in a file again and again, for the next start, until ctx ends.
// Nobody waits for it.
func (s *State) Keep(ctx context.Context) {
	if s.opt.Keeping.File == "" {
		return
	}
	k := &keeper{State: s, at: s.restored, when: time.Now()}
	if k.at > 0 {
		k.cursor = s.Cursor(k.at)
	}
	defer func() {
		if k.cursor != nil {
			k.cursor.Close()
		}
	}()
	look := time.NewTicker(keepLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if snap := s.Snapshot(); k.due(snap, time.Now()) {
			k.try(ctx, snap)
		}
	}
}

// due reports whether a snapshot is to be kept.
func (k *keeper) due(snap *Snapshot, now time.Time) bool {
	since := now.Sub(k.when)
	switch bad, _ := k.Unreadable(); {
	case snap.Rev == k.at, snap.records() < k.opt.Keeping.Least:
		return false
	case bad > 0: // a start has to find out which they are
		return false
	case since < keepShare*k.cost:
		return false
	}
	return k.at == 0 || snap.Rev-k.at >= keepBehind || since >= keepAge
}

// records is how many there are.
func (s *Snapshot) records() (n int) {
	for _, t := range s.tables {
		n += t.rows.Len()
	}
	return n
}

// try keeps a snapshot. What fails is tried again after a while.
func (k *keeper) try(ctx context.Context, snap *Snapshot) {
	if k.cursor == nil {
		k.cursor = k.Cursor(snap.Rev)
	}
	cost, err := k.keep(ctx, snap)
	k.cost, k.when = cost, time.Now()
	switch {
	case ctx.Err() != nil:
	case err != nil:
		if !k.failed {
			k.opt.Logger.Warn("a checkpoint failed; the next start may read all records from the store, which takes longer", "file", k.opt.Keeping.File, "error", err)
		}
		k.cost = max(cost, time.Second)
	default:
		k.at = snap.Rev
		k.cursor.Move(snap.Rev)
	}
	k.failed = err != nil
}

// keep writes a snapshot to the file, and returns for how long it was at work.
func (k *keeper) keep(ctx context.Context, snap *Snapshot) (cost time.Duration, err error) {
	size := k.size
	if size == 0 {
		size = snap.stored()
	}
	w, err := checkpoint.Create(k.opt.Keeping.File, size)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	p := &pack.Writer{}
	for slot, d := range k.set.Defs {
		n := 0
		begun := time.Now()
		add := func() error {
			if n == 0 {
				return nil
			}
			if err := errors.Join(p.Err(), w.Add(d.Name, n, p.Bytes)); err != nil {
				return err
			}
			p.Reset()
			n = 0
			took := time.Since(begun)
			cost += took
			err := pause(ctx, keepPause*took)
			begun = time.Now()
			return err
		}
		if !stays(d) {
			continue
		}
		for r := range snap.tables[slot].rows.All() {
			k.pack(p, d, r)
			if n++; n == keepPart {
				if err := add(); err != nil {
					return cost, err
				}
			}
		}
		if err := add(); err != nil {
			return cost, err
		}
	}
	head, err := k.head(ctx, snap)
	if err == nil {
		err = w.Done(head)
	}
	k.size = w.Size()
	return cost, err
}

func (k *keeper) pack(w *pack.Writer, d *kind.Def, r *row) {
	w.Number(int64(r.rev))
	w.Count(uint64(r.size))
	d.Pack(w, r.rec, k.fold.Seal)
}

// head says of what a checkpoint is.
func (k *keeper) head(ctx context.Context, snap *Snapshot) (checkpoint.Head, error) {
	said, err := k.store.Witness(ctx, snap.Rev)
	if err != nil {
		return checkpoint.Head{}, err
	}
	at, err := json.Marshal(place{
		Rev: snap.Rev, Head: snap.head, Time: snap.Time, End: snap.end, Format: k.format.Load(), Witness: said, Samples: terse.Samples(),
	})
	return checkpoint.Head{For: readerOf(k.opt.Keeping, k.set), Network: k.opt.Keeping.Network, Place: at}, err
}

// stored is how large records are in the store.
func (s *Snapshot) stored() (n int64) {
	for _, t := range s.tables {
		for r := range t.rows.All() {
			n += int64(r.size)
		}
	}
	return n
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
		return nil
	}
}
