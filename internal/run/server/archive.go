package server

import (
	"context"
	"math"
	"time"

	"netkeep.internal/internal/ops/archive"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/metrics"
)

// archivePatience is how long the audit log may not be archived before others should
// serve instead.
const archivePatience = 10 * time.Minute

// openArchive prepares to archive what leaves the audit log, unless settings say that
// it may go.
func (s *Server) openArchive() {
	set := s.cfg.Audit
	if set.ArchiveSize == 0 {
		return
	}
	dir := set.ArchiveDir
	if dir == "" {
		dir = s.dir.sub("audit")
	}
	s.archive = &archive.Archive{
		Dir: dir, Network: rootName(s.keys.Authorities().Origin), Controller: s.roster.ID(),
		Age: set.ArchiveAge, Bytes: int64(set.ArchiveSize), Patience: archivePatience, Now: time.Now, Log: s.log,
	}
}

// newKeeper returns what looks after the audit log, and begins to archive what leaves
// it.
func (s *Server) newKeeper(ctx context.Context) *audit.Keeper {
	keeper := &audit.Keeper{
		Log: &audit.Log{State: s.state}, Now: time.Now, Archived: s.archived,
		Age: s.cfg.Audit.Age, Entries: int64(s.cfg.Audit.Entries), Bytes: int64(s.cfg.Audit.Size),
	}
	if s.archive != nil {
		s.jobs.Go(func() { s.archive.Run(ctx, keeper, keepEvery) })
	}
	return keeper
}

// archived is up to which entry the controllers that are there have archived the audit
// log, and which of them is the last.
func (s *Server) archived() (to int64, who string) {
	to = math.MaxInt64
	if s.archive != nil {
		to, _ = s.archive.Last()
		who = s.roster.ID()
	}
	if s.roster.Alone() {
		return to, who
	}
	if others, last := s.reports.archived(); others < to {
		return others, last
	}
	return to, who
}

// auditFigures is what monitoring sees of where entries go.
func (s *Server) auditFigures() metrics.Audit {
	return metrics.Audit{
		Archived: func() (n int64, ok bool) {
			if s.archive == nil {
				return 0, false
			}
			return s.archive.Last()
		},
		ArchiveFailing: func() time.Duration {
			if s.archive == nil {
				return 0
			}
			return s.archive.FailingFor()
		},
		Alerts: func(yield func(metrics.Alerts) bool) {
			for _, r := range s.receivers {
				if n := r.Counts(); !yield(metrics.Alerts{Receiver: r.Name, Sent: n.Sent, Repeated: n.Repeated, Dropped: n.Dropped}) {
					return
				}
			}
		},
		Outlets: func(yield func(metrics.Outlet) bool) {
			for _, job := range s.outlets {
				if !yield(metrics.Outlet(job.Figures())) {
					return
				}
			}
		},
	}
}
