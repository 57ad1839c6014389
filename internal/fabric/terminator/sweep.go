package terminator

import (
	"context"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// orphans is the terminators whose session is over, on their way out. Who
// notices never waits for the write.
type orphans struct {
	mu   sync.Mutex
	ids  []string
	wake chan struct{}
}

func (o *orphans) init() { o.wake = make(chan struct{}, 1) }

func (o *orphans) add(ids ...string) {
	if len(ids) == 0 {
		return
	}
	o.mu.Lock()
	o.ids = append(o.ids, ids...)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default: // woken already
	}
}

func (o *orphans) take(most int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(most, len(o.ids))
	taken := o.ids[:n:n]
	o.ids = o.ids[n:]
	return taken
}

// EndSession takes out the terminators that a session was used for, soon.
func (h *Hosts) EndSession(snap *state.Snapshot, sessionID string) {
	var ids []string
	for t := range model.Terminators.Select(snap, "sessionId", sessionID) {
		ids = append(ids, t.ID)
	}
	h.orphans.add(ids...)
}

// Review takes out every terminator whose session is over.
func (h *Hosts) Review(snap *state.Snapshot) {
	var ids []string
	for t := range model.Terminators.All(snap) {
		if orphaned(snap, t) {
			ids = append(ids, t.ID)
		}
	}
	h.orphans.add(ids...)
}

func orphaned(snap *state.Snapshot, t *model.Terminator) bool {
	if t.SessionID == "" {
		return false
	}
	_, there := model.Sessions.Get(snap, t.SessionID)
	return !there
}

// Sweep takes out terminators whose session is over, and asks routers about
// new ones, until ctx ends.
func (h *Hosts) Sweep(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.orphans.wake:
			h.bury(ctx)
		case <-tick.C:
			h.bury(ctx) // what failed before
			h.askDue()
			h.ledger.tidy(h.Now())
		}
	}
}

// bury takes orphans out, some at a time.
func (h *Hosts) bury(ctx context.Context) {
	for {
		ids := h.orphans.take(removedAtOnce)
		if len(ids) == 0 {
			return
		}
		err := h.State.Update(ctx, state.Program("terminators"), func(tx *state.Tx) error {
			for _, id := range ids {
				// A router may have had it written anew, with another session.
				t, ok := model.Terminators.Get(tx, id)
				if !ok || !orphaned(tx.Snapshot, t) {
					continue
				}
				if err := model.Terminators.Delete(tx, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			if ctx.Err() == nil {
				h.Log.Warn("terminators of sessions that are over could not be removed; it is tried again", "error", err)
			}
			h.orphans.add(ids...)
			return
		}
	}
}
