package access

import (
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/model"
)

// LastChange remembers when what an identity sees last changed. Clients ask
// for that time again and again and reload when it is another one, so it moves
// whenever there is something to reload and stays put otherwise. It is the time
// of a commit, no two of which share one, so that all controllers answer
// alike.
//
// The zero value is ready and has everyone at the beginning of time. All
// methods may be called at any time, but calls of Apply one after the other.
type LastChange struct {
	mu     sync.RWMutex
	of     []lastChange // by ordinal of the identity
	all    int64        // for everyone
	admins int64        // for admins, who see services without a policy
	watch  watch        // those who want to be told
}

// lastChange is what is known of one identity.
type lastChange struct {
	commit  int64 // the time of the last that concerned it, in microseconds
	touches int64 // since the load
}

// touch is how far a change that has no commit moves the time: as little as
// clients that count in milliseconds can see.
const touch = int64(time.Millisecond / time.Microsecond)

// Reset says that nothing is known of what came before, as after a load. It
// takes the time of the loaded snapshot: that costs each client one reload at
// most, and none if it has seen that snapshot.
func (l *LastChange) Reset(loaded time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of, l.admins, l.all = nil, 0, loaded.UnixMicro()
	l.watch.note(concern{})
}

// Apply takes note of a commit, under the conditions of Affected, and returns
// whom it concerns. The snapshot should be public by then: who sees the new
// time must not find the old services.
func (l *LastChange) Apply(before, after *state.Snapshot, changed []state.Ref) *cow.Bitmap {
	identities := Affected(before, after, changed)
	forAdmins := slices.ContainsFunc(changed, seenByAdmins)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(before, after, changed)
	now := after.Time.UnixMicro()
	// A change for everyone should not cost more than one for nobody.
	if int(identities.GetCardinality()) == after.Len(model.Identities.Def) {
		l.all = now
	} else {
		l.stamp(identities, now)
	}
	if forAdmins {
		l.admins = now
	}
	if forAdmins || !identities.IsEmpty() {
		l.watch.note(concern{snap: after, who: identities, admins: forAdmins})
	}
	return identities
}

// Touch takes note of a change that is not in the model but concerns one
// identity, such as what it says of its device.
func (l *LastChange) Touch(snap *state.Snapshot, identityID string) {
	ord, ok := snap.Ordinal(model.Identities.Def, identityID)
	if !ok {
		return
	}
	var one union
	one.addOne(ord)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grow(one.set())
	l.of[ord].touches++
	l.watch.note(concern{one: identityID})
}

// Of returns when what the identity sees last changed.
func (l *LastChange) Of(snap *state.Snapshot, identityID string) time.Time {
	identity, ok := model.Identities.Get(snap, identityID)
	ord, _ := snap.Ordinal(model.Identities.Def, identityID)
	l.mu.RLock()
	defer l.mu.RUnlock()
	last := l.all
	if ok && identity.Admin() {
		last = max(last, l.admins)
	}
	if ok && int(ord) < len(l.of) {
		last = max(last, l.of[ord].commit) + l.of[ord].touches*touch
	}
	return time.UnixMicro(last).UTC()
}

// seenByAdmins reports whether a record of this kind is part of what admins
// see whatever the policies.
func seenByAdmins(c state.Ref) bool {
	return c.Def == model.Services.Def || c.Def == model.Configs.Def || c.Def == model.ConfigTypes.Def
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
		if had && !(has && now == ord) && int(ord) < len(l.of) {
			l.of[ord] = lastChange{}
		}
	}
}

func (l *LastChange) stamp(identities *cow.Bitmap, now int64) {
	l.grow(identities)
	identities.Iterate(func(ord uint32) bool {
		l.of[ord].commit = now
		return true
	})
}

// grow makes room for all of the identities.
func (l *LastChange) grow(identities *cow.Bitmap) {
	if identities.IsEmpty() {
		return
	}
	if missing := int(identities.Maximum()) + 1 - len(l.of); missing > 0 {
		l.of = append(l.of, make([]lastChange, missing)...)
	}
}
