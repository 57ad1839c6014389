package whereabouts

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/model"
)

// gather is how long changes are gathered after some were written.
const gather = 100 * time.Millisecond

// lookEvery is how often it is looked at whether there is another lease, under
// which everything has to be written again.
const lookEvery = time.Second

// Options of Notes.
type Options struct {
	// By is the controller that notes, and ID the id under which it answers.
	By, ID string
	// Lease is what notes hang on at present.
	Lease func() store.Lease
	// Here is what a router that is connected says of itself, and All is the ids of
	// those that are.
	Here func(routerID string) (*model.Presence, bool)
	All  func() []string
	Log  *slog.Logger
}

// Notes is what a controller notes of the routers that are at it.
type Notes struct {
	Options

	mu    sync.Mutex
	dirty map[string]struct{}
	wake  chan struct{}
	under store.Lease // that what was written hangs on; who writes has it
}

// NewNotes returns notes of which none is written.
func NewNotes(opt Options) *Notes {
	return &Notes{Options: opt, dirty: map[string]struct{}{}, wake: make(chan struct{}, 1)}
}

// Changed has others told of a router. It never waits.
func (n *Notes) Changed(routerIDs ...string) {
	n.mu.Lock()
	for _, id := range routerIDs {
		n.dirty[id] = struct{}{}
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default: // woken already
	}
}

// Write writes what changes, until ctx ends.
func (n *Notes) Write(ctx context.Context) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-n.wake:
		case <-look.C:
		case <-ctx.Done():
			return
		}
		wait := gather
		if err := n.write(ctx); err != nil {
			n.Log.Debug("other controllers were not told which routers are here; trying again", "error", err)
			wait = againAfter
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

func (n *Notes) write(ctx context.Context) error {
	lease := n.Lease()
	if lease != n.under {
		n.Changed(n.All()...) // what was written went with the lease before
		n.under = lease
	}
	n.mu.Lock()
	dirty := n.dirty
	n.dirty = map[string]struct{}{}
	n.mu.Unlock()
	if len(dirty) == 0 {
		return nil
	}
	ids := make([]string, 0, len(dirty))
	claims := make([]store.Claim, 0, len(dirty))
	for id := range dirty {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		c := store.Claim{Name: prefix + n.By + "/" + n.ID + "/" + id}
		if p, here := n.Here(id); here {
			text, err := json.Marshal(p)
			if err != nil {
				return err
			}
			c.Value = text
		}
		claims = append(claims, c)
	}
	err := lease.Note(ctx, claims...)
	if err != nil {
		n.Changed(ids...)
	}
	return err
}
