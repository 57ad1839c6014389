package roster

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/model"
)

const (
	// lookEvery is how often it is looked at who is missing.
	lookEvery = 250 * time.Millisecond
	// standStep is how much longer each controller waits before it stands in for
	// another than the one that is the next before it.
	standStep = time.Second
	// standWait is how long what a controller told routers waits for somebody to
	// take its place, before the others divide it.
	standWait = 5 * time.Second
	// leaveWait is how long routers have to leave the reserve address, and who is back
	// to lead them away.
	leaveWait = 5 * time.Second
	// leaveOutAfter is how long routers are told of a controller that is gone and in
	// whose place nobody is. Some of what they do waits for it meanwhile.
	leaveOutAfter = time.Minute
)

// care sees to controllers that are gone, until ctx ends.
func (r *Roster) care(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var parts sync.WaitGroup
	defer parts.Wait()
	for {
		changes := r.changes()
		list := r.count()
		if _, listed := model.Controllers.Get(r.opt.State.Snapshot(), r.id); !listed && !r.Behind() {
			r.opt.Removed()
		}
		for _, c := range list {
			r.miss(ctx, &parts, list, c)
		}
		r.leadBack(ctx) // somebody who was late may have led routers away
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-changes:
		}
	}
}

// count brings up to date who is missing, and which ids routers are divided among.
func (r *Roster) count() []*model.Controller {
	list, _ := List(r.opt.State.Snapshot())
	now := r.opt.Now()
	r.mu.Lock()
	if !r.known {
		r.mu.Unlock()
		return nil
	}
	gone, counted := map[string]time.Time{}, map[string]bool{r.id: true}
	for id := range r.answers {
		counted[id] = true
	}
	for _, c := range list {
		if _, there := r.answers[c.ID]; there || c.ID == r.id {
			continue
		}
		since, was := r.gone[c.ID]
		if !was {
			since = now
		}
		gone[c.ID] = since
		expected := slices.ContainsFunc(list, func(other *model.Controller) bool { return other.ID != c.ID && other.Reserve != "" })
		if r.wanted[c.ID] || expected && now.Sub(since) < standWait {
			counted[c.ID] = true
		}
	}
	same := maps.Equal(counted, r.counted)
	r.gone, r.counted = gone, counted
	r.mu.Unlock()
	if !same {
		r.opt.Changed()
	}
	return list
}

// miss does what is due about a controller that is gone.
func (r *Roster) miss(ctx context.Context, parts *sync.WaitGroup, list []*model.Controller, c *model.Controller) {
	r.mu.Lock()
	since, gone := r.gone[c.ID]
	gone = gone && !r.wanted[c.ID]
	away := r.opt.Now().Sub(since)
	place := r.place(list, c.ID)
	stands := gone && place >= 0 && away >= time.Duration(place)*standStep
	if stands {
		r.standing = c.ID
	}
	r.mu.Unlock()
	switch {
	case stands:
		parts.Go(func() {
			r.standIn(ctx, c.ID)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.standing = ""
		})
	case gone && away >= leaveOutAfter && c.LeftOutAt.IsZero() && r.Mine("leave out "+c.ID):
		r.leaveOut(ctx, c.ID)
	}
}

// place is how many others are to stand in for a controller before this one; less
// than 0 if this one cannot. The caller has the mutex.
func (r *Roster) place(list []*model.Controller, id string) int {
	busy := map[string]bool{}
	for other, h := range r.answers {
		if h.By != other {
			busy[h.By] = true
		}
	}
	place, can := 0, false
	for _, c := range list {
		switch {
		case c.Reserve == "" || c.ID == id || busy[c.ID]:
		case c.ID == r.id:
			can = r.standing == ""
		case r.answers[c.ID].By == c.ID && bytes.Compare(weight(c.ID, id), weight(r.id, id)) > 0:
			place++
		}
	}
	if !can {
		return -1
	}
	return place
}

// standIn answers in the place of a controller until that is back or removed.
func (r *Roster) standIn(ctx context.Context, id string) {
	lease, err := r.opt.Claims.Lease(ctx, leaseLife)
	if err != nil {
		return // it is tried again
	}
	defer func() { _ = lease.Close() }() // a store that cannot be told finds out by itself
	at := r.opt.Self().Reserve
	value, err := json.Marshal(holder{By: r.id, Address: at})
	if err != nil {
		return
	}
	if _, err := lease.Claim(ctx, idPrefix+id, value, 0); err != nil {
		if !errors.Is(err, store.ErrHeld) { // by one that was quicker
			r.opt.Log.Debug("a controller that is gone could not be stood in for; trying again", "controller", id, "error", err)
		}
		return
	}
	r.opt.Log.Warn("this controller answers in the place of one that is gone", "for", id, "address", at)
	here := r.opt.StandIn(id, lease)
	r.keepPlace(ctx, id, at, lease, here.Routers)
	here.Stop() // before anybody else may have the id, but for the one whose it is
	r.opt.Log.Info("this controller answers no more in the place of another", "for", id)
}

// keepPlace leads routers to the reserve address, and returns when that is over:
// when the place is wanted back, once they have left.
func (r *Roster) keepPlace(ctx context.Context, id, at string, lease store.Lease, routers func() int) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	led := false
	for {
		changes := r.changes()
		_, there := model.Controllers.Get(r.opt.State.Snapshot(), id)
		if !there {
			return
		}
		if r.wants(id) {
			r.giveBack(ctx, lease, routers)
			return
		}
		if !led {
			led = r.lead(ctx, id, at) == nil
		}
		select {
		case <-lease.Lost():
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-changes:
		}
	}
}

// giveBack gives a controller its id back, and stays until routers have left. The
// controller leads them to itself as soon as it answers, so that each is without an
// answer only while it connects. They leave by themselves: one of the first generation
// dials an address for ever at which it was left, also when another is answered for
// there.
func (r *Roster) giveBack(ctx context.Context, lease store.Lease, routers func() int) {
	if err := lease.Close(); err != nil {
		return // the store finds out by itself, and until then nobody may have the id
	}
	late := time.After(leaveWait)
	for routers() > 0 {
		select {
		case <-late:
			return
		case <-ctx.Done():
			return
		case <-time.After(soonAfter):
		}
	}
}

// wants reports whether a controller wants its id back.
func (r *Roster) wants(id string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.wanted[id]
}

// lead writes down where routers find an id from now on. All controllers tell them
// when they read it.
func (r *Roster) lead(ctx context.Context, id, at string) error {
	return r.edit(ctx, id, func(c *model.Controller, now time.Time) {
		c.StandIn, c.StandInAddress, c.LeftOutAt, c.MovedAt = r.id, at, time.Time{}, now
	})
}

// leaveOut has routers told no more of a controller that is gone. It is on the
// list again when it comes back.
func (r *Roster) leaveOut(ctx context.Context, id string) {
	err := r.edit(ctx, id, func(c *model.Controller, now time.Time) {
		c.StandIn, c.StandInAddress, c.LeftOutAt = "", "", now
	})
	if err == nil {
		r.opt.Log.Warn("routers are told no more of a controller that is gone for long; they are when it is back", "controller", id)
	}
}

// leadBack has routers led to this controller again after somebody was in its
// place, or after they were told no more of it. What fails is tried again.
func (r *Roster) leadBack(ctx context.Context) {
	select {
	case <-r.Lease().Lost():
		return
	default:
	}
	if own, there := model.Controllers.Get(r.opt.State.Snapshot(), r.id); !there || own.At() == own.Address {
		return
	}
	_ = r.edit(ctx, r.id, func(c *model.Controller, now time.Time) {
		c.StandIn, c.StandInAddress, c.LeftOutAt, c.MovedAt = "", "", time.Time{}, now
	})
}

// edit changes the record of a controller.
func (r *Roster) edit(ctx context.Context, id string, change func(c *model.Controller, now time.Time)) error {
	ctx, cancel := context.WithTimeout(ctx, leaseLife)
	defer cancel()
	return r.opt.State.Update(ctx, state.Program("stand-in"), func(tx *state.Tx) error {
		return model.Controllers.Edit(tx, id, func(c *model.Controller) error {
			change(c, tx.Now())
			return nil
		})
	})
}
