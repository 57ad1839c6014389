package api

import (
	"net/http"
	"time"

	"netkeep.internal/internal/web/rest"
)

// integrityOut is what the last integrity scan found.
type integrityOut struct {
	InProgress    bool         `json:"inProgress" doc:"Whether a scan is under way."`
	FixingErrors  bool         `json:"fixingErrors" doc:"Whether the scan repairs what it can."`
	TooManyErrors bool         `json:"tooManyErrors" doc:"Whether there was more to find than is listed."`
	StartTime     *time.Time   `json:"startTime" kind:"nullable" doc:"When the scan began; null if there was none since the controller started."`
	EndTime       *time.Time   `json:"endTime" kind:"nullable" doc:"When the scan ended; null until it has."`
	Error         string       `json:"error" kind:"nullable" doc:"Why the scan could not be completed; null if it could."`
	Results       []findingOut `json:"results" doc:"What the scan has found; empty if all is well."`
}

type findingOut struct {
	Description string `json:"description" doc:"Which record is wrong, and how."`
	Fixed       bool   `json:"fixed" doc:"Whether it has been repaired."`
}

// SnapshotOut is a copy of everything.
type SnapshotOut struct {
	File string `json:"file" doc:"Name of the snapshot, in the directory for snapshots of the controller."`
	Path string `json:"path" doc:"Where it is on the controller's machine."`
}

// TakeSnapshot writes a copy of everything to the controller's disk.
func (s *Service) TakeSnapshot(c *rest.Call) (SnapshotOut, error) {
	name, err := s.Snapshots.Create(c.Context())
	s.NoteSnapshot(c.Author(), name, err)
	return SnapshotOut{name, s.Snapshots.Path(name)}, err
}

// MountScans offers scans of what is stored.
func MountScans(a *rest.API, s *Service) {
	op := func(method, path, name, need, doc string) rest.Op {
		return rest.Op{Method: method, Path: "/database/" + path, Name: name, Tag: "database", Doc: doc, Auth: rest.Admin, Need: need}
	}
	scan := func(fix bool) func(*rest.Call, rest.None) (rest.Empty, error) {
		return func(c *rest.Call, _ rest.None) (rest.Empty, error) {
			return rest.Empty{}, s.Integrity.Start(c.Author(), fix)
		}
	}
	check := op(http.MethodPost, "check-data-integrity", "checkDataIntegrity", "database:check", "Start a scan of everything that is stored.")
	fix := op(http.MethodPost, "fix-data-integrity", "fixDataIntegrity", "database:fix", "Start a scan that also repairs what it can.")
	check.Status, fix.Status = http.StatusAccepted, http.StatusAccepted
	rest.Handle(a, check, scan(false))
	rest.Handle(a, fix, scan(true))
	rest.Handle(a, op(http.MethodGet, "data-integrity-results", "dataIntegrityResults", "database:read", "Tell what the scan under way, or else the last one, has found."),
		func(*rest.Call, rest.None) (rest.Counted[integrityOut], error) { return integrityResults(s), nil })
}

func integrityResults(s *Service) rest.Counted[integrityOut] {
	r := s.Integrity.Report()
	out := integrityOut{
		InProgress: r.Running, FixingErrors: r.Fixing, TooManyErrors: r.TooMany, Error: r.Error,
		StartTime: moment(r.Started), EndTime: moment(r.Ended), Results: make([]findingOut, len(r.Findings)),
	}
	for i, f := range r.Findings {
		out.Results[i] = findingOut(f)
	}
	return rest.Counted[integrityOut]{Data: out, Total: len(out.Results)}
}

// moment is a time that may not have come yet.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
