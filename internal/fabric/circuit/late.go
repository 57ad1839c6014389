package circuit

import (
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// Late ends the circuits that rest on something whose time is over, where that
// cannot be written: the sessions themselves are taken when it can. is what there
// is, and would what there would be. parting is told of each session first.
func (c *Circuits) Late(is, would *state.Snapshot, parting func(*model.Session)) {
	for _, id := range c.table.sessions() {
		if s, there := model.Sessions.Get(is, id); there && !c.Sessions.Live(would, s) {
			parting(s)
			c.EndSession(s.ID, s.Plain)
		}
	}
	for _, circuit := range c.table.all() {
		if len(circuit.Path) == 0 {
			continue
		}
		if mayEnter(is, circuit.first(), circuit.IdentityID) && !mayEnter(would, circuit.first(), circuit.IdentityID) {
			c.end(circuit.ID, true)
		}
	}
}

// mayEnter reports whether an identity may connect to a router.
func mayEnter(snap *state.Snapshot, routerID, identityID string) bool {
	ord, known := snap.Ordinal(model.EdgeRouters.Def, routerID)
	return known && access.EdgeRouters(snap, identityID).Contains(ord)
}
