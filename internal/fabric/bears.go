package fabric

import (
	"context"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
)

// Whether a router lets clients in that log in by OpenID Connect, it shows when it asks for
// the data model, without which it knows no keys of their tokens. That is written down, so
// that every controller knows of every router whether clients may be told that they may.

// noteConnected writes down that a router may have lost that: it may run something else by
// now. One that goes on as it was asks again, or has its time for that.
func (f *Fabric) noteConnected(r *control.Router) {
	f.noteTakes(r, func(e *model.EdgeRouter) (bears, reports bool) {
		bears = e.TakesBearers && r.MayBear()
		return bears, bears && e.TakesReports && r.Grouped
	})
}

// noteModelled writes down that a router goes by the data model.
func (f *Fabric) noteModelled(r *control.Router) {
	if f.opt.Bearing > 0 && !r.Follows {
		f.noteTakes(r, func(*model.EdgeRouter) (bears, reports bool) { return r.MayBear(), r.MayBear() && r.Grouped })
	}
}

// noteWait is how long it may take to write that down.
const noteWait = 10 * time.Second

func (f *Fabric) noteTakes(r *control.Router, what func(*model.EdgeRouter) (bears, reports bool)) {
	differs := func(e *model.EdgeRouter) bool {
		bears, reports := what(e)
		return !e.TakesDigests && (e.TakesBearers != bears || e.TakesReports != reports)
	}
	if e, ok := model.EdgeRouters.Get(f.opt.State.Snapshot(), r.ID); !ok || !differs(e) {
		return
	}
	by := r.Author("takeBearers", new(wire.Frame))
	by.Source, _ = r.Met() // it may not be heard yet, and may be gone when that is written
	r.Go(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteWait)
		defer cancel()
		err := f.opt.State.Update(ctx, by, func(tx *state.Tx) error {
			return model.EdgeRouters.Edit(tx, r.ID, func(e *model.EdgeRouter) error {
				if differs(e) {
					e.TakesBearers, e.TakesReports = what(e)
				}
				return nil
			})
		})
		if err != nil {
			f.opt.Log.Warn("could not write down whether a router takes clients that log in by OpenID Connect; it is tried again when it asks for the data model", "router", r.ID, "error", err)
		}
	})
}
