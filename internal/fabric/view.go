package fabric

import (
	"context"

	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// View is the fabric as the rest of the program sees it.
func (f *Fabric) View() seam.Fabric {
	return view{kind.Sources{model.Presences.Def: f.Presences(), model.Links.Def: f.Links, model.Circuits.Def: f.Circuits.Source()}, f}
}

// view is a Fabric in the words of the seam.
type view struct {
	kind.Sources
	fabric *Fabric
}

// EndCircuit does not wait for what is on its way: a router would wait until
// nobody uses the circuit any more, and go on with one that is out of our hands.
func (v view) EndCircuit(id string) bool { return v.fabric.Circuits.End(id, true) }

func (v view) Path(from, to string) (seam.Path, bool) {
	p, ok := v.fabric.graph.Between(from, to)
	return seam.Path(p), ok
}

func (v view) Inspect(ctx context.Context, routerID string, names []string) (seam.Inspected, error) {
	r, ok := v.fabric.Get(routerID)
	if !ok {
		return seam.Inspected{}, seam.ErrAway
	}
	return r.InspectAll(ctx, names)
}
