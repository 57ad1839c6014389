package access

import (
	"iter"
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// List is one of the role lists that policies of a kind have. It leads from a
// policy to the records that it selects, and back.
type List struct {
	policies *kind.Def
	field    string // the list's field, which is also its index
	members  *kind.Def
	read     func(policy kind.Record) (roles []string, semantic string)
}

// timed is a policy that may count for a time only.
type timed interface{ Counts() bool }

// countsNow reports whether a policy gives anybody anything now.
func countsNow(policy kind.Record) bool { return policy.(timed).Counts() }

// The role lists of all kinds of policies.
var (
	ServicePolicyIdentities = newList(model.ServicePolicies, "identityRoles", model.Identities.Def,
		func(p *model.ServicePolicy) ([]string, string) { return p.IdentityRoles, p.Semantic })
	ServicePolicyServices = newList(model.ServicePolicies, "serviceRoles", model.Services.Def,
		func(p *model.ServicePolicy) ([]string, string) { return p.ServiceRoles, p.Semantic })
	ServicePolicyChecks = newList(model.ServicePolicies, "postureCheckRoles", model.PostureChecks.Def,
		func(p *model.ServicePolicy) ([]string, string) { return p.PostureCheckRoles, p.Semantic })

	EdgeRouterPolicyIdentities = newList(model.EdgeRouterPolicies, "identityRoles", model.Identities.Def,
		func(p *model.EdgeRouterPolicy) ([]string, string) { return p.IdentityRoles, p.Semantic })
	EdgeRouterPolicyRouters = newList(model.EdgeRouterPolicies, "edgeRouterRoles", model.EdgeRouters.Def,
		func(p *model.EdgeRouterPolicy) ([]string, string) { return p.EdgeRouterRoles, p.Semantic })

	ServiceEdgeRouterPolicyServices = newList(model.ServiceEdgeRouterPolicies, "serviceRoles", model.Services.Def,
		func(p *model.ServiceEdgeRouterPolicy) ([]string, string) { return p.ServiceRoles, p.Semantic })
	ServiceEdgeRouterPolicyRouters = newList(model.ServiceEdgeRouterPolicies, "edgeRouterRoles", model.EdgeRouters.Def,
		func(p *model.ServiceEdgeRouterPolicy) ([]string, string) { return p.EdgeRouterRoles, p.Semantic })
)

func newList[P any](policies *kind.Kind[P], field string, members *kind.Def, read func(*P) ([]string, string)) *List {
	return &List{policies.Def, field, members, func(policy kind.Record) ([]string, string) { return read(any(policy).(*P)) }}
}

// Members returns the records that the policy's list selects; none as long as the
// policy does not count.
func (l *List) Members(snap *state.Snapshot, policy kind.Record) *cow.Bitmap {
	var u union
	l.add(&u, snap, policy)
	return u.set()
}

// add adds the records that the policy's list selects.
func (l *List) add(u *union, snap *state.Snapshot, policy kind.Record) {
	if countsNow(policy) {
		l.addListed(u, snap, policy)
	}
}

// addListed is add for a policy whose time has not come, or is over, as well.
func (l *List) addListed(u *union, snap *state.Snapshot, policy kind.Record) {
	roles, semantic := l.read(policy)
	u.matching(snap, l.members, roles, semantic)
}

// Policies yields the policies that count and whose list selects the member, each
// once.
func (l *List) Policies(snap *state.Snapshot, member kind.Record) iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		k := keysOf(l.members, member)
		for i, key := range k {
			for policy := range snap.Select(l.policies, l.field, key) {
				roles, semantic := l.read(policy)
				if !countsNow(policy) || !k.match(roles, semantic) || k[:i].in(roles) {
					continue
				}
				if !yield(policy) {
					return
				}
			}
		}
	}
}

// keys are the roles that a record has: #all, its id, its attributes. A policy
// that selects it is filed under one of them at least.
type keys []string

func keysOf(pop *kind.Def, member kind.Record) keys {
	attributes := pop.AttributesOf(member)
	k := make(keys, 0, 2+len(attributes))
	k = append(k, all, "@"+member.Base().ID)
	for _, a := range attributes {
		if a != "" {
			k = append(k, "#"+a)
		}
	}
	return k
}

// in reports whether one of the keys is in the list.
func (k keys) in(roles []string) bool {
	return slices.ContainsFunc(k, func(key string) bool { return slices.Contains(roles, key) })
}

// match reports whether a role list selects the record.
func (k keys) match(roles []string, semantic string) bool {
	return model.Selects(roles, semantic, k)
}

// across returns the members of one list that share a policy with a member of
// another.
func across(snap *state.Snapshot, from, to *List, id string) *cow.Bitmap {
	return acrossSome(snap, from, to, id, func(kind.Record) bool { return true })
}

// acrossSome is across by way of the policies that count.
func acrossSome(snap *state.Snapshot, from, to *List, id string, counts func(policy kind.Record) bool) *cow.Bitmap {
	u := union{all: snap.Tagged(to.members, "")}
	if member, ok := snap.Lookup(from.members, id); ok {
		for policy := range from.Policies(snap, member) {
			if counts(policy) {
				to.add(&u, snap, policy)
			}
		}
	}
	return u.set()
}
