package access

import "netkeep.internal/internal/data/state"

// Moving returns those of the changed records that can move a service to or from
// somebody: identities, services and service policies, in what policies go by.
func Moving(before, after *state.Snapshot, changed []state.Ref) []state.Ref {
	return moving(before, after, changed)
}
