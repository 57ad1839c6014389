package management

import (
	"net/http"
	"time"

	"netkeep.internal/internal/data/backup"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/web/api"
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

// snapshotOut is a copy of everything.
type snapshotOut struct {
	File string `json:"file" doc:"Name of the snapshot, in the directory for snapshots of the controller."`
	Path string `json:"path" doc:"Where it is on the controller's machine."`
}

// mountDatabase offers the care of what is stored.
func mountDatabase(a *rest.API, s *api.Service) {
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
	rest.Handle(a, op(http.MethodPost, "snapshot", "createDatabaseSnapshot", "database:snapshot", "Write a copy of everything that is stored to the controller's disk."),
		func(c *rest.Call, _ rest.None) (snapshotOut, error) {
			name, err := s.Snapshots.Create(c.Context())
			s.NoteSnapshot(c.Author(), name, err)
			return snapshotOut{name, s.Snapshots.Path(name)}, err
		})
	mountSnapshots(a, s)
}

// mountSnapshots offers the copies that there are.
func mountSnapshots(a *rest.API, s *api.Service) {
	list := rest.Op{
		Method: http.MethodGet, Path: "/database/snapshots", Name: "listDatabaseSnapshots", Tag: "database",
		Doc: "List the copies on the controller's disk, the latest first.", Auth: rest.Admin, Need: "database:read", Entries: snapshotOutput.Schema(),
	}
	rest.Handle(a, list, func(*rest.Call, rest.None) (rest.List, error) {
		files, err := s.Snapshots.List()
		return rest.List{
			Page: filter.Page{Limit: int64(len(files))}, Total: int64(len(files)), Fields: []string{}, Len: len(files),
			Append: func(dst []byte, i int) []byte {
				entry := snapshotEntryOf(files[i])
				return snapshotOutput.Append(dst, &entry)
			},
		}, err
	})
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/database/snapshots/{name}/verify", Name: "verifyDatabaseSnapshot", Tag: "database",
		Doc: "Read a copy from begin to end, as a restore would.", Auth: rest.Admin, Need: "database:verify",
	}, func(c *rest.Call, _ rest.None) (verifiedOut, error) {
		file, wrong, err := s.Snapshots.Check(c.Context(), c.Param("name"))
		return verifiedOut{file.Name, wrong == "", wrong, int64(file.Rev)}, err
	})
}

// snapshotEntry is a copy in lists.
type snapshotEntry struct {
	Name      string    `json:"name" doc:"Name of the snapshot's file."`
	Size      int64     `json:"size" doc:"Its size in bytes."`
	Time      time.Time `json:"time" doc:"When it was taken."`
	Revision  int64     `json:"revision" doc:"Revision of the store that it holds."`
	Scheduled bool      `json:"scheduled" doc:"Whether it was taken by itself, so that it is deleted when there are enough later ones."`
}

func snapshotEntryOf(f backup.File) snapshotEntry {
	return snapshotEntry{f.Name, f.Size, f.Time, int64(f.Rev), f.Scheduled}
}

var snapshotOutput = kind.NewOutput[snapshotEntry]()

// verifiedOut is what became of reading a copy.
type verifiedOut struct {
	Name     string `json:"name" doc:"Name of the snapshot's file."`
	Intact   bool   `json:"intact" doc:"Whether all of it could be read."`
	Problem  string `json:"problem" kind:"nullable" doc:"What is wrong with it; null if nothing is."`
	Revision int64  `json:"revision" doc:"Revision of the store that its name says it holds."`
}

func integrityResults(s *api.Service) rest.Counted[integrityOut] {
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
