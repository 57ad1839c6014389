package authn

import (
	"context"
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// roomGroup is how many sessions too many one login ends at most: there may be
// more only since a bound was lowered, and nobody waits for all of them.
const roomGroup = 64

// makeRoom ends the sessions of an identity that were not used for longest, if a
// new one is one too many. Nobody is refused: who opens sessions without end
// loses its own. Those that routers report as in use count as used.
func (s *APISessions) makeRoom(ctx context.Context, opened *model.APISession) {
	if s.Most <= 0 {
		return
	}
	own := slices.Collect(model.APISessions.Select(s.State.Snapshot(), "identityId", opened.IdentityID))
	many := min(len(own)-s.Most, roomGroup)
	if many <= 0 {
		return
	}
	slices.SortFunc(own, func(a, b *model.APISession) int { return s.LastActivity(a).Compare(s.LastActivity(b)) })
	own = slices.DeleteFunc(own[:many], func(one *model.APISession) bool { return one.ID == opened.ID })
	if err := s.endThese(ctx, state.Program("session bound"), slices.Values(own)); err != nil && ctx.Err() == nil {
		s.Log.Warn("ending the sessions that an identity has too many of failed; its next login tries again", "identity", opened.IdentityID, "error", err)
	}
}
