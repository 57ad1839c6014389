package authn

import (
	"context"
	"iter"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// What a client said of itself goes with its identity, in one commit. But a login
// at one controller and the end of the identity at another do not know of each
// other: what the login wrote is then left without an owner.

// strays yields whose it is that an event leaves so, by the identity's id.
func strays(ev state.Event) iter.Seq[string] {
	if ev.Reset != nil {
		return allStrays(ev.Reset)
	}
	return func(yield func(string) bool) {
		for _, w := range ev.Writes {
			for _, c := range w.Changes {
				concerns := c.Def == model.Identities.Def && c.After == nil || c.Def == model.ClientInfos.Def
				if concerns && isStray(ev.After, c.ID) && !yield(c.ID) {
					return
				}
			}
		}
	}
}

func allStrays(r kind.Reader) iter.Seq[string] {
	return func(yield func(string) bool) {
		for info := range model.ClientInfos.All(r) {
			if isStray(r, info.ID) && !yield(info.ID) {
				return
			}
		}
	}
}

func isStray(r kind.Reader, identityID string) bool {
	_, said := model.ClientInfos.Get(r, identityID)
	_, known := model.Identities.Get(r, identityID)
	return said && !known
}

// forget removes what clients said whose identities are gone.
func (s *APISessions) forget(ctx context.Context, strays iter.Seq[string]) error {
	for id := range strays {
		err := s.State.UpdateSessions(ctx, state.Program("session enforcement"), func(tx *state.Tx) error {
			if !isStray(tx, id) {
				return nil
			}
			return model.ClientInfos.Delete(tx, id)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
