package circuit

import (
	"context"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// end forgets a circuit and tells the routers on its path. now says not to
// wait for what is on its way.
func (c *Circuits) end(id string, now bool) bool {
	circuit := c.table.remove(id)
	if circuit == nil {
		return false
	}
	c.Ended(circuit)
	if circuit.older || !circuit.Ready.IsZero() { // or it never was
		c.tell("ended", "", circuit, herald.Event{})
	}
	for _, routerID := range circuit.Path {
		c.unroute(routerID, id, now)
	}
	c.moves.forget(id)
	return true
}

// unroute tells a router that a circuit is over, now or when it is back.
func (c *Circuits) unroute(routerID, id string, now bool) {
	r, connected := c.Routers.Get(routerID)
	if !connected {
		c.owed.add(routerID, id)
		return
	}
	unroute(r, id, now)
}

func unroute(r *control.Router, id string, now bool) {
	_ = r.Send(control.Message(message.TypeUnroute, &message.Unroute{CircuitID: id, Now: now}))
}

// parting is how long routers that linger have to end the connections of a session
// that is over, which they do at once, before they are told to drop its circuits,
// after which neither end would hear of it for long.
const parting = time.Second

// EndSession ends the circuits that a session was used for, to dial or to
// host. parted is whether routers have been told that it is over in a way that
// makes those that linger end its connections.
func (c *Circuits) EndSession(sessionID string, parted bool) {
	for _, kind := range []int{bySession, byHost} {
		for _, id := range c.table.ids(kind, sessionID) {
			// A service that goes takes both sessions along, in any order.
			if circuit, ok := c.table.get(id); ok && parted && c.lingers(circuit) {
				time.AfterFunc(parting, func() { c.end(id, true) })
				continue
			}
			c.end(id, true)
		}
	}
}

// lingers reports whether a router on the path does, as far as is known.
func (c *Circuits) lingers(circuit *Circuit) bool {
	return slices.ContainsFunc(circuit.Path, func(id string) bool {
		r, connected := c.Routers.Get(id)
		return connected && r.Lingers
	})
}

// onLateResult hears of a circuit that nobody waits for any more.
func (c *Circuits) onLateResult(r *control.Router, f *wire.Frame) {
	id := string(f.Body)
	if _, success := f.Headers[message.HeaderRouteSuccess]; !success {
		return
	}
	if circuit, ok := c.table.get(id); !ok || !circuit.involves(r.ID) {
		unroute(r, id, true)
	}
}

// over ends a circuit that a router says is over, if it is one of its own. Usually
// both ends say so; the second finds nothing.
func (c *Circuits) over(r *control.Router, id string) bool {
	circuit, ok := c.table.get(id)
	return ok && circuit.involves(r.ID) && c.end(id, false)
}

// maxFault is how many circuits one fault may name.
const maxFault = 10_000

// onFault hears that something ended.
func (c *Circuits) onFault(r *control.Router, _ *wire.Frame, m *message.Fault) {
	switch m.Subject {
	case message.FaultIngress, message.FaultEgress:
		if !c.over(r, m.ID) {
			c.known.ended(r, m.ID)
		}
	case message.FaultForward, message.FaultForwardUnknown:
		var strange []string
		for n, id := range strings.Fields(m.ID) {
			if n == maxFault {
				break
			}
			switch circuit, ok := c.table.get(id); {
			case ok && circuit.involves(r.ID):
				c.onForwardFault(circuit)
			case m.Subject == message.FaultForward:
				strange = append(strange, id)
			}
		}
		c.place(r, strange)
	case message.FaultLink, message.FaultDuplicateLink:
		c.LinkFault(r, m)
	}
}

// onConfirmation answers a router that asks whether idle circuits are still
// wanted. They are no more if nobody holds their ends.
func (c *Circuits) onConfirmation(r *control.Router, _ *wire.Frame, m *message.CircuitConfirmation) {
	var strange, idle []string
	for _, id := range m.CircuitIDs {
		switch circuit, known := c.table.get(id); {
		case !known || !circuit.involves(r.ID):
			strange = append(strange, id)
		case circuit.foreign:
			if time.Duration(m.Idle[id]) >= idleFor { // nobody knows its ends, to ask for them
				c.end(id, true)
			}
		case time.Duration(m.Idle[id]) >= idleFor:
			idle = append(idle, id)
		}
	}
	c.place(r, strange)
	if len(idle) > 0 && !r.Follows {
		r.Go(func(ctx context.Context) { c.seek(ctx, r, idle) })
	}
}

// place deals with circuits that a router has and, as far as is known here,
// should not have. They end, except while the router has yet to say which it
// carries that are older than this controller.
func (c *Circuits) place(r *control.Router, ids []string) {
	if !c.known.has(r) {
		c.learn(r)
		return
	}
	for _, id := range ids {
		if circuit, known := c.table.get(id); !known || circuit.whole() {
			unroute(r, id, true)
		}
	}
}
