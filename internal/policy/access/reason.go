package access

import (
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Reasons returns the roles of a policy's list that select a member; none if
// it is not selected. One of them would do, except with AllOf, where it takes
// all of the attributes.
func (l *List) Reasons(policy, member kind.Record) []string {
	roles, semantic := l.read(policy)
	k := keysOf(l.members, member)
	if !k.match(roles, semantic) {
		return nil
	}
	if sure := slices.IndexFunc(roles, func(role string) bool { return role == all || role == k[1] }); sure >= 0 {
		return roles[sure : sure+1]
	}
	return slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return !slices.Contains(k, role) })
}

// Wants returns the attributes of which any one alone would make the policy's
// list select a member that it does not.
func (l *List) Wants(policy, member kind.Record) []string {
	roles, semantic := l.read(policy)
	k := keysOf(l.members, member)
	if k.match(roles, semantic) {
		return nil
	}
	var missing []string
	for _, role := range roles {
		if len(role) > 1 && role[0] == '#' && !slices.Contains(k, role) && !slices.Contains(missing, role[1:]) {
			missing = append(missing, role[1:])
		}
	}
	if semantic != model.AnyOf && len(missing) > 1 {
		return nil
	}
	return missing
}

// ways are the lists that lead from a kind to others, in pairs.
var ways = [][2]*List{
	{ServicePolicyIdentities, ServicePolicyServices},
	{EdgeRouterPolicyIdentities, EdgeRouterPolicyRouters},
	{ServicePolicyServices, ServicePolicyIdentities},
	{ServiceEdgeRouterPolicyServices, ServiceEdgeRouterPolicyRouters},
}

// Widening is how many records more policies would lead to from an identity or
// a service if it had one more attribute.
func Widening(snap *state.Snapshot, pop *kind.Def, member kind.Record, attribute string) int {
	k := keysOf(pop, member)
	wider := append(slices.Clone(k), "#"+attribute)
	more := 0
	for _, way := range ways {
		if way[0].members != pop {
			continue
		}
		var u union
		for policy := range snap.Select(way[0].policies, way[0].field, "#"+attribute) {
			roles, semantic := way[0].read(policy)
			if countsNow(policy) && !k.match(roles, semantic) && wider.match(roles, semantic) {
				way[1].add(&u, snap, policy)
			}
		}
		more += int(without(u.set(), across(snap, way[0], way[1], member.Base().ID)).GetCardinality())
	}
	return more
}

func without(a, b *cow.Bitmap) *cow.Bitmap {
	left := a.Clone()
	left.AndNot(b)
	return left
}

// WhoCan returns the identities that policies let dial or host a service.
// Admins, who need none, are among them only if policies let them.
func WhoCan(snap *state.Snapshot, serviceID, typ string) *cow.Bitmap {
	u := union{all: snap.Tagged(model.Identities.Def, "")}
	if service, ok := snap.Lookup(model.Services.Def, serviceID); ok {
		for policy := range ServicePolicyServices.Policies(snap, service) {
			if policy.(*model.ServicePolicy).Type == typ {
				ServicePolicyIdentities.add(&u, snap, policy)
			}
		}
	}
	return u.set()
}
