package access

import (
	"iter"
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Relation is a list of records of one kind that belong to a record of
// another: GET /<from>/{id}/<path>.
type Relation struct {
	From *kind.Def
	Path string
	To   *kind.Def
	Name string // of the operation
	// Find returns the records that belong to the one with this id; none if
	// there is no such record.
	Find func(snap *state.Snapshot, id string) Related
	// Through, if set, is Find by way of the service policies of one type alone.
	Through func(snap *state.Snapshot, id, policyType string) Related
}

// Relations is every list that leads from one kind to another.
var Relations = []Relation{
	members(ServicePolicyIdentities, "listServicePolicyIdentities"),
	members(ServicePolicyServices, "listServicePolicyServices"),
	members(ServicePolicyChecks, "listServicePolicyPostureChecks"),
	members(EdgeRouterPolicyIdentities, "listEdgeRouterPolicyIdentities"),
	members(EdgeRouterPolicyRouters, "listEdgeRouterPolicyEdgeRouters"),
	members(ServiceEdgeRouterPolicyServices, "listServiceEdgeRouterPolicyServices"),
	members(ServiceEdgeRouterPolicyRouters, "listServiceEdgeRouterPolicyEdgeRouters"),

	policies(ServicePolicyIdentities, "listIdentityServicePolicies"),
	policies(ServicePolicyServices, "listServiceServicePolicies"),
	policies(EdgeRouterPolicyIdentities, "listIdentitysEdgeRouterPolicies"),
	policies(EdgeRouterPolicyRouters, "listEdgeRouterEdgeRouterPolicies"),
	policies(ServiceEdgeRouterPolicyServices, "listServiceServiceEdgeRouterPolicies"),
	policies(ServiceEdgeRouterPolicyRouters, "listEdgeRouterServiceEdgeRouterPolicies"),

	typed(counterparts(ServicePolicyIdentities, ServicePolicyServices, "listIdentityServices"), ServicePolicyIdentities, ServicePolicyServices),
	typed(counterparts(ServicePolicyServices, ServicePolicyIdentities, "listServiceIdentities"), ServicePolicyServices, ServicePolicyIdentities),
	counterparts(EdgeRouterPolicyIdentities, EdgeRouterPolicyRouters, "listIdentityEdgeRouters"),
	counterparts(EdgeRouterPolicyRouters, EdgeRouterPolicyIdentities, "listEdgeRouterIdentities"),
	counterparts(ServiceEdgeRouterPolicyServices, ServiceEdgeRouterPolicyRouters, "listServiceEdgeRouters"),
	counterparts(ServiceEdgeRouterPolicyRouters, ServiceEdgeRouterPolicyServices, "listEdgeRouterServices"),

	referrers(model.Authenticators.Def, "identityId", model.Identities.Def, "getIdentityAuthenticators"),
	referrers(model.Enrollments.Def, "identityId", model.Identities.Def, "getIdentityEnrollments"),
	referrers(model.ServiceConfigs.Def, "identityId", model.Identities.Def, "listIdentitysServiceConfigs"),
	referrers(model.Terminators.Def, "service", model.Services.Def, "listServiceTerminators"),
	referrers(model.Configs.Def, "configTypeId", model.ConfigTypes.Def, "listConfigsForConfigType"),
	referrers(model.Services.Def, "configs", model.Configs.Def, "listConfigServices"),

	{From: model.Services.Def, Path: model.Configs.Path, To: model.Configs.Def, Name: "listServiceConfig", Find: configsOfService},
}

// Related is the records that a relation found. It refers to the snapshot's own.
type Related struct {
	snap *state.Snapshot
	def  *kind.Def
	bits *cow.Bitmap           // for kinds with ordinals,
	seq  iter.Seq[kind.Record] // and for others
}

// Records yields the records, each once, by id.
func (s Related) Records() iter.Seq[kind.Record] {
	if s.bits != nil {
		return s.snap.Within(s.def, s.bits)
	}
	return s.seq
}

// members leads from a policy to those that its list selects, whether it counts
// now or not: who prepares one for tomorrow wants to see whom it will be about.
func members(l *List, name string) Relation {
	return Relation{From: l.policies, Path: l.members.Path, To: l.members, Name: name, Find: func(snap *state.Snapshot, id string) Related {
		var u union
		if policy, ok := snap.Lookup(l.policies, id); ok {
			l.addListed(&u, snap, policy)
		}
		return Related{snap: snap, def: l.members, bits: u.set()}
	}}
}

// policies leads from a record to the policies whose list selects it.
func policies(l *List, name string) Relation {
	return Relation{From: l.members, Path: l.policies.Path, To: l.policies, Name: name, Find: func(snap *state.Snapshot, id string) Related {
		var found []kind.Record
		if member, ok := snap.Lookup(l.members, id); ok {
			found = slices.SortedFunc(l.Policies(snap, member), byID)
		}
		return Related{seq: slices.Values(found)}
	}}
}

// counterparts leads from a record to those on the other side of its policies.
func counterparts(from, to *List, name string) Relation {
	return Relation{From: from.members, Path: to.members.Path, To: to.members, Name: name, Find: func(snap *state.Snapshot, id string) Related {
		return Related{snap: snap, def: to.members, bits: across(snap, from, to, id)}
	}}
}

// typed is a relation by way of service policies, which may be narrowed to those
// of one type.
func typed(r Relation, from, to *List) Relation {
	r.Through = func(snap *state.Snapshot, id, policyType string) Related {
		return Related{snap: snap, def: to.members, bits: acrossSome(snap, from, to, id, func(policy kind.Record) bool {
			return policy.(*model.ServicePolicy).Type == policyType
		})}
	}
	return r
}

// referrers leads from a record to those that hold its id in a field.
func referrers(to *kind.Def, field string, from *kind.Def, name string) Relation {
	return Relation{From: from, Path: to.Path, To: to, Name: name, Find: func(snap *state.Snapshot, id string) Related {
		return Related{seq: snap.Select(to, field, id)}
	}}
}

func configsOfService(snap *state.Snapshot, id string) Related {
	var found []kind.Record
	if service, ok := model.Services.Get(snap, id); ok {
		for _, id := range slices.Sorted(slices.Values(service.Configs)) {
			if config, ok := snap.Lookup(model.Configs.Def, id); ok {
				found = append(found, config)
			}
		}
	}
	return Related{seq: slices.Values(found)}
}
