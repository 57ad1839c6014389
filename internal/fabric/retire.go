package fabric

import (
	"context"
	"log/slog"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// registerRetire has routers take themselves out of use, and back in.
func (f *Fabric) registerRetire() {
	quiesce := func(quiesced bool) func(tx *state.Tx, r *control.Router) error {
		return func(tx *state.Tx, r *control.Router) error {
			return model.Routers.Edit(tx, r.ID, func(record *model.Router) error {
				record.Quiesced = quiesced
				return nil
			})
		}
	}
	f.Handle(message.TypeQuiesce, f.retire("quiesceRouter", "no new circuits end at the router while there is another way", quiesce(true)))
	f.Handle(message.TypeDequiesce, f.retire("dequiesceRouter", "circuits may end at the router again", quiesce(false)))
	// Its connection ends with its record.
	f.Handle(message.TypeDecommission, f.retire("decommissionRouter", "the router is deleted", func(tx *state.Tx, r *control.Router) error {
		if r.Edge {
			return model.EdgeRouters.Delete(tx, r.ID)
		}
		return model.Routers.Delete(tx, r.ID)
	}))
}

// retireWait is how long such a write may take.
const retireWait = 10 * time.Second

// retire answers a router that asks for a change of its own record, which no
// other can: what it is the record of is said by its certificate. The change is
// made even if the router has gone meanwhile.
func (f *Fabric) retire(operation, done string, change func(tx *state.Tx, r *control.Router) error) func(*control.Router, *wire.Frame) {
	return func(r *control.Router, frame *wire.Frame) {
		if !r.Changes() {
			r.Result(frame, false, "the router changes itself again and again; wait a minute")
			return
		}
		started := r.For(frame, func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retireWait)
			defer cancel()
			err := f.opt.State.Update(ctx, r.Author(operation, frame), func(tx *state.Tx) error { return change(tx, r) })
			if err != nil {
				r.Say(slog.LevelWarn, "a router's own change of itself failed", "operation", operation, "error", err)
				r.Result(frame, false, "try again")
				return
			}
			r.Say(slog.LevelInfo, "a router changed itself", "name", r.Name, "operation", operation)
			r.Result(frame, true, done)
		})
		if !started {
			r.Result(frame, false, "the router asks for too much at once; try again")
		}
	}
}
