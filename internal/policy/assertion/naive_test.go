package assertion_test

import (
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// selects is the rule of role lists.
func selects(roles []string, semantic, id string, attributes []string) bool {
	if slices.Contains(roles, "#all") || slices.Contains(roles, "@"+id) {
		return true
	}
	wanted, found := 0, 0
	for _, role := range roles {
		if name, ok := strings.CutPrefix(role, "#"); ok {
			wanted++
			if slices.Contains(attributes, name) {
				found++
			}
		}
	}
	if semantic == model.AnyOf {
		return found > 0
	}
	return wanted > 0 && wanted == found
}

// may tries the policies of a network one by one.
func may(snap *state.Snapshot, i *model.Identity, s *model.Service, typ string) bool {
	for p := range model.ServicePolicies.All(snap) {
		if p.Type == typ && selects(p.IdentityRoles, p.Semantic, i.ID, i.RoleAttributes) && selects(p.ServiceRoles, p.Semantic, s.ID, s.RoleAttributes) {
			return true
		}
	}
	return false
}

func otherType(typ string) string {
	if typ == model.Dial {
		return model.Bind
	}
	return model.Dial
}

// broken tries everybody: who and what breaks an assertion.
func broken(snap *state.Snapshot, a *model.Assertion) map[string]bool {
	found := map[string]bool{}
	if a.Expect == model.NoPolicy {
		for p := range model.ServicePolicies.All(snap) {
			listed := func(list []string) func(string) bool {
				return func(role string) bool { return slices.Contains(list, role) }
			}
			if p.Type == a.Type && slices.ContainsFunc(a.IdentityRoles, listed(p.IdentityRoles)) && slices.ContainsFunc(a.ServiceRoles, listed(p.ServiceRoles)) {
				found[p.ID] = true
			}
		}
		return found
	}
	for s := range model.Services.All(snap) {
		if !selects(a.ServiceRoles, a.Semantic, s.ID, s.RoleAttributes) {
			continue
		}
		used, met := false, false
		for i := range model.Identities.All(snap) {
			met = met || may(snap, i, s, otherType(a.Type))
			if !selects(a.IdentityRoles, a.Semantic, i.ID, i.RoleAttributes) {
				continue
			}
			can := may(snap, i, s, a.Type)
			used = used || can
			if a.Expect == model.Never && can || a.Expect == model.Always && !can {
				found[i.ID+" "+s.ID] = true
			}
		}
		if a.Expect == model.Somebody && met && !used {
			found[s.ID] = true
		}
	}
	return found
}

// pointless reports whether a new form of an assertion is about nobody.
func pointless(snap *state.Snapshot, old, a *model.Assertion) bool {
	people, things := [][]string{}, [][]string{}
	for i := range model.Identities.All(snap) {
		people = append(people, append([]string{"@" + i.ID}, i.RoleAttributes...))
	}
	for s := range model.Services.All(snap) {
		things = append(things, append([]string{"@" + s.ID}, s.RoleAttributes...))
	}
	empty := func(roles, before []string, members [][]string) bool {
		if len(roles) == 0 {
			return true
		}
		fresh := old == nil || old.Semantic != a.Semantic
		for _, role := range roles {
			if old != nil && slices.Contains(before, role) {
				continue
			}
			fresh = true
			had := func(m []string) bool { return slices.Contains(m[1:], role[1:]) }
			if role[0] == '#' && role != "#all" && !slices.ContainsFunc(members, had) {
				return true
			}
		}
		return fresh && !slices.ContainsFunc(members, func(m []string) bool { return selects(roles, a.Semantic, m[0][1:], m[1:]) })
	}
	var oldPeople, oldThings []string
	if old != nil {
		oldPeople, oldThings = old.IdentityRoles, old.ServiceRoles
	}
	return empty(a.IdentityRoles, oldPeople, people) || empty(a.ServiceRoles, oldThings, things)
}

// verdict is what must be said of a step: how many break each assertion after it who
// did not before, and which are about nobody, as -1.
func verdict(step state.Step) map[string]int {
	all := map[string]int{}
	for a := range model.Assertions.All(step.After) {
		old, had := model.Assertions.Get(step.Before, a.ID)
		if !had {
			old = nil
		}
		if old != a && pointless(step.After, old, a) {
			all[a.ID] = -1
			continue
		}
		now, then := broken(step.After, a), map[string]bool{}
		if had && old.Expect == a.Expect && old.Type == a.Type {
			then = broken(step.Before, old)
		}
		for who := range now {
			if !then[who] {
				all[a.ID]++
			}
		}
	}
	return all
}

func has(r kind.Reader, d *kind.Def, id string) bool {
	_, ok := r.Lookup(d, id)
	return ok
}
