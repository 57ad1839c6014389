package authn

import (
	"context"
	"slices"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

const (
	// flushBatch is how many sessions one write brings up to date at most: others
	// wait for it.
	flushBatch = 1000
	// unsaid is how much later than written down a session may have been used
	// without it being written down before the end: who logs in, does something and
	// goes costs no second write.
	unsaid = 30 * time.Second
)

// Flush writes down when sessions were last used, at every interval and once
// more when ctx ends, so that a restart does not end sessions in use. What was
// used in an interval is gathered into one write, or few if it is a lot.
func (s *APISessions) Flush(ctx context.Context, every time.Duration) {
	flushing(ctx, every, s.flush)
}

// flushing has what was used written down at every interval, if it is later than what
// is written by more than some time, and all of it once more when ctx ends.
func flushing(ctx context.Context, every time.Duration, flush func(ctx context.Context, than time.Duration)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			flush(last, 0)
			return
		case <-tick.C:
			flush(ctx, min(unsaid, every/2))
		}
	}
}

// flush writes down the use of sessions that is later than what is written by more
// than some time.
func (s *APISessions) flush(ctx context.Context, than time.Duration) {
	for batch := range slices.Chunk(s.used(than), flushBatch) {
		err := s.writeActivity(ctx, batch)
		if ctx.Err() != nil {
			return // stopping, and there is a last time for that
		}
		if err != nil {
			s.Log.Error("writing down the activity of sessions failed", "error", err)
			return
		}
	}
}

// used returns the ids of the sessions that were used here later than what is
// written by more than some time, in order. It looks at those that were used here,
// not at all that there are.
func (s *APISessions) used(than time.Duration) (ids []string) {
	snap := s.State.Snapshot()
	s.active.Range(func(id, _ any) bool {
		session, ok := model.APISessions.Get(snap, id.(string))
		if ok && s.LastActivity(session).Sub(session.LastActivityAt.Time()) > than {
			ids = append(ids, session.ID)
		}
		return true
	})
	slices.Sort(ids)
	return ids
}

func (s *APISessions) writeActivity(ctx context.Context, ids []string) error {
	return s.State.UpdateSessions(ctx, state.Program("session activity"), func(tx *state.Tx) error {
		for _, id := range ids {
			// One of an identity that is gone would fail the write for all.
			session, still := model.APISessions.Get(tx, id)
			if !still {
				continue
			}
			if _, known := model.Identities.Get(tx, session.IdentityID); !known {
				continue
			}
			err := model.APISessions.Edit(tx, id, func(a *model.APISession) error {
				a.LastActivityAt = kind.MomentOf(s.LastActivity(a))
				return nil
			})
			if err != nil {
				return err
			}
			if err := model.Remember(tx, session.IdentityID, nil, nil, s.LastActivity(session)); err != nil {
				return err
			}
		}
		return nil
	})
}
