package server

import (
	"context"
	"slices"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/recent"
)

// remember begins to keep the last day, until ctx ends.
func (s *Server) remember(ctx context.Context) {
	s.day = recent.New(s.totals, time.Now)
	s.jobs.Go(func() { s.day.Run(ctx) })
}

// totals is what the last day is made of: what is counted for monitoring, and how the
// network is now.
func (s *Server) totals() recent.Totals {
	t := s.figures.Totals()
	now := recent.Totals{
		Logins: t.Logins, LoginsRefused: t.LoginsRefused, Dials: t.Dials, DialsRefused: t.DialsRefused, Carried: t.Carried,
		Circuits: s.fabric.View().Len(model.Circuits.Def),
	}
	if all := s.fabric.Links.Latencies(); len(all) > 0 {
		slices.Sort(all)
		now.Slowest, now.Median = all[len(all)-1], all[len(all)/2]
	}
	return now
}
