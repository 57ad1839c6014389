package access

import (
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Affected returns the identities, by their ordinals in after, for which
// policies now give other services, or the same with other permissions,
// configs or posture checks, and those that have no second factor any more to
// pass such checks with. It may name some for which nothing changed, but only
// if a policy of theirs has to do with the change. What edge routers they may
// use does not count, and neither does what admins see without a policy.
//
// changed must hold every record that differs between the snapshots, and after
// must have grown out of before: a fresh load numbers records anew.
func Affected(before, after *state.Snapshot, changed []state.Ref) *cow.Bitmap {
	if !slices.ContainsFunc(changed, concernsOthers) {
		return affectedAlone(before, after, changed)
	}
	all := everyone(after, model.Identities.Def)
	identities := union{all: all}
	for _, c := range changed {
		if c.Def == model.ServicePolicies.Def {
			addPolicy(&identities, before, after, c.ID)
		} else {
			addOwn(&identities, before, after, c)
		}
	}
	for _, snap := range []*state.Snapshot{before, after} {
		t := touched{snap: snap, identities: union{all: snap.Tagged(model.Identities.Def, "")}}
		for _, c := range changed {
			t.add(c, before, after)
		}
		identities.add(t.affected())
	}
	if identities.full() {
		return all
	}
	// Ordinals of deleted identities are nobody's. If somebody new has one, it
	// is among the changed identities.
	left := identities.set().Clone()
	left.And(all)
	return left
}

// concernsOthers reports whether a record of this kind has a part in what
// identities see, other than as one of them.
func concernsOthers(c state.Ref) bool {
	switch c.Def {
	case model.ServicePolicies.Def, model.Services.Def, model.PostureChecks.Def,
		model.Configs.Def, model.ConfigTypes.Def, model.ServiceConfigs.Def:
		return true
	}
	return false
}

// affectedAlone is Affected where nothing but identities changed: no set of
// everyone is needed, which in a large network is large.
func affectedAlone(before, after *state.Snapshot, changed []state.Ref) *cow.Bitmap {
	var identities union
	for _, c := range changed {
		addOwn(&identities, before, after, c)
	}
	return identities.set()
}

// addOwn adds the identity that a changed record is or belongs to, if the
// change can mean something to it.
func addOwn(identities *union, before, after *state.Snapshot, c state.Ref) {
	switch c.Def {
	case model.Identities.Def:
		addIdentity(identities, before, after, c.ID)
	case model.MFAs.Def:
		old, had := model.MFAs.Get(before, c.ID)
		if _, has := model.MFAs.Get(after, c.ID); has || !had || !old.IsVerified {
			return
		}
		if ord, ok := after.Ordinal(model.Identities.Def, old.IdentityID); ok {
			identities.addOne(ord)
		}
	}
}

// addIdentity adds a changed identity if it is new, has become an admin or has
// ceased to be one, or if policies that give something select it that did not,
// or do no more. What changed of the others is for their own records to tell.
func addIdentity(identities *union, before, after *state.Snapshot, id string) {
	next, ok := model.Identities.Get(after, id)
	if !ok {
		return
	}
	ord, _ := after.Ordinal(model.Identities.Def, id)
	old, existed := model.Identities.Get(before, id)
	if existed {
		former, _ := before.Ordinal(model.Identities.Def, id)
		existed = former == ord // or else it was deleted and created again
	}
	switch {
	case !existed || old.Admin() != next.Admin():
	case slices.Equal(old.RoleAttributes, next.RoleAttributes):
		return
	case !gains(before, old, next) && !gains(after, next, old):
		return
	}
	identities.addOne(ord)
}

// gains reports whether a policy of the snapshot gives something to one form of
// an identity and nothing to another.
func gains(snap *state.Snapshot, to, notTo *model.Identity) bool {
	without := keysOf(model.Identities.Def, notTo)
	for rec := range ServicePolicyIdentities.Policies(snap, to) {
		p := rec.(*model.ServicePolicy)
		if !without.match(p.IdentityRoles, p.Semantic) && !ServicePolicyServices.Members(snap, p).IsEmpty() {
			return true
		}
	}
	return false
}

// addPolicy adds those who get something from a changed policy, before or
// after. Where only its identities changed, that is those who came or went.
func addPolicy(identities *union, before, after *state.Snapshot, id string) {
	old, had := model.ServicePolicies.Get(before, id)
	next, has := model.ServicePolicies.Get(after, id)
	var was, is union
	if had {
		addBeneficiaries(&was, before, old)
	}
	if has {
		addBeneficiaries(&is, after, next)
	}
	if !had || !has || !givesSame(old, next) {
		identities.add(was.bits)
		identities.add(is.bits)
		return
	}
	if !slices.Equal(old.IdentityRoles, next.IdentityRoles) {
		moved := was.set().Clone()
		moved.Xor(is.set())
		identities.add(moved)
	}
}

// givesSame reports whether two versions of a policy give whom they select the
// same, as far as that is up to the policy.
func givesSame(a, b *model.ServicePolicy) bool {
	return a.Type == b.Type && a.Semantic == b.Semantic && a.Counts() == b.Counts() &&
		slices.Equal(a.ServiceRoles, b.ServiceRoles) && slices.Equal(a.PostureCheckRoles, b.PostureCheckRoles)
}

// addBeneficiaries adds the identities to which a policy gives any service.
func addBeneficiaries(identities *union, snap *state.Snapshot, policy kind.Record) {
	if !ServicePolicyServices.Members(snap, policy).IsEmpty() {
		ServicePolicyIdentities.add(identities, snap, policy)
	}
}

// touched is what a change means within one snapshot, on its way through
// policies to identities.
type touched struct {
	snap       *state.Snapshot
	services   union
	checks     union
	identities union // reached by other ways
}

// add follows a changed record to the services and checks of the snapshot.
func (t *touched) add(c state.Ref, before, after *state.Snapshot) {
	switch c.Def {
	case model.Services.Def:
		t.mark(&t.services, c.Def, c.ID)
	case model.PostureChecks.Def:
		t.mark(&t.checks, c.Def, c.ID)
	case model.Configs.Def:
		t.config(c.ID)
	case model.ConfigTypes.Def:
		if !renamed(before, after, c.ID) {
			return
		}
		for config := range model.Configs.Select(t.snap, "configTypeId", c.ID) {
			t.config(config.ID)
		}
	case model.ServiceConfigs.Def:
		if override, ok := model.ServiceConfigs.Get(t.snap, c.ID); ok {
			t.override(override)
		}
	}
}

// renamed reports whether a config type has another name: of a type, clients
// see nothing else.
func renamed(before, after *state.Snapshot, id string) bool {
	old, had := model.ConfigTypes.Get(before, id)
	next, has := model.ConfigTypes.Get(after, id)
	return had != has || had && old.Name != next.Name
}

// config marks the services that use a config and the identities that get it
// in place of another.
func (t *touched) config(id string) {
	for service := range model.Services.Select(t.snap, "configs", id) {
		t.mark(&t.services, model.Services.Def, service.ID)
	}
	for override := range model.ServiceConfigs.Select(t.snap, "configId", id) {
		t.override(override)
	}
}

// override marks the identity that gets a config in place of another, if it
// sees the service at all.
func (t *touched) override(o *model.ServiceConfig) {
	identity, ok := model.Identities.Get(t.snap, o.IdentityID)
	if ok && (identity.Admin() || MayDial(t.snap, identity.ID, o.ServiceID) || MayBind(t.snap, identity.ID, o.ServiceID)) {
		t.mark(&t.identities, model.Identities.Def, identity.ID)
	}
}

func (t *touched) mark(set *union, pop *kind.Def, id string) {
	if ord, ok := t.snap.Ordinal(pop, id); ok {
		set.addOne(ord)
	}
}

// affected returns the identities that the policies lead to.
func (t *touched) affected() *cow.Bitmap {
	done := map[string]bool{}
	t.follow(ServicePolicyServices, t.services.set(), done)
	t.follow(ServicePolicyChecks, t.checks.set(), done)
	return t.identities.set()
}

// follow adds the identities of every policy whose list selects a member of
// the set. It asks for policies once a role, not once a member: many members
// have few attributes among them.
func (t *touched) follow(l *List, set *cow.Bitmap, done map[string]bool) {
	asked := map[string]bool{}
	for member := range t.snap.Within(l.members, set) {
		for _, key := range keysOf(l.members, member) {
			if t.identities.full() {
				return
			}
			if asked[key] {
				continue
			}
			asked[key] = true
			for policy := range t.snap.Select(l.policies, l.field, key) {
				if id := policy.Base().ID; !done[id] && l.hits(t.snap, policy, key, set) {
					done[id] = true
					addBeneficiaries(&t.identities, t.snap, policy)
				}
			}
		}
	}
}

// hits reports whether the policy's list, which holds a role that one in the
// set has, selects any of them. Only AllOf can ask for more than that role.
func (l *List) hits(snap *state.Snapshot, policy kind.Record, role string, set *cow.Bitmap) bool {
	_, semantic := l.read(policy)
	return role == all || role[0] == '@' || semantic == model.AnyOf || l.Members(snap, policy).Intersects(set)
}
