package circuit

import (
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// Circuits of a network that was taken over were made by a controller whose ids do not say
// whose a circuit is. Its routers say it, with what they have counted; until then such a
// circuit goes on, since routers hear when a session is over that a client has shown them,
// and end what was made with it. Then it is one of a session that came along, or it ends.
const (
	// foreignFor is for how long after its start a controller lets such circuits go on that
	// it hears of.
	foreignFor = 30 * time.Minute
	// namedWithin is when a router has said whose a circuit is on which anything happens.
	// Routers count for a minute, and tell within two more.
	namedWithin = 4 * time.Minute
	// broughtFor is how long it is remembered whether there are sessions that came along.
	broughtFor = 10 * time.Second
)

// foreign is what is known of circuits of a controller that was before this one.
type foreign struct {
	since time.Time // when this one has started

	mu      sync.Mutex
	at      time.Time // when it was looked whether sessions came along
	brought bool
}

// strange makes a circuit of which nothing is known but its routers, if there are sessions
// which it may rest on.
func (c *Circuits) strange(id string) (*Circuit, bool) {
	now := c.Now()
	snap := c.Sessions.Timely(c.State.Snapshot())
	if now.Sub(c.foreign.since) > foreignFor || !c.foreign.any(snap, now) {
		return nil, false
	}
	circuit := &Circuit{Circuit: c.record(id, new(model.Session)), older: true, foreign: true}
	circuit.Ready = now
	return circuit, true
}

// any reports whether sessions have come along that somebody may have dialled with.
func (f *foreign) any(snap *state.Snapshot, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.at) < broughtFor {
		return f.brought
	}
	f.at, f.brought = now, false
	for s := range model.Sessions.All(snap) {
		if s.Brought != "" && s.Type == model.Dial {
			f.brought = true
			break
		}
	}
	return f.brought
}

// unnamed reports whether it is not known whose the circuit is.
func (c *Circuit) unnamed() bool { return c.foreign && c.SessionID == "" }

// Counted hears whose circuits are of which that is not known, from the routers where they
// begin. Those that are of no session end.
func (c *Circuits) Counted(routerID string, counted []message.Usage) {
	if c.Now().Sub(c.foreign.since) > foreignFor+namedWithin {
		return
	}
	for _, span := range counted {
		for id, bucket := range span.Buckets {
			_, in := bucket.Bytes["ingress.rx"]
			_, out := bucket.Bytes["ingress.tx"]
			circuit, known := c.table.get(id)
			if !known || !circuit.unnamed() || !circuit.involves(routerID) || !in && !out {
				continue
			}
			if !c.name(circuit, routerID, bucket.Tags) {
				c.Log.Info("a circuit is of no session that goes on", "circuit", id, "router", routerID)
				c.end(id, true)
			}
		}
	}
}

// name takes note whose a circuit is that begins at a router; it is false if they may not
// have it.
func (c *Circuits) name(circuit *Circuit, routerID string, tags map[string]string) bool {
	snap := c.Sessions.Timely(c.State.Snapshot())
	client, service, host := tags["clientId"], tags["serviceId"], tags["hostId"]
	dial, ok := c.broughtBy(snap, client, service, model.Dial)
	if !ok || !mayUse(snap, routerID, client, service) {
		return false
	}
	next := *circuit
	next.SessionID, next.IdentityID, next.ServiceID = dial.ID, client, service
	if hosts, is := model.Identities.Get(snap, host); is && hosts.Type != model.TypeRouter {
		bind, ok := c.broughtBy(snap, host, service, model.Bind)
		if !ok {
			return false
		}
		next.HostSessionID, next.HostID = bind.ID, host
	}
	c.table.replace(circuit, &next) // or another router has just told of it: it is named the next time
	return true
}

// broughtBy returns a session that came along, is good, and is somebody's for a service.
func (c *Circuits) broughtBy(snap *state.Snapshot, identityID, serviceID, typ string) (*model.Session, bool) {
	for s := range model.Sessions.Select(snap, "identityId", identityID) {
		if s.Brought != "" && s.Type == typ && s.ServiceID == serviceID && c.Sessions.Live(snap, s) {
			return s, true
		}
	}
	return nil, false
}

// EndUnnamed ends the circuits of which nobody can say whether they may go on, because what
// somebody may do has changed.
func (c *Circuits) EndUnnamed() {
	if c.Now().Sub(c.foreign.since) > foreignFor+namedWithin {
		return
	}
	for _, circuit := range c.table.all() {
		if circuit.unnamed() {
			c.Log.Info("a circuit ends of which it is not known whose it is, since what somebody may do has changed", "circuit", circuit.ID)
			c.end(circuit.ID, true)
		}
	}
}

// nameless looks at a circuit of another controller when it should have a name: it ends if
// it has none.
func (c *Circuits) nameless(circuit *Circuit) {
	age := c.Now().Sub(circuit.Ready)
	switch {
	case !circuit.unnamed():
	case age < namedWithin:
		c.moves.adopt(circuit.ID, c.Now().Add(namedWithin-doubtAfter-age))
	default:
		c.Log.Info("a circuit ends of which no router has said whose it is", "circuit", circuit.ID, "known", circuit.Path)
		c.end(circuit.ID, true)
	}
}
