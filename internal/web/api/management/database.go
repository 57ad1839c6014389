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

// mountDatabase offers the care of what is stored.
func mountDatabase(a *rest.API, s *api.Service) {
	api.MountScans(a, s)
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/database/snapshot", Name: "createDatabaseSnapshot", Tag: "database",
		Doc: "Write a copy of everything that is stored to the controller's disk.", Auth: rest.Admin, Need: "database:snapshot", Long: true,
	}, func(c *rest.Call, _ rest.None) (api.SnapshotOut, error) { return s.TakeSnapshot(c) })
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
		Doc: "Read a copy from begin to end, as a restore would.", Auth: rest.Admin, Need: "database:verify", Long: true,
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
