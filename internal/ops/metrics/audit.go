package metrics

import "time"

// Audit is where the figures come from of what becomes of the audit log.
type Audit struct {
	// Archived is the number of the last entry that this controller has archived; not
	// ok if it archives none.
	Archived func() (n int64, ok bool)
	// ArchiveFailing is for how long it could not archive any.
	ArchiveFailing func() time.Duration
}

// WatchAudit adds the figures of what becomes of the audit log. It may be called once.
func (m *Metrics) WatchAudit(a Audit) {
	m.Registry.MustRegister(
		&optional{desc("netkeep_audit_archived_entry", "Number of the last entry of the audit log that this controller has archived."), a.Archived},
		gauge("netkeep_audit_archive_failing_seconds", "For how long the audit log could not be archived; 0 while it is.", nil, func() float64 { return a.ArchiveFailing().Seconds() }),
	)
}
