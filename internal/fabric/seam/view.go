package seam

import (
	"context"
	"regexp"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// Fabric is what connected routers make between them, and what can be asked of
// them. It is what this controller sees, but for who is connected.
type Fabric interface {
	// It tells of records of volatile kinds, links and circuits among them.
	kind.Reader
	// EndCircuit ends a circuit at once, whichever controller has made it; it
	// reports false if there is none with the id.
	EndCircuit(ctx context.Context, id string) (bool, error)
	// SetLink changes what a link costs and whether it is used, at all controllers that
	// know of it, and EndLink has its ends close it; both report false if this one does
	// not know it.
	SetLink(ctx context.Context, id string, with LinkChange) (bool, error)
	EndLink(ctx context.Context, id string) (bool, error)
	// Path is the cheapest way from one router to another; ok is false if there
	// is none.
	Path(from, to string) (p Path, ok bool)
	// Hosted asks a router which of its terminators are still, until ctx ends; it says
	// nothing of those that it does not know how to look for.
	Hosted(ctx context.Context, routerID string, terminators []*model.Terminator) (map[string]Host, error)
	// CompareModel asks a router in what the data model that it knows differs from what it
	// was told, and to mend that if asked for, until ctx ends.
	CompareModel(ctx context.Context, routerID string, mend bool) (differences []string, err error)
	// ModelIndex is how far the records are that routers are told of in their data model,
	// and the name of the line of time on which that counts.
	ModelIndex() (index uint64, timeline string)
	// Carried are the routers by each identity that they have lately named as connected to
	// them.
	Carried() map[string][]string
	// TogglePipes begins to tell of frames of this controller and of routers, or stops,
	// until ctx ends; it says to whom that applies, and reports whether all of them heed it.
	TogglePipes(ctx context.Context, asked Pipes) (said string, ok bool)
	// Inspect asks a router what it knows under names, until ctx ends.
	Inspect(ctx context.Context, routerID string, names []string) (Inspected, error)
}

// LinkChange is what is said of a link; what is nil stays as it is.
type LinkChange struct {
	StaticCost *int64
	Down       *bool
}

// Path is a way from its first router to its last; link i joins routers i and
// i+1.
type Path struct {
	Cost    int64
	Routers []string
	Links   []string
}

// Host is what a router says of a terminator.
type Host struct {
	Valid  bool
	Reason uint32 // by the numbers of the protocol
	Detail string
}

// Pipes is whose frames are to be told of, by the ids of routers and controllers and the
// names of their channels.
type Pipes struct {
	message.TogglePipes
	Apps, Pipes *regexp.Regexp
}

// Inspected is what a router says.
type Inspected struct {
	Values map[string]string // by name; most often JSON
	Errors []string
}
