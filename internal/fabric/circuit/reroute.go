package circuit

import (
	"context"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

const (
	// movers is how many circuits are led over other paths at a time: enough
	// that those of a lost link are done in a moment, and few enough that no
	// router gets more than it can take.
	movers = 64
	// strandedFor is how long a circuit without a path waits for one. Links
	// that break are most often made again at once.
	strandedFor = 15 * time.Second
	// moveAttempt is the number that routers know a circuit on another path by.
	moveAttempt = 99969996
	// moveTries is how often another path is tried.
	moveTries = 3
	// moveWait is how long routers have to make one.
	moveWait = 10 * time.Second
	// doubtAfter is when routers have told of their links that have come back
	// to a controller that restarted.
	doubtAfter = 10 * time.Second
	// partFor is how long a circuit may lack an end that is older than this
	// controller: the router that has it may come back later than others.
	partFor = 22 * time.Second
	// moveAgain is the least time between two moves that a router asks for.
	moveAgain = time.Second
)

// LinksLost leads circuits over other links than those.
func (c *Circuits) LinksLost(ids []string) {
	for _, id := range ids {
		moved := func(circuit *Circuit) bool { return !slices.Contains(circuit.Links, id) }
		c.moves.add(moved, c.table.ids(byLink, id)...)
	}
}

// PathsFound looks again for paths of circuits that have none.
func (c *Circuits) PathsFound() {
	found := func(circuit *Circuit) bool { return !c.moves.isStranded(circuit.ID) }
	c.moves.add(found, c.moves.waiting()...)
}

// doubt looks at circuits that are older than this controller. By now routers
// have told of their links, and what is not among them is lost.
func (c *Circuits) doubt() {
	sound := func(circuit *Circuit) bool {
		return circuit.whole() && !slices.ContainsFunc(circuit.Links, func(id string) bool { return !c.LinkKnown(id) })
	}
	for _, id := range c.moves.doubtful(c.Now().Add(-doubtAfter)) {
		circuit, ok := c.table.get(id)
		switch {
		case !ok:
		case circuit.foreign:
			c.nameless(circuit)
		case circuit.movable():
			c.moves.add(sound, id)
		case c.Now().Sub(circuit.Ready) < partFor:
			c.moves.adopt(id, c.Now().Add(partFor-doubtAfter-c.Now().Sub(circuit.Ready)))
		default:
			c.Log.Info("a circuit has lost one of its ends", "circuit", id, "known", circuit.Path)
			c.end(id, true)
		}
	}
}

// RouterGone ends the circuits that begin or end at a router which is in the
// network no more, and leads others around it.
func (c *Circuits) RouterGone(routerID string) {
	for _, id := range c.table.ids(byRouter, routerID) {
		circuit, ok := c.table.get(id)
		switch {
		case !ok:
		case !circuit.movable() || circuit.first() == routerID || circuit.last() == routerID:
			c.end(id, true)
		default:
			passed := func(circuit *Circuit) bool { return !circuit.involves(routerID) }
			c.moves.add(passed, id)
		}
	}
}

// Run moves circuits until ctx ends.
func (c *Circuits) Run(ctx context.Context) {
	var all sync.WaitGroup
	for range movers {
		all.Go(func() { c.move(ctx) })
	}
	again := time.NewTicker(strandedFor / 5)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			c.PathsFound()
			c.doubt()
		case <-ctx.Done():
			all.Wait()
			return
		}
	}
}

// move moves circuits as long as there are some to move.
func (c *Circuits) move(ctx context.Context) {
	for {
		select {
		case <-c.moves.wake:
		case <-ctx.Done():
			return
		}
		for {
			next, ok := c.moves.take()
			if !ok || ctx.Err() != nil {
				break
			}
			if circuit, ok := c.table.get(next.circuit); ok && (next.unless == nil || !next.unless(circuit)) {
				c.reroute(ctx, next.circuit)
			}
		}
	}
}

// reroute leads a circuit over the best path that there is now. It goes on
// where both of its ends are.
func (c *Circuits) reroute(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, moveWait)
	defer cancel()
	for try := 1; ; try++ {
		old, ok := c.table.get(id)
		if !ok || !old.movable() {
			return
		}
		p, ok := c.Graph.Between(old.first(), old.last())
		if !ok {
			if now := c.Now(); now.Sub(c.moves.strand(id, now)) >= strandedFor {
				c.Log.Info("a circuit has no path any more", "circuit", id, "from", old.first(), "to", old.last())
				c.end(id, true)
			}
			return
		}
		c.moves.landed(id)
		next := old.over(p, c.Now())
		if !c.table.replace(old, next) {
			continue // somebody else was faster
		}
		_, err := c.instruct(ctx, next, nil, moveAttempt)
		c.correct(old, next)
		if err == nil {
			c.moved.Add(1)
			return
		}
		c.Log.Debug("a circuit could not be led over another path", "circuit", id, "error", err)
		if try == moveTries || ctx.Err() != nil {
			c.end(id, true)
			return
		}
	}
}

// correct sees to it that routers which were told to carry a circuit, one way after
// the other, do what holds now. While they were told, it may have ended or been led
// elsewhere, and they may have heard of that first.
func (c *Circuits) correct(told ...*Circuit) {
	id := told[0].ID
	now, goesOn := c.table.get(id)
	for _, was := range told {
		for _, routerID := range was.Path {
			if !goesOn || !now.involves(routerID) {
				c.unroute(routerID, id, true)
			}
		}
	}
	if last := told[len(told)-1]; goesOn && !slices.Equal(last.Links, now.Links) {
		c.moves.add(nil, id)
	}
}

// onForwardFault hears that a router could not pass something on. If it has
// only forgotten how, it is told again.
func (c *Circuits) onForwardFault(circuit *Circuit) {
	switch {
	case !circuit.movable():
	case circuit.whole() && len(circuit.Path) == 1:
		c.end(circuit.ID, true)
	case c.Now().Sub(circuit.Moved) >= moveAgain:
		c.moves.add(nil, circuit.ID)
	}
}

// Review ends every circuit whose session is over, or whose router is in the
// network no more.
func (c *Circuits) Review(snap *state.Snapshot) {
	for _, id := range c.table.sessions() {
		if _, there := model.Sessions.Get(snap, id); !there {
			c.EndSession(id, false)
		}
	}
	gone := map[string]bool{}
	for _, circuit := range c.table.all() {
		for _, id := range circuit.Path {
			if r, there := model.Routers.Get(snap, id); !there || r.Disabled {
				gone[id] = true
			}
		}
	}
	for id := range gone {
		c.RouterGone(id)
	}
}

// instruct tells every router on a circuit's path its part, and returns what
// the last of them hears from the host.
func (c *Circuits) instruct(ctx context.Context, circuit *Circuit, egress *message.Egress, attempt uint32) (map[uint32][]byte, error) {
	deadline, _ := ctx.Deadline()
	results := make([]result, len(circuit.Path))
	var all sync.WaitGroup
	for place := range circuit.Path {
		route := &message.Route{
			CircuitID: circuit.ID, Attempt: attempt, Timeout: uint64(max(0, deadline.Sub(c.Now()))), Tags: circuit.Marks(),
			Forwards: circuit.forwards(place),
		}
		if place == len(circuit.Path)-1 {
			route.Egress = egress
		}
		all.Go(func() { results[place] = c.ask(ctx, circuit.Path[place], route) })
	}
	resume := control.Rest(ctx)
	all.Wait()
	resume()
	// What the host says counts for more than that a router on the way has
	// also failed.
	slices.Reverse(results)
	for _, r := range results {
		if r.err != nil {
			return nil, r.err
		}
	}
	return results[0].peerData, nil
}
