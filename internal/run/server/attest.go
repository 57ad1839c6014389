package server

import (
	"os"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/ops/audit"
)

// restoredFile says of a data directory what it was made of, until the first start
// has noted it: who restores has no keys to write to the store with.
const restoredFile = "restored"

// noteRestored has the audit log tell that the store was made of a snapshot.
func (s *Server) noteRestored() {
	line, err := os.ReadFile(s.dir.sub(restoredFile))
	if err != nil {
		return // it was not, or is noted
	}
	name, what, _ := strings.Cut(strings.TrimSpace(string(line)), ", ")
	s.recorder.Note(audit.Fact{
		Event: audit.SnapshotRestored, By: state.Program("restore"), Target: audit.Target{Kind: snapshotKind, ID: name, Name: name}, Reason: what,
	})
	if err := s.dir.drop(restoredFile); err != nil {
		s.log.Warn("that the store was restored is noted at every start, since a file cannot be removed", "file", restoredFile, "error", err)
	}
}

// snapshotKind is what snapshots are called in the audit log.
const snapshotKind = "snapshot"

// noteScheduled has it tell of a snapshot by the clock.
func (s *Server) noteScheduled(name string, err error) {
	f := audit.Fact{Event: audit.SnapshotMade, By: state.Program("snapshots"), Target: audit.Target{Kind: snapshotKind, ID: name, Name: name}}
	if err != nil {
		f.Event, f.Reason = audit.SnapshotFailed, err.Error()
	}
	if !fault.Is(err, fault.CodeRateLimited) {
		s.recorder.Note(f)
	}
}
