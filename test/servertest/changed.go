package servertest

import (
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// keptByItself are the kinds that the controller writes to without being asked.
var keptByItself = []*kind.Def{model.Controllers.Def, model.ControllerNames.Def, model.AuditChains.Def, model.AuditBlocks.Def, model.AuditOutlets.Def}

// Changed lists the kinds of which somebody has changed a record between two moments. What
// a controller writes by itself, of clients, sessions and itself, does not count.
func Changed(before, after *state.Snapshot) (names []string) {
	for _, d := range model.All.Defs {
		if d.Lane == kind.Model && !slices.Contains(keptByItself, d) && before.Edition(d) != after.Edition(d) {
			names = append(names, d.Name)
		}
	}
	return names
}
