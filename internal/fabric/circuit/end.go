package circuit

import (
	"strings"

	"netkeep/internal/data/state"
	"netkeep/internal/fabric/control"
	"netkeep/internal/fabric/message"
	"netkeep/internal/fabric/wire"
	"netkeep/internal/model"
)

// end forgets a circuit and tells the routers on its path. now says not to
// wait for what is on its way.
func (c *Circuits) end(id string, now bool) {
	circuit := c.table.remove(id)
	if circuit == nil {
		return
	}
	for _, routerID := range circuit.Path {
		r, connected := c.Routers.Get(routerID)
		if !connected {
			c.owed.add(routerID, id)
			continue
		}
		unroute(r, id, now)
	}
}

func unroute(r *control.Router, id string, now bool) {
	_ = r.Send(control.Message(message.TypeUnroute, &message.Unroute{CircuitID: id, Now: now}))
}

// EndSession ends the circuits that a session was used for, to dial or to
// host.
func (c *Circuits) EndSession(sessionID string) {
	for _, kind := range []int{bySession, byHost} {
		for _, id := range c.table.ids(kind, sessionID) {
			c.end(id, true)
		}
	}
}

// Review ends every circuit whose session is over.
func (c *Circuits) Review(snap *state.Snapshot) {
	for _, id := range c.table.keys() {
		if _, there := model.Sessions.Get(snap, id); !there {
			c.EndSession(id)
		}
	}
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

// maxFault is how many circuits one fault may name.
const maxFault = 10_000

// onFault hears that something ended.
func (c *Circuits) onFault(r *control.Router, _ *wire.Frame, m *message.Fault) {
	switch m.Subject {
	case message.FaultIngress, message.FaultEgress:
		// Usually both ends say so; the second finds nothing.
		if circuit, ok := c.table.get(m.ID); ok && circuit.involves(r.ID) {
			c.end(m.ID, false)
		}
	case message.FaultForward, message.FaultForwardUnknown:
		for n, id := range strings.Fields(m.ID) {
			if n == maxFault {
				return
			}
			switch circuit, ok := c.table.get(id); {
			case ok && circuit.involves(r.ID):
				c.end(id, true)
			case m.Subject == message.FaultForward:
				unroute(r, id, true)
			}
		}
	}
}

// onConfirmation answers a router that asks whether idle circuits are still
// wanted: those that nobody knows are not.
func (c *Circuits) onConfirmation(r *control.Router, _ *wire.Frame, m *message.CircuitConfirmation) {
	for _, id := range m.CircuitIDs {
		if circuit, ok := c.table.get(id); ok && circuit.involves(r.ID) {
			continue
		}
		if !c.adopt(r, id) {
			unroute(r, id, true)
		}
	}
}

// adopt takes on a circuit that is older than this controller, if the session
// in its id still is.
func (c *Circuits) adopt(r *control.Router, id string) bool {
	dial, host, ok := sessionsOf(id)
	if !ok {
		return false
	}
	snap := c.State.Snapshot()
	s, ok := model.Sessions.Get(snap, dial)
	if !ok || s.Type != model.Dial || !c.Sessions.Live(snap, s) {
		return false
	}
	circuit := &Circuit{
		ID: id, SessionID: dial, HostSessionID: host, ServiceID: s.ServiceID, IdentityID: s.IdentityID, Path: []string{r.ID}, Made: c.Now(),
	}
	if host != "" {
		hosting, ok := model.Sessions.Get(snap, host)
		if !ok || !c.Sessions.Live(snap, hosting) {
			return false
		}
		circuit.HostID = hosting.IdentityID
	}
	return c.table.add(circuit)
}
