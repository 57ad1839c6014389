package circuit

import (
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// Late ends the circuits of those whose time at the router is over where they enter,
// where that cannot be written. is what there is, and would what there would be.
func (c *Circuits) Late(is, would *state.Snapshot) {
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
