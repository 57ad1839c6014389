package authn

import (
	"context"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// flushBatch is how many sessions one write brings up to date.
const flushBatch = 250

// Flush writes down when sessions were last used, at every interval and once
// more when ctx ends, so that a restart does not end sessions in use.
func (s *APISessions) Flush(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			s.flush(last)
			return
		case <-tick.C:
			s.flush(ctx)
		}
	}
}

func (s *APISessions) flush(ctx context.Context) {
	var stale []*model.APISession
	for session := range model.APISessions.All(s.State.Snapshot()) {
		if s.LastActivity(session).After(session.LastActivityAt) {
			stale = append(stale, session)
		}
	}
	for len(stale) > 0 {
		n := min(flushBatch, len(stale))
		err := s.writeActivity(ctx, stale[:n])
		if ctx.Err() != nil {
			return // stopping, and there is a last time for that
		}
		if err != nil {
			s.Log.Error("writing down the activity of sessions failed", "error", err)
			return
		}
		stale = stale[n:]
	}
}

func (s *APISessions) writeActivity(ctx context.Context, sessions []*model.APISession) error {
	return s.State.UpdateSessions(ctx, state.Program("session activity"), func(tx *state.Tx) error {
		for _, session := range sessions {
			// One of an identity that is gone would fail the write for all.
			_, still := model.APISessions.Get(tx, session.ID)
			_, known := model.Identities.Get(tx, session.IdentityID)
			if !still || !known {
				continue
			}
			err := model.APISessions.Edit(tx, session.ID, func(a *model.APISession) error {
				a.LastActivityAt = s.LastActivity(session)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
