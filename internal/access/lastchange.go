package access

import (
	"slices"
	"sync"
	"time"

	"netkeep/internal/model"
	"netkeep/internal/state"
	"netkeep/internal/state/cow"
)

// LastChange remembers when what an identity sees last changed. Clients ask
// for that time again and again and reload when it is another one, so it moves
// whenever there is something to reload and stays put otherwise. Times are the
// batches' own, so that all controllers answer alike; they are whole
// milliseconds, as answers show no more, and two changes never share one.
//
// The zero value is ready and has everyone at the beginning of time. All
// methods may be called at any time, but calls of Apply one after the other.
type LastChange struct {
	mu     sync.RWMutex
	at     []int64 // by ordinal of the identity
	start  int64   // for everyone
	admins int64   // for admins, who see services without a policy
	latest int64   // the last time that was given to anyone
}

// Reset says that nothing is known of what came before, as after a load. The
// time of the snapshot is a good one: it costs each client one reload at most,
// and none if it has seen that snapshot.
func (l *LastChange) Reset(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = nil
	l.start = l.tick(now)
}

// Apply takes note of a batch, under the conditions of Affected. The snapshot
// should be public by then: who sees the new time must not find the old
// services.
func (l *LastChange) Apply(before, after *state.Snapshot, changed []state.Ref) {
	identities := Affected(before, after, changed)
	forAdmins := slices.ContainsFunc(changed, seenByAdmins)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(before, after, changed)
	if identities.IsEmpty() && !forAdmins {
		return
	}
	now := l.tick(after.Time)
	l.stamp(identities, now)
	if forAdmins {
		l.admins = now
	}
}

// Touch takes note of a change that is not in the model but concerns one
// identity, such as what it says of its device.
func (l *LastChange) Touch(snap *state.Snapshot, identityID string, now time.Time) {
	ord, ok := snap.Ordinal(model.Identities.Def, identityID)
	if !ok {
		return
	}
	var one union
	one.addOne(ord)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stamp(one.set(), l.tick(now))
}

// Of returns when what the identity sees last changed.
func (l *LastChange) Of(snap *state.Snapshot, identityID string) time.Time {
	identity, ok := model.Identities.Get(snap, identityID)
	ord, _ := snap.Ordinal(model.Identities.Def, identityID)
	l.mu.RLock()
	defer l.mu.RUnlock()
	last := l.start
	if ok && int(ord) < len(l.at) {
		last = max(last, l.at[ord])
	}
	if ok && identity.Admin() {
		last = max(last, l.admins)
	}
	return time.UnixMilli(last).UTC()
}

// seenByAdmins reports whether a record of this kind is part of what admins
// see whatever the policies.
func seenByAdmins(c state.Ref) bool {
	return c.Def == model.Services.Def || c.Def == model.Configs.Def || c.Def == model.ConfigTypes.Def
}

// tick returns the time, or the next that nobody has yet.
func (l *LastChange) tick(now time.Time) int64 {
	l.latest = max(now.UnixMilli(), l.latest+1)
	return l.latest
}

// forget wipes the times of identities that are gone: another may get the
// ordinal.
func (l *LastChange) forget(before, after *state.Snapshot, changed []state.Ref) {
	for _, c := range changed {
		if c.Def != model.Identities.Def {
			continue
		}
		ord, had := before.Ordinal(c.Def, c.ID)
		now, has := after.Ordinal(c.Def, c.ID)
		if had && !(has && now == ord) && int(ord) < len(l.at) {
			l.at[ord] = 0
		}
	}
}

func (l *LastChange) stamp(identities *cow.Bitmap, at int64) {
	if identities.IsEmpty() {
		return
	}
	if missing := int(identities.Maximum()) + 1 - len(l.at); missing > 0 {
		l.at = append(l.at, make([]int64, missing)...)
	}
	identities.Iterate(func(ord uint32) bool {
		l.at[ord] = at
		return true
	})
}
