package state

import (
	"context"
	"fmt"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Reload replaces memory by what the store holds and returns when that is
// done. Memory follows the store by itself; this is for memory that was found
// to differ.
func (s *State) Reload(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(s.life, cancel)
	defer stop()
	if _, err := s.askToLoad(ctx); err != nil {
		return fmt.Errorf("load the store again: %w", err)
	}
	return nil
}

// Discard removes what the store has under the key of a record that memory
// does not hold, because it cannot be read. rev is the revision at which the
// caller saw it; what was written since then stays.
func (s *State) Discard(ctx context.Context, by Author, d *kind.Def, id string, rev store.Rev) error {
	// Whatever the record's lane, a Put is guarded by the record's own
	// revision, and no rule of the model is about what memory does not hold.
	return s.submit(kind.Session, &request{ctx: ctx, by: by, fn: func(tx *Tx) error {
		if _, readable := tx.Lookup(d, id); readable {
			return fault.New(fault.CodeUnavailable, d.Name+" "+id+" was written again and can be read now")
		}
		tx.note(change{def: d, id: id, prev: rev})
		return nil
	}})
}
