package server

import (
	"context"
	"fmt"

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

// keepTime begins and ends policies and grants when their time has come.
func (s *Server) keepTime(ctx context.Context) {
	s.validity.Late = s.fabric.Late
	s.jobs.Go(func() { s.validity.Run(ctx) })
}
