package state

import (
	"context"

	"netkeep.internal/internal/data/store"
)

// Since waits for a snapshot that has all that was written up to a revision,
// and returns it: who has written at one controller and reads at another wants to
// see it there.
func (s *State) Since(ctx context.Context, rev store.Rev) (*Snapshot, error) {
	if snap := s.Snapshot(); snap.Rev >= rev {
		return snap, nil
	}
	sub := s.Subscribe()
	for {
		if _, err := sub.Next(ctx); err != nil {
			return nil, err
		}
		if snap := s.Snapshot(); snap.Rev >= rev {
			return snap, nil
		}
	}
}

// Current waits for a snapshot that has all that the store had when it was asked,
// and returns it. It is for what must not be said by somebody who is behind: that
// something is not there.
func (s *State) Current(ctx context.Context) (*Snapshot, error) {
	last, err := s.store.Last(ctx)
	if err != nil {
		return nil, err
	}
	return s.Since(ctx, last)
}
