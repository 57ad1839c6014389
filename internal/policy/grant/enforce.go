package grant

import (
	"context"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/posture"
)

// lost is whose sessions are to be looked at, because a change may have taken
// what they rest on.
type lost struct {
	mu         sync.Mutex
	all        bool
	identities *cow.Bitmap // by ordinal; one that is somebody else's by now does no harm
	gone       []state.Ref // identities and services that were deleted
	waiting    chan struct{}
}

// signal returns the channel that tells of something to look at. The caller
// holds mu.
func (l *lost) signal() chan struct{} {
	if l.waiting == nil {
		l.waiting = make(chan struct{}, 1)
	}
	return l.waiting
}

// add notes what to look at.
func (l *lost) add(note func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	note()
	select {
	case l.signal() <- struct{}{}:
	default: // told already
	}
}

// take returns what there is to look at and forgets it.
func (l *lost) take() (all bool, identities *cow.Bitmap, gone []state.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, identities, gone = l.all, l.identities, l.gone
	l.all, l.identities, l.gone = false, nil, nil
	return all, identities, gone
}

// Applied takes note of a change of memory, as state.Options tells it. affected
// is whom it concerns, by ordinal.
func (s *Grants) Applied(before, after *state.Snapshot, changed []state.Ref, affected *cow.Bitmap) {
	if before == nil {
		s.lost.add(func() { s.lost.all = true })
		return
	}
	var gone []state.Ref
	reporters := new(cow.Bitmap)
	for _, c := range changed {
		switch c.Def {
		case model.APISessions.Def:
			s.notice(before, after, c.ID, reporters)
		case model.Devices.Def:
			s.reported(before, after, c.ID, reporters)
		case model.Services.Def, model.Identities.Def:
			if _, still := after.Lookup(c.Def, c.ID); !still {
				gone = append(gone, c)
			}
		}
	}
	if !reporters.IsEmpty() {
		reporters.Or(affected)
		affected = reporters
	}
	if affected.IsEmpty() && len(gone) == 0 || after.Len(model.Sessions.Def) == 0 {
		return
	}
	s.lost.add(func() {
		s.lost.gone = append(s.lost.gone, gone...)
		if s.lost.identities == nil {
			s.lost.identities = affected.Clone()
		} else {
			s.lost.identities.Or(affected)
		}
	})
}

// notice tells an identity's clients to look again when it has shown a second
// factor: checks that ask for one may pass now, and sessions that wait wait no more.
func (s *Grants) notice(before, after *state.Snapshot, apiSessionID string, shown *cow.Bitmap) {
	old, had := model.APISessions.Get(before, apiSessionID)
	next, has := model.APISessions.Get(after, apiSessionID)
	if had && has && next.MFAPassedAt != nil &&
		(old.MFAPassedAt == nil || !old.MFAPassedAt.Equal(*next.MFAPassedAt)) {
		s.Changes.Touch(after, next.IdentityID)
		if ord, ok := after.Ordinal(model.Identities.Def, next.IdentityID); ok && next.Bears() {
			shown.Add(ord)
		}
	}
}

// reported tells an identity's clients to look again when one of its devices
// has reported something new, and adds the identity to those who have.
func (s *Grants) reported(before, after *state.Snapshot, id string, reporters *cow.Bitmap) {
	old, _ := model.Devices.Get(before, id)
	next, _ := model.Devices.Get(after, id)
	api, there := model.APISessions.Get(after, id)
	if !there || next == nil || !posture.Differ(old, next) {
		return // one that is gone took its sessions along
	}
	s.Changes.Touch(after, api.IdentityID)
	if ord, ok := after.Ordinal(model.Identities.Def, api.IdentityID); ok {
		reporters.Add(ord)
	}
}

// How often time alone is looked at: checks that time out, and what is known
// of those who are gone.
const (
	recheckEvery = 5 * time.Second
	forgetEvery  = time.Minute
)

// Enforce removes sessions as soon as they have lost what they rest on, until
// ctx ends.
func (s *Grants) Enforce(ctx context.Context) {
	recheck, forget := time.NewTicker(recheckEvery), time.NewTicker(forgetEvery)
	defer recheck.Stop()
	defer forget.Stop()
	s.lost.mu.Lock()
	wake := s.lost.signal()
	s.lost.mu.Unlock()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-wake:
			s.leave(ctx)
			err = s.remove(ctx, s.candidates(s.State.Snapshot()))
		case <-recheck.C:
			err = s.expire(ctx)
		case <-forget.C:
			s.forget()
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Error("removing sessions failed", "error", err)
			s.lost.add(func() { s.lost.all = true }) // look again, at everything
		}
	}
}

// leaveTime is how long others may take for what they have to enforce. It is in
// force a moment later if they do not.
const leaveTime = 500 * time.Millisecond

// leave leaves it to another controller to remove sessions, if it is another's to
// do: what is gone by then need not be removed twice.
func (s *Grants) leave(ctx context.Context) {
	if s.Mine == nil || s.Mine() {
		return
	}
	select {
	case <-time.After(leaveTime):
	case <-ctx.Done():
	}
}

// candidates returns the sessions that are to be looked at.
func (s *Grants) candidates(snap *state.Snapshot) []*model.Session {
	all, identities, gone := s.lost.take()
	if all {
		return slices.Collect(model.Sessions.All(snap))
	}
	var found []*model.Session
	for _, ref := range gone {
		index := "serviceId"
		if ref.Def == model.Identities.Def {
			index = "identityId"
		}
		found = slices.AppendSeq(found, model.Sessions.Select(snap, index, ref.ID))
	}
	if identities == nil {
		return found
	}
	// Whichever are fewer are gone through.
	if int(identities.GetCardinality()) < snap.Len(model.Sessions.Def) {
		for identity := range snap.At(model.Identities.Def, identities) {
			found = slices.AppendSeq(found, model.Sessions.Select(snap, "identityId", identity.Base().ID))
		}
		return found
	}
	for session := range model.Sessions.All(snap) {
		if ord, ok := snap.Ordinal(model.Identities.Def, session.IdentityID); ok && identities.Contains(ord) {
			found = append(found, session)
		}
	}
	return found
}

// expire removes the sessions whose checks time has failed.
func (s *Grants) expire(ctx context.Context) error {
	snap := s.State.Snapshot()
	if !timed(snap) {
		return nil
	}
	var failed []*model.Session
	now := s.Timely(snap)
	for session := range model.Sessions.All(snap) {
		if s.due(now, session) != nothing {
			failed = append(failed, session)
		}
	}
	for _, session := range failed {
		s.Changes.Touch(snap, session.IdentityID)
	}
	if len(failed) > 0 {
		s.leave(ctx)
	}
	return s.remove(ctx, failed)
}

// timed reports whether there is a check that time alone can fail.
func timed(snap *state.Snapshot) bool {
	for check := range model.PostureChecks.All(snap) {
		if check.TypeID == "MFA" && !check.OnlyTells() {
			return true
		}
	}
	return false
}

// removeBatch is how many sessions one write removes.
const removeBatch = 100

// What is to be done about a session.
type duty int

const (
	nothing duty = iota
	end          // it has lost what it rests on
	settle       // it waits no more
)

// due returns what is to be done about a session. One that waits for its device to pass is
// left to wait.
func (s *Grants) due(snap *state.Snapshot, session *model.Session) duty {
	chain, ok := s.of(snap, session)
	switch {
	case !ok:
		return end
	case chain.Cleared() != nil && !session.Waits:
		return end
	case chain.Cleared() == nil && session.Waits:
		return settle
	}
	return nothing
}

// remove deletes those of the sessions that are not live, and takes note of those that wait
// no more.
func (s *Grants) remove(ctx context.Context, candidates []*model.Session) error {
	snap := s.State.Snapshot()
	candidates = slices.DeleteFunc(candidates, func(session *model.Session) bool {
		there, ok := model.Sessions.Get(snap, session.ID)
		return !ok || s.due(snap, there) == nothing
	})
	for batch := range slices.Chunk(candidates, removeBatch) {
		err := s.State.UpdateSessions(ctx, state.Program("session enforcement"), func(tx *state.Tx) error {
			for _, session := range batch {
				if err := s.do(tx, session.ID); err != nil && !fault.Is(err, fault.CodeNotFound) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// do does what is due about a session as it is now: another write may have come in between.
func (s *Grants) do(tx *state.Tx, id string) error {
	session, ok := model.Sessions.Get(tx, id)
	if !ok {
		return nil
	}
	switch s.due(tx.Snapshot, session) {
	case end:
		return model.Sessions.Delete(tx, id)
	case settle:
		return model.Sessions.Edit(tx, id, func(session *model.Session) error {
			session.Waits = false
			return nil
		})
	}
	return nil
}

// forget drops what is known of identities that are gone.
func (s *Grants) forget() {
	snap := s.State.Snapshot()
	s.Failures.Keep(func(identityID string) bool {
		_, ok := model.Identities.Get(snap, identityID)
		return ok
	})
}
