// Package build knows which build of the program this is. It imports nothing
// of ours.
package build

import (
	"runtime"
	"runtime/debug"
)

// Version is the release. Clients read it as numbers separated by dots and
// choose by it what they ask for: below 1.0.0 they use the API as it is
// described at version 0.25.15.
const Version = "v0.1.0"

// Info is what there is to say about this build.
type Info struct {
	Version string
	// Revision is the commit that it was built from; "+dirty" follows if the
	// sources were not quite that.
	Revision string
	// Date is the commit's: Go records no other, so that one source gives one
	// binary.
	Date    string
	Runtime string
}

// Read returns what the compiler recorded. It records no commit in tests, in
// sources without git, and in a linked work tree.
func Read() Info {
	info := Info{Version: Version, Revision: "unknown", Date: "unknown", Runtime: runtime.Version()}
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	var dirty bool
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Revision = s.Value
		case "vcs.time":
			info.Date = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty {
		info.Revision += "+dirty"
	}
	return info
}
