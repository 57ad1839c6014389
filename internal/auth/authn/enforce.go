package authn

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Enforce removes sessions as soon as a change has taken what they rest on,
// until ctx ends. Nobody waits for it: requests look for themselves. It is for
// what goes with a session, such as connections in use.
func (s *APISessions) Enforce(ctx context.Context) {
	sub := s.State.Subscribe(decisive...)
	for {
		ev, err := sub.Next(ctx)
		if err != nil {
			return
		}
		lost, stray := slices.Collect(s.lost(ev.After, concerned(ev))), slices.Collect(strays(ev))
		if len(lost)+len(stray) > 0 {
			s.leave(ctx)
		}
		err = s.endThese(ctx, state.Program("session enforcement"), slices.Values(lost))
		if err = errors.Join(err, s.forget(ctx, slices.Values(stray))); err != nil && ctx.Err() == nil {
			s.Log.Error("removing sessions failed; it is tried again", "error", err)
			s.unsure.Store(true)
		}
	}
}

// leaveTime is how long others may take for what they have to enforce. It is in
// force a moment later if they do not.
const leaveTime = 500 * time.Millisecond

// leave leaves it to another controller to remove what is over, if it is another's
// to do: what is gone by then need not be removed twice.
func (s *APISessions) leave(ctx context.Context) {
	if s.Mine == nil || s.Mine() {
		return
	}
	select {
	case <-time.After(leaveTime):
	case <-ctx.Done():
	}
}

// decisive are the kinds that sessions, and what clients said, rest on.
var decisive = []*kind.Def{
	model.Identities.Def, model.EdgeRouters.Def, model.Authenticators.Def, model.Enrollments.Def, model.ExtJWTSigners.Def, model.CAs.Def,
	model.AuthPolicies.Def, model.APISessions.Def, model.ClientInfos.Def,
}

// lost yields those of the sessions that do not stand. What was taken back for
// a moment was taken back, so it is the moment of the change that counts.
func (s *APISessions) lost(r kind.Reader, sessions iter.Seq[*model.APISession]) iter.Seq[*model.APISession] {
	return func(yield func(*model.APISession) bool) {
		for session := range sessions {
			if _, flaw := s.stands(r, session, s.Now()); flaw != "" && !yield(session) {
				return
			}
		}
	}
}

// concerned yields the sessions that rest on what an event has changed, and
// those that it began: another controller may not have known yet what was
// taken back.
func concerned(ev state.Event) iter.Seq[*model.APISession] {
	if ev.Reset != nil {
		return model.APISessions.All(ev.Reset)
	}
	return func(yield func(*model.APISession) bool) {
		for _, w := range ev.Writes {
			for _, c := range w.Changes {
				for session := range restingOn(ev.After, c) {
					if !yield(session) {
						return
					}
				}
			}
		}
	}
}

// restingOn yields the sessions that rest on a record.
func restingOn(r kind.Reader, c state.Change) iter.Seq[*model.APISession] {
	switch c.Def {
	case model.Identities.Def, model.EdgeRouters.Def:
		// A router that is a client has its identity under its own id.
		return model.APISessions.Select(r, "identityId", c.ID)
	case model.Authenticators.Def, model.Enrollments.Def:
		// Also those that rest on something else: who has a way in of its own is
		// not named by others.
		return model.APISessions.Select(r, "identityId", ownerOf(c))
	case model.ExtJWTSigners.Def:
		return model.APISessions.Select(r, "authenticatorId", signerPrefix+c.ID)
	case model.CAs.Def:
		return model.APISessions.Select(r, "caId", c.ID)
	case model.AuthPolicies.Def:
		return underPolicy(r, c.ID)
	case model.APISessions.Def:
		if session, ok := c.After.(*model.APISession); ok && c.Before == nil {
			return func(yield func(*model.APISession) bool) { yield(session) }
		}
	}
	return func(func(*model.APISession) bool) {}
}

// ownerOf returns the identity that an authenticator or enrollment is of.
func ownerOf(c state.Change) string {
	rec := c.After
	if rec == nil {
		rec = c.Before
	}
	switch rec := rec.(type) {
	case *model.Authenticator:
		return rec.IdentityID
	case *model.Enrollment:
		return rec.IdentityID
	}
	return ""
}

// underPolicy yields the sessions of the identities that a policy is for. That
// of the default policy is most of them.
func underPolicy(r kind.Reader, policy string) iter.Seq[*model.APISession] {
	if policy == model.DefaultAuthPolicy {
		return model.APISessions.All(r)
	}
	return func(yield func(*model.APISession) bool) {
		for identity := range model.Identities.Select(r, "authPolicyId", policy) {
			for session := range model.APISessions.Select(r, "identityId", identity.ID) {
				if !yield(session) {
					return
				}
			}
		}
	}
}

// Sweep removes the sessions that time has ended, at every interval until ctx
// ends.
func (s *APISessions) Sweep(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("removing old sessions failed", "error", err)
		}
	}
}

// unwritten is how long another controller may keep what it knows of a
// session's use to itself: an interval of Flush, what it leaves unsaid, and the
// time that a write takes.
const unwritten = 3 * time.Minute

func (s *APISessions) sweep(ctx context.Context) error {
	snap := s.State.Snapshot()
	s.active.Range(func(id, _ any) bool {
		if _, still := model.APISessions.Get(snap, id.(string)); !still {
			s.active.Delete(id) // ended elsewhere, or used while it was being ended
		}
		return true
	})
	if s.Mine != nil && !s.Mine() {
		return nil
	}
	unsure := s.unsure.Swap(false)
	err := s.endThese(ctx, state.Program("session sweep"), s.over(snap, unsure))
	if unsure {
		err = errors.Join(err, s.forget(ctx, allStrays(snap)))
	}
	if err != nil && unsure {
		s.unsure.Store(true)
	}
	return err
}

// over yields the sessions that were idle for too long or do not stand. What
// they rest on is looked at only if it may have come to an end, or if unsure:
// there are many sessions.
func (s *APISessions) over(snap *state.Snapshot, unsure bool) iter.Seq[*model.APISession] {
	now := s.Now()
	return func(yield func(*model.APISession) bool) {
		for session := range model.APISessions.All(snap) {
			over := s.idle(session, now.Add(-unwritten))
			if !over && (unsure || isPast(session.NotAfter.Time(), now) || isPast(s.last(session), now)) {
				_, flaw := s.stands(snap, session, now)
				over = flaw != ""
			}
			if over && !yield(session) {
				return
			}
		}
	}
}
