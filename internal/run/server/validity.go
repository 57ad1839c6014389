package server

import (
	"context"
	"fmt"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/policy/validity"
)

// settleTime ends what has ended while nobody was here to end it, and begins what
// has begun, before anybody is served.
func (s *Server) settleTime(ctx context.Context) error {
	s.validity = &validity.Keeper{State: s.state, Now: s.clock.Now, Log: s.log}
	if err := s.validity.Settle(ctx); err != nil {
		return fmt.Errorf("end what is over: %w", err)
	}
	return nil
}

// keepTime begins and ends policies and grants when their time has come. review looks at
// streams: a power may be over too, and what it shows comes to its holder by itself.
func (s *Server) keepTime(ctx context.Context, review func(before, after *state.Snapshot, changed []state.Ref)) {
	s.validity.Late = func(is, would *state.Snapshot, changed []state.Ref) {
		s.fabric.Late(is, would, changed)
		review(is, would, changed)
	}
	s.figures.WatchValidity(func(yield func(string, func() int) bool) {
		for _, d := range validity.Kinds {
			if !yield(d.Name, func() int { return validity.Ending(s.state.Snapshot(), d, s.clock.Now().Add(24*time.Hour)) }) {
				return
			}
		}
	})
	s.jobs.Go(func() { s.validity.Run(ctx) })
}

// timeless is the judge who refuses times for as long as there are controllers that know
// nothing of them: they would let people in before and after.
func (s *Server) timeless(_ context.Context, step state.Step, _ state.Author) error {
	if !s.held.Load() {
		return nil
	}
	for _, ref := range step.Changed {
		if rec, there := step.After.Lookup(ref.Def, ref.ID); there && validity.Timed(rec) {
			return fault.New(fault.CodeCluster, "there are controllers of a version that knows nothing of validFrom and validUntil, and would let people in before and after: bring all of them to this version first")
		}
	}
	return nil
}
