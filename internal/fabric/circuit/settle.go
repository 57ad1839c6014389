package circuit

import (
	"context"
	"errors"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// A controller that has just started, or has just begun to answer in the place of
// another, hears of routers and their links one after the other, and of what
// others have written a moment later than they. Who dials meanwhile waits.
const (
	// settleTime is how long a dial waits, and settleStep how often it looks.
	settleTime = 3 * time.Second
	settleStep = 50 * time.Millisecond
	// youngTime is how long a router that has connected may take to tell of its
	// links, or another router of those to it.
	youngTime = 5 * time.Second
)

// errUnheard says that a host is known by the word of other controllers alone.
var errUnheard = message.Busy("the controller has yet to hear of the router where the service is hosted")

// unsettled reports whether a dial failed because of what this controller is about
// to hear.
func (c *Circuits) unsettled(err error) bool {
	return c.Online != nil && (errors.Is(err, errUnheard) || errors.Is(err, errAway))
}

// unheard reports whether the service is hosted at a router that is there, and of
// which this controller has yet to hear how to reach it.
func (c *Circuits) unheard(snap *state.Snapshot, from *control.Router, want terminator.Want) bool {
	if c.Online == nil {
		return false
	}
	for t := range model.Terminators.Select(snap, "service", want.Service.ID) {
		if t.Identity != want.Host || want.Tried[t.ID] {
			continue
		}
		_, here := c.Routers.Get(t.RouterID)
		if here && (c.young(from.ID) || c.young(t.RouterID)) || !here && c.Online(t.RouterID) {
			return true
		}
	}
	return false
}

// young reports whether a router has connected just now.
func (c *Circuits) young(routerID string) bool {
	p, here := c.Routers.Connected(routerID)
	return here && c.Now().Sub(p.CreatedAt.Time()) < youngTime
}

// settle waits a moment; it is false if there is no time for that.
func settle(ctx context.Context) bool {
	defer control.Rest(ctx)()
	select {
	case <-time.After(settleStep):
		return true
	case <-ctx.Done():
		return false
	}
}
