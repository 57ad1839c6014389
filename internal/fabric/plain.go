package fabric

import (
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/whereabouts"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// Plain reports whether an identity's session for a service gets a token that
// routers cannot read: one of those that it may use would not end its connections
// otherwise, and none has to read it.
func (f *Fabric) Plain(snap *state.Snapshot, identityID, serviceID string) bool {
	var usable *cow.Bitmap
	may := func(routerID string) bool {
		if usable == nil {
			usable = access.CommonRouters(snap, identityID, serviceID)
		}
		ord, known := snap.Ordinal(model.EdgeRouters.Def, routerID)
		return known && usable.Contains(ord)
	}
	var lingers bool
	for _, r := range f.All() {
		if (r.Lingers || r.Grouped) && may(r.ID) {
			if r.Grouped {
				return false
			}
			lingers = true
		}
	}
	if f.opt.Book == nil {
		return lingers
	}
	// A controller that has just started has not got all of them yet.
	for _, id := range f.opt.Book.Routers() {
		if _, here := f.Get(id); here {
			continue
		}
		p, there := whereabouts.Oldest(f.opt.Book.Of(id))
		if !there {
			continue
		}
		if lingering, second := control.Generation(p.Version.Version); (lingering || second) && may(id) {
			if second {
				return false
			}
			lingers = true
		}
	}
	return lingers
}
