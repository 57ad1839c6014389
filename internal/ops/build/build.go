// Package build knows which build of the program this is. It imports nothing
// of ours.
package build

import (
	"regexp"
	"runtime"
	"runtime/debug"
)

// Next is the release that these sources lead to, which a build says that was made of
// no tag.
const Next = "v1.0.0"

// Version is the release. Clients read it as numbers separated by dots and choose by it
// what they ask for, so it never has more than those.
var Version = recorded()

// release is what tags of releases look like.
var release = regexp.MustCompile(`^v[1-9][0-9]*\.[0-9]+\.[0-9]+$`)

// recorded is the release of the tag that the binary was built from.
func recorded() string {
	if b, ok := debug.ReadBuildInfo(); ok {
		return of(b.Main.Version)
	}
	return Next
}

// of is the release that a version of the module stands for: what lies between two
// tags, or was changed since, is on its way to the next.
func of(version string) string {
	if release.MatchString(version) {
		return version
	}
	return Next
}

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
