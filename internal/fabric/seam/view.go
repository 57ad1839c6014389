package seam

import (
	"context"
	"time"
)

// Fabric is what connected routers make between them, and what can be asked of
// them. Like Routers it is what this controller sees.
type Fabric interface {
	// Links returns the links by id, and Link one of them.
	Links() []Link
	Link(id string) (Link, bool)
	// Circuits returns the circuits by id, and Circuit one of them.
	Circuits() []Circuit
	Circuit(id string) (Circuit, bool)
	// EndCircuit ends a circuit at once; it reports false if there is none with
	// the id.
	EndCircuit(id string) bool
	// Path is the cheapest way from one router to another; ok is false if there
	// is none.
	Path(from, to string) (p Path, ok bool)
	// Counts is how many links and circuits there are.
	Counts() (links, circuits int)
	// Inspect asks a router what it knows under names, until ctx ends.
	Inspect(ctx context.Context, routerID string, names []string) (Inspected, error)
}

// Link is a connection between two routers.
type Link struct {
	ID       string
	From, To string // routers; the first has dialled
	Protocol string
	Address  string // that was dialled
	// Iteration counts how often it was dialled.
	Iteration uint32
	// Latency is what each of both ends has measured last, 0 if nothing yet.
	Latency          [2]time.Duration
	Cost, StaticCost int64
	Since            time.Time
	// Usable says that both ends are connected to this controller, so that
	// circuits may be led over the link.
	Usable bool
	// Conns are the connections that it consists of; none if its router does not
	// say.
	Conns []Conn
}

// Conn is one of the connections of a link.
type Conn struct {
	Type   string `json:"type" doc:"What it carries, such as link.default or link.ack; single if it is the only one."`
	Source string `json:"source" doc:"Address of the router that has dialled."`
	Dest   string `json:"dest" doc:"Address of the router that was dialled."`
}

// Path is a way from its first router to its last; link i joins routers i and
// i+1.
type Path struct {
	Cost    int64
	Routers []string
	Links   []string
}

// Circuit is a connection from somebody who dials a service to a host of it.
type Circuit struct {
	ID           string
	SessionID    string // that it was dialled with
	TerminatorID string // empty for one that is older than this controller
	ServiceID    string
	IdentityID   string // who dialled
	HostID       string // who hosts
	Tags         map[string]string
	Path         Path
	Made, Moved  time.Time // Moved is zero if it still has its first path
}

// Inspected is what a router says.
type Inspected struct {
	Values map[string]string // by name; most often JSON
	Errors []string
}
