// Package seam is the seam between the controller and the control connections
// of its routers: what the rest of the program asks about them, and what it
// asks of them. It owns no connection and must not import rest or api.
package seam

import (
	"errors"

	"netkeep.internal/internal/model"
)

// Routers is the control connections of routers. Its methods may be called at
// any time, must not block, and but for Connected see a router as connected only
// to this controller.
type Routers interface {
	// Connected returns what a router says of itself that is connected to any of the
	// controllers.
	Connected(routerID string) (*model.Presence, bool)
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

// ErrAway says that a router is not connected.
var ErrAway = errors.New("the router is not connected to this controller")
