// Package seam is the seam between the controller and the control connections
// of its routers: what the rest of the program asks about them, and what it
// asks of them. It owns no connection and must not import rest or api.
package seam

import (
	"errors"

	"netkeep.internal/internal/model"
)

// Routers is the control connections of routers. Its methods may be called at
// any time, must not block, and see a router as connected only to this
// controller.
type Routers interface {
	// Connected returns what a connected router says of itself.
	Connected(routerID string) (Router, bool)
	// Carries reports whether a router has lately named the identity as
	// connected to it.
	Carries(identityID string) bool
	// Distance is what the cheapest path from one router to another costs; ok
	// is false if there is none.
	Distance(from, to string) (cost int64, ok bool)
	// DynamicCost is what a terminator costs more at present because circuits
	// could not end at it.
	DynamicCost(t *model.Terminator) int
	// Drop ends a router's connection, if it has one, unless it is there with
	// the certificate of this fingerprint, which is the only one that is good.
	Drop(routerID, except string)
}

// Router is what a connected router says of itself.
type Router struct {
	Hostname string
	// Listeners are where clients reach it: URLs by protocol, such as
	// tls://router.example.com:3022 for tls.
	Listeners map[string]string
	Sync      SyncStatus
	Version   Version
	// Links is where other routers reach it.
	Links []Address
}

// Address is where a router listens for others.
type Address struct {
	Address  string `json:"address" doc:"Where it listens, such as tls:router.example.com:6262."`
	Protocol string `json:"protocol" doc:"What is spoken there."`
}

// Version is what a router runs.
type Version struct {
	Version   string `json:"version" doc:"Version of the router; empty while it is not connected."`
	Revision  string `json:"revision" doc:"Commit from which the router was built."`
	BuildDate string `json:"buildDate" doc:"When the router was built."`
	OS        string `json:"os" doc:"Operating system that the router runs on."`
	Arch      string `json:"arch" doc:"Architecture of the processor that it runs on."`
}

// SyncStatus is how far a router has come with learning what it needs to know.
type SyncStatus string

// What is said of routers that are connected and up to date, and of those
// that are not connected.
const (
	SyncNew     SyncStatus = "SYNC_NEW"
	SyncHello   SyncStatus = "SYNC_HELLO_WAIT"
	Syncing     SyncStatus = "SYNC_IN_PROGRESS"
	SyncDone    SyncStatus = "SYNC_DONE"
	SyncUnknown SyncStatus = "SYNC_UNKNOWN"
)

// ErrAway says that a router is not connected.
var ErrAway = errors.New("the router is not connected to this controller")
