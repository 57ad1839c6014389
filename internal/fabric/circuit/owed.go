package circuit

import (
	"sync"

	"netkeep.internal/internal/fabric/control"
)

// owed is the circuits that ended while their router was away. It is told when
// it comes back: what was taken away must not go on because of a broken
// connection.
type owed struct {
	mu sync.Mutex
	by map[string][]string // circuits by router
}

// maxOwed is how many circuits are remembered for one router. One that is away
// for so long asks for idle ones itself.
const maxOwed = 100_000

func (o *owed) add(routerID, circuitID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.by == nil {
		o.by = map[string][]string{}
	}
	if len(o.by[routerID]) < maxOwed {
		o.by[routerID] = append(o.by[routerID], circuitID)
	}
}

func (o *owed) take(routerID string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	ids := o.by[routerID]
	delete(o.by, routerID)
	return ids
}

// onJoined tells a router what ended while it was away, and asks what it has.
func (c *Circuits) onJoined(r *control.Router) {
	for _, id := range c.owed.take(r.ID) {
		unroute(r, id, true)
	}
	c.learn(r)
}
