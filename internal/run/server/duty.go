package server

import (
	"context"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/duty"
	"netkeep.internal/internal/policy/grant"
)

// What one controller does for all that share the store.
const (
	dutySessions  = "sessions"  // those that time has ended, or that have lost what they rest on
	dutyHistory   = "history"   // history that nobody needs any more
	dutySnapshots = "snapshots" // those by the clock
	dutyFormat    = "format"    // that of the store, after an upgrade
	dutyAudit     = "audit"     // entries that are packed, and those that are forgotten
)

// keepEvery is how often somebody looks after the audit log.
const keepEvery = 10 * time.Second

// divide has this controller do its share of what is to be done once, for as long
// as ctx lasts.
func (s *Server) divide(ctx context.Context, sessions *authn.APISessions, grants *grant.Grants) {
	names := append([]string{dutySessions, dutyHistory, dutySnapshots, dutyFormat, dutyAudit, dutyAlerts}, s.outletDuties()...)
	s.duties = duty.New(s.claims(), s.roster.ID(), s.log, names...)
	mine := func(name string) func() bool { return func() bool { return s.duties.Mine(name) } }
	sessions.Mine, grants.Mine = mine(dutySessions), mine(dutySessions)
	s.jobs.Go(func() { s.duties.Run(ctx) })
	s.jobs.Go(func() { s.watchFormat(ctx) })
	s.jobs.Go(func() { sessions.Sweep(ctx, sweepEvery) })
	s.jobs.Go(func() { sessions.Enforce(ctx) })
	s.jobs.Go(func() { grants.Enforce(ctx) })
	keeper := s.newKeeper(ctx)
	s.jobs.Go(func() { s.duties.Do(ctx, dutyAudit, func(ctx context.Context) { keeper.Run(ctx, keepEvery) }) })
	s.runOutlets(ctx)
	s.jobs.Go(func() { compact(ctx, s.store, s.state, compactEvery, mine(dutyHistory), s.log) })
	s.jobs.Go(func() {
		s.snapshots.Recognise(ctx)
		if every := s.cfg.Snapshots.Every; every > 0 {
			s.duties.Do(ctx, dutySnapshots, func(ctx context.Context) { s.snapshots.Schedule(ctx, every, s.cfg.Snapshots.Keep) })
		}
	})
}

// Rest is for when there is little to do: it has the store let go of what it can read again.
func (s *Server) Rest() {
	if own, ok := s.store.(interface{ Relax() }); ok {
		own.Relax()
	}
}
