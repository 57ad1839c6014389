package circuit

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
)

// strayTime is how long the controller that has made a circuit has to end it, and a
// router to end a connection, when the session is over. Whoever else is there ends it
// then: the controller may be gone, which takes longer to find out.
const strayTime = 400 * time.Millisecond

// strays is the sessions that are over, of which other controllers may have made
// circuits.
type strays struct {
	mu    sync.Mutex
	ended map[string]string // whose they were, by session
}

// EndStrays ends the circuits that other controllers have made with a session which
// is over, if they do not. Routers of our own have ended its connections by then, and
// so have those of others, unless a client holds the flow of one; and only clients that
// are connected have any.
func (c *Circuits) EndStrays(s *model.Session) {
	if c.Online == nil || len(c.Routers.Carriers(s.IdentityID)) == 0 {
		return
	}
	c.strays.mu.Lock()
	defer c.strays.mu.Unlock()
	if c.strays.ended == nil {
		c.strays.ended = map[string]string{}
		time.AfterFunc(strayTime, c.endStrays)
	}
	c.strays.ended[s.ID] = s.IdentityID
}

// endStrays looks for them at the routers that have the clients.
func (c *Circuits) endStrays() {
	c.strays.mu.Lock()
	ended := c.strays.ended
	c.strays.ended = nil
	c.strays.mu.Unlock()
	at := map[*control.Router]struct{}{}
	for _, identityID := range slices.Compact(slices.Sorted(maps.Values(ended))) {
		for _, r := range c.Routers.Carriers(identityID) {
			at[r] = struct{}{}
		}
	}
	for r := range at {
		if r.Follows { // one of ours
			continue
		}
		r.Go(func(ctx context.Context) {
			all, err := c.inspected(ctx, r)
			if err != nil {
				return // the one who made it ends it, or whoever is in its place
			}
			for id, circuit := range all {
				dial, host, named := sessionsOf(id)
				_, over := ended[dial]
				if _, also := ended[host]; named && (over || also) && circuit.Owner != c.Controller {
					unroute(r, id, true)
				}
			}
		})
	}
}
