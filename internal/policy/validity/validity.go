// Package validity makes the moments happen at which policies and grants begin
// and end, and requests for access expire. Each is a write, so that all that
// follows changes follows it: every controller tries it when its clock says so, and
// the first is enough. Until it is made, View shows what there is as if it were. Who
// sees what is access's to say. It must not import rest or api, nor anything that gives out sessions.
package validity

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Kinds are those whose records begin and end by themselves.
var Kinds = []*kind.Def{
	model.ServicePolicies.Def, model.EdgeRouterPolicies.Def, model.ServiceEdgeRouterPolicies.Def, model.Grants.Def,
	model.AccessRequests.Def,
}

// Timed reports whether a record begins or ends by itself.
func Timed(rec kind.Record) bool {
	timed, is := rec.(interface{ Timed() bool })
	return is && timed.Timed()
}

// groups are in which records wait for their moments.
var groups = []string{model.ToBegin, model.ToEnd, model.ToExpire, model.ToForget}

// waiting yields the records that wait in a group, by their moments.
func waiting(snap *state.Snapshot, d *kind.Def, group string) iter.Seq2[kind.Record, time.Time] {
	return func(yield func(kind.Record, time.Time) bool) {
		for rec := range snap.Ranked(d).In(group) {
			_, place := d.Rank(rec)
			moment, err := time.Parse(time.RFC3339, place)
			if err != nil || !yield(rec, moment) {
				return
			}
		}
	}
}

// Next is the next moment at which something begins, ends or is forgotten; not ok
// if there is none.
func Next(snap *state.Snapshot) (next time.Time, ok bool) {
	for _, d := range Kinds {
		for _, group := range groups {
			for _, moment := range waiting(snap, d, group) {
				if !ok || moment.Before(next) {
					next, ok = moment, true
				}
				break
			}
		}
	}
	return next, ok
}

// Ending is how many policies and grants that count end before a moment.
func Ending(snap *state.Snapshot, d *kind.Def, before time.Time) int {
	ranked := snap.Ranked(d)
	return ranked.Before(model.ToEnd+model.Place(before)) - ranked.Before(model.ToEnd)
}

// together is how many moments one write makes.
const together = 200

// due returns records whose moment has come, some of them, those that end first:
// that somebody is let in can wait.
func due(snap *state.Snapshot, now time.Time) (refs []state.Ref) {
	for _, group := range []string{model.ToEnd, model.ToBegin, model.ToExpire, model.ToForget} {
		for _, d := range Kinds {
			for rec, moment := range waiting(snap, d, group) {
				if moment.After(now) || len(refs) == together {
					break
				}
				refs = append(refs, state.Ref{Def: d, ID: rec.Base().ID})
			}
		}
	}
	return refs
}

// turn makes records what they are at the moment of the write. One that somebody
// else has turned stays as it is.
func turn(tx *state.Tx, refs []state.Ref) error {
	for _, ref := range refs {
		rec, there := tx.Lookup(ref.Def, ref.ID)
		if !there {
			continue
		}
		if group, place := ref.Def.Rank(rec); group == model.ToForget {
			if model.Place(tx.Now()) >= place {
				if err := tx.Delete(ref.Def, ref.ID); err != nil {
					return err
				}
			}
			continue
		}
		if _, err := tx.Amend(ref.Def, ref.ID, func(kind.Record) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// Keeper makes the moments of a controller's network.
type Keeper struct {
	State *state.State
	// Now is the time. It may run ahead of what others think, and never back.
	Now func() time.Time
	// Late, if set, is told what there is and what there would be if a moment were
	// made that nobody could make for a while, such as when the store is away.
	Late func(is, would *state.Snapshot, changed []state.Ref)
	Log  *slog.Logger

	mu   sync.Mutex
	view view
}

// view is what View has found out last.
type view struct {
	of, is  *state.Snapshot
	changed []state.Ref
	until   time.Time // from when on it is not so any more; zero for never
}

// now is the time, at least that of the last write.
func (k *Keeper) now(snap *state.Snapshot) time.Time {
	if now := k.Now(); now.After(snap.Time) {
		return now
	}
	return snap.Time
}

// View is a snapshot as it is now by the clock: nothing counts in it whose time is
// over, also if the write that says so has yet to be made. That is the snapshot
// itself nearly always.
func (k *Keeper) View(snap *state.Snapshot) *state.Snapshot {
	now := k.now(snap)
	if next, ok := Next(snap); !ok || now.Before(next) {
		return snap
	}
	if snap != k.State.Snapshot() { // it may be one that is being written, which is not what it was when it is asked for again
		is, _ := k.at(snap, now)
		return is
	}
	return k.overdue(snap, now).is
}

// at is At for those who have to go on with what there is.
func (k *Keeper) at(snap *state.Snapshot, now time.Time) (*state.Snapshot, []state.Ref) {
	is, changed, err := At(context.Background(), k.State, snap, now)
	if err != nil {
		k.Log.Error("what time has changed cannot be told", "error", err)
	}
	return is, changed
}

func (k *Keeper) overdue(snap *state.Snapshot, now time.Time) view {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v := k.view; v.of == snap && (v.until.IsZero() || now.Before(v.until)) {
		return v
	}
	is, changed := k.at(snap, now)
	v := view{of: snap, is: is, changed: changed}
	if next, ok := Next(is); ok {
		v.until = next
	}
	k.view = v
	return v
}

// At is a snapshot as it will be at a moment if nobody changes anything until
// then, and which records are others. What cannot be turned stays as it is, which
// the error tells.
func At(ctx context.Context, st *state.State, snap *state.Snapshot, moment time.Time) (*state.Snapshot, []state.Ref, error) {
	var changed []state.Ref
	err := turnAll(func() *state.Snapshot { return snap }, moment, func(refs []state.Ref) error {
		step, err := st.TryAt(ctx, snap, moment, func(tx *state.Tx) error { return turn(tx, refs) })
		if err == nil {
			snap, changed = step.After, append(changed, step.Changed...)
		}
		return err
	})
	return snap, changed, err
}

// Settle makes all moments that have passed. It is for the start, before anybody is
// served.
func (k *Keeper) Settle(ctx context.Context) error {
	return turnAll(k.State.Snapshot, k.now(k.State.Snapshot()), func(refs []state.Ref) error {
		return k.State.Update(ctx, state.Program("validity"), func(tx *state.Tx) error { return turn(tx, refs) })
	})
}

// turnAll has all turned that is due, many at a time. Where one of many is
// refused, for want of a record that it refers to say, the others must not suffer
// for it: each has its own turn then.
func turnAll(snap func() *state.Snapshot, now time.Time, do func([]state.Ref) error) error {
	var last []state.Ref
	for {
		refs := due(snap(), now)
		if len(refs) == 0 || slices.Equal(refs, last) {
			return nil // all are turned, or it is too early by the clock of writes
		}
		last = refs
		err := do(refs)
		if err == nil {
			continue
		}
		if fault.Is(err, fault.CodeUnavailable) || errors.Is(err, context.Canceled) {
			return err
		}
		for i := range refs {
			err = errors.Join(err, do(refs[i:i+1]))
		}
		return err
	}
}

// How often the clock is looked at, since it may be set, and how long a moment may
// wait for its write before this controller does by itself what it can.
const (
	lookEvery = 250 * time.Millisecond
	lateAfter = 250 * time.Millisecond
)

// Run makes moments as they come, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { k.watch(ctx) })
	defer watching.Wait()
	for k.wait(ctx, 0) {
		if err := k.Settle(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("not all that begins and ends now could be written; it is tried again", "error", err)
		}
		snap := k.State.Snapshot()
		if len(due(snap, k.now(snap))) > 0 && !pause(ctx, lookEvery) {
			return
		}
	}
}

// watch does what can be done without the store when a moment waits for its write.
func (k *Keeper) watch(ctx context.Context) {
	var told *state.Snapshot
	for k.wait(ctx, lateAfter) {
		snap := k.State.Snapshot()
		v := k.overdue(snap, k.now(snap))
		if k.Late != nil && v.is != told && len(v.changed) > 0 {
			k.Late(v.of, v.is, v.changed)
			told = v.is
		}
		if !pause(ctx, lookEvery) {
			return
		}
	}
}

// wait returns when the next moment is past by some time; not ok when ctx ends.
func (k *Keeper) wait(ctx context.Context, by time.Duration) (ok bool) {
	for {
		snap, left := k.State.Snapshot(), lookEvery
		if next, ok := Next(snap); ok {
			left = next.Add(by).Sub(k.now(snap))
		}
		if left <= 0 {
			return ctx.Err() == nil
		}
		if !pause(ctx, min(left, lookEvery)) {
			return false
		}
	}
}

func pause(ctx context.Context, d time.Duration) (ok bool) {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
