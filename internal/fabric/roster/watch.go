package roster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/store"
)

// Online reports whether a controller is there itself.
func (r *Roster) Online(id string) bool {
	if id == r.id {
		return true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.answers[id].By == id
}

// Mine reports whether it is this controller, of those that are there, that
// something falls to which one of them must see to. What falls to a controller
// that goes is divided among the others; the rest stays where it is.
func (r *Roster) Mine(what string) bool {
	own := weight(r.id, what)
	r.mu.RLock()
	defer r.mu.RUnlock()
	for id, h := range r.answers {
		if id != r.id && h.By == id && bytes.Compare(weight(id, what), own) > 0 {
			return false
		}
	}
	return true
}

// Tells reports whether it is under this id that a router hears what only one
// controller tells it. Unlike what Mine divides it stays with an id in whose place
// somebody is, or is about to be: routers hold on to it.
func (r *Roster) Tells(id, routerID string) bool {
	own := weight(id, routerID)
	r.mu.RLock()
	defer r.mu.RUnlock()
	for other := range r.counted {
		if other != id && bytes.Compare(weight(other, routerID), own) > 0 {
			return false
		}
	}
	return true
}

// weight is how much a controller is for something; the heaviest does it.
func weight(id, what string) []byte {
	sum := sha256.Sum256([]byte(id + "/" + what))
	return sum[:]
}

// Run follows who is there, stays there itself, and stands in for others that are
// not, until ctx ends.
func (r *Roster) Run(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { r.watch(ctx, idPrefix, r.see) })
	if !r.Alone() {
		parts.Go(func() { r.watch(ctx, askPrefix, func(claims []store.Claim, _ bool) { r.hear(ctx, &parts, claims) }) })
		parts.Go(func() { r.care(ctx) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.Lease().Lost():
		}
		// Nobody else can take the place of the only one.
		list, _ := List(r.opt.State.Snapshot())
		others := len(list) > 1 || r.Behind()
		if others && !r.Behind() {
			r.opt.Log.Warn("the store has not heard of this controller for too long: routers are led to others until it does", "controller", r.id)
			r.opt.Lost()
		}
		if !r.comeBack(ctx) {
			return
		}
		if others {
			r.opt.Log.Info("this controller takes part again", "controller", r.id)
			r.opt.Found()
		}
		r.comesBack(ctx)
	}
}

// comeBack claims the id again; it is false when ctx ends before.
func (r *Roster) comeBack(ctx context.Context) bool {
	for {
		err := r.claim(ctx, true)
		if err == nil {
			return true
		}
		var taken *TakenError
		if errors.As(err, &taken) {
			r.opt.Log.Warn("somebody else answers under the id of this controller", "controller", r.id, "address", taken.Address)
		}
		if !pause(ctx, againAfter) {
			return false
		}
	}
}

// comesBack brings the record of this controller up to date.
func (r *Roster) comesBack(ctx context.Context) {
	for r.Behind() {
		if err := r.write(ctx); err != nil {
			r.opt.Log.Warn("the record of this controller could not be written; trying again", "error", err)
			if !pause(ctx, againAfter) {
				return
			}
			continue
		}
		r.mu.Lock()
		r.behind = false
		r.mu.Unlock()
	}
	r.leadBack(ctx)
}

// pause waits; it is false when ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// watch follows claims.
func (r *Roster) watch(ctx context.Context, prefix string, see func(claims []store.Claim, whole bool)) {
	for ctx.Err() == nil {
		_ = r.opt.Claims.FollowClaims(ctx, prefix, func(claims []store.Claim, whole bool) error {
			see(claims, whole)
			return nil
		})
		pause(ctx, againAfter)
	}
}

// see takes note of claims of ids.
func (r *Roster) see(claims []store.Claim, whole bool) {
	r.mu.Lock()
	before := maps.Clone(r.answers)
	if whole {
		r.answers, r.wanted, r.known = map[string]holder{}, map[string]bool{}, true
	}
	for _, c := range claims {
		id, wants := strings.CutSuffix(strings.TrimPrefix(c.Name, idPrefix), wantedSuffix)
		var h holder
		switch {
		case wants && c.Value == nil:
			delete(r.wanted, id)
		case wants:
			r.wanted[id] = true
		case c.Value == nil || json.Unmarshal(c.Value, &h) != nil:
			delete(r.answers, id)
		default:
			r.answers[id] = h
		}
	}
	after := maps.Clone(r.answers)
	r.wake()
	r.mu.Unlock()
	r.tell(before, after)
	r.count()
}

// wake has those look again who wait for a change. The caller has the mutex.
func (r *Roster) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// changes is closed at the next change.
func (r *Roster) changes() <-chan struct{} {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.changed
}

// tell says who has come and gone.
func (r *Roster) tell(before, after map[string]holder) {
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[id]; !there && id != r.id {
			r.opt.Log.Warn("a controller is gone", "controller", id, "address", before[id].Address)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(after)) {
		if was, there := before[id]; id == r.id || there && was == after[id] {
			continue
		}
		if by := after[id].standIn(id); by != "" {
			r.opt.Log.Warn("a controller answers in the place of another", "controller", by, "for", id, "address", after[id].Address)
			continue
		}
		r.opt.Log.Info("a controller is there", "controller", id, "address", after[id].Address)
	}
}
