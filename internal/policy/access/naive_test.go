package access_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// naive answers every question by looking at everything. It uses neither
// bitmaps nor indexes, only lists of records.
type naive struct {
	members  map[string][]member // by collection
	policies map[string][]policy // by collection
	snap     *state.Snapshot
}

type member struct {
	id         string
	attributes []string
}

type policy struct {
	id, semantic, typ string
	roles             map[string][]string // by collection of those it selects
}

func newNaive(snap *state.Snapshot) naive {
	n := naive{map[string][]member{}, map[string][]policy{}, snap}
	for r := range model.Identities.All(snap) {
		n.members["identities"] = append(n.members["identities"], member{r.ID, r.RoleAttributes})
	}
	for r := range model.Services.All(snap) {
		n.members["services"] = append(n.members["services"], member{r.ID, r.RoleAttributes})
	}
	for r := range model.EdgeRouters.All(snap) {
		n.members["edge-routers"] = append(n.members["edge-routers"], member{r.ID, r.RoleAttributes})
	}
	for r := range model.PostureChecks.All(snap) {
		n.members["posture-checks"] = append(n.members["posture-checks"], member{r.ID, r.RoleAttributes})
	}
	for p := range model.ServicePolicies.All(snap) {
		n.policies["service-policies"] = append(n.policies["service-policies"], policy{p.ID, p.Semantic, p.Type, map[string][]string{
			"identities": p.IdentityRoles, "services": p.ServiceRoles, "posture-checks": p.PostureCheckRoles,
		}})
	}
	for p := range model.EdgeRouterPolicies.All(snap) {
		n.policies["edge-router-policies"] = append(n.policies["edge-router-policies"], policy{p.ID, p.Semantic, "", map[string][]string{
			"identities": p.IdentityRoles, "edge-routers": p.EdgeRouterRoles,
		}})
	}
	for p := range model.ServiceEdgeRouterPolicies.All(snap) {
		n.policies["service-edge-router-policies"] = append(n.policies["service-edge-router-policies"], policy{p.ID, p.Semantic, "", map[string][]string{
			"services": p.ServiceRoles, "edge-routers": p.EdgeRouterRoles,
		}})
	}
	return n
}

// selects is the rule: a list selects who is listed by id, everyone if #all is
// listed, and by attributes all or any as the semantic says.
func selects(roles []string, semantic string, m member) bool {
	return slices.Contains(roles, "#all") || selectsPlain(roles, semantic, m)
}

// selectsPlain is the rule without #all, as list requests have it.
func selectsPlain(roles []string, semantic string, m member) bool {
	if slices.Contains(roles, "@"+m.id) {
		return true
	}
	wanted, found := map[string]bool{}, map[string]bool{}
	for _, role := range roles {
		if name, ok := strings.CutPrefix(role, "#"); ok {
			wanted[name] = true
			if slices.Contains(m.attributes, name) {
				found[name] = true
			}
		}
	}
	if semantic == "AnyOf" {
		return len(found) > 0
	}
	return len(wanted) > 0 && len(found) == len(wanted)
}

func (p policy) selects(collection string, m member) bool {
	return selects(p.roles[collection], p.semantic, m)
}

// list answers GET /<from>/<id>/<path>, sorted.
func (n naive) list(from, id, path string) []string {
	found := map[string]bool{}
	switch {
	case n.isPolicy(from):
		for _, p := range n.policies[from] {
			for _, m := range n.members[path] {
				if p.id == id && p.selects(path, m) {
					found[m.id] = true
				}
			}
		}
	case n.isPolicy(path):
		for _, p := range n.policies[path] {
			for _, m := range n.members[from] {
				if m.id == id && p.selects(from, m) {
					found[p.id] = true
				}
			}
		}
	case joining[[2]string{from, path}] != "":
		for _, p := range n.policies[joining[[2]string{from, path}]] {
			for _, m := range n.members[from] {
				for _, other := range n.members[path] {
					if m.id == id && p.selects(from, m) && p.selects(path, other) {
						found[other.id] = true
					}
				}
			}
		}
	default:
		n.referring(from, id, path, found)
	}
	return slices.Sorted(maps.Keys(found))
}

func (n naive) isPolicy(collection string) bool { return strings.HasSuffix(collection, "-policies") }

// joining names the kind of policy between two collections.
var joining = map[[2]string]string{
	{"identities", "services"}:     "service-policies",
	{"services", "identities"}:     "service-policies",
	{"identities", "edge-routers"}: "edge-router-policies",
	{"edge-routers", "identities"}: "edge-router-policies",
	{"services", "edge-routers"}:   "service-edge-router-policies",
	{"edge-routers", "services"}:   "service-edge-router-policies",
}

func (n naive) referring(from, id, path string, found map[string]bool) {
	add := func(owner string, rec kind.Record) {
		if owner == id {
			found[rec.Base().ID] = true
		}
	}
	switch from + "/" + path {
	case "identities/authenticators":
		for r := range model.Authenticators.All(n.snap) {
			add(r.IdentityID, r)
		}
	case "identities/enrollments":
		for r := range model.Enrollments.All(n.snap) {
			add(r.IdentityID, r)
		}
	case "identities/service-configs":
		for r := range model.ServiceConfigs.All(n.snap) {
			add(r.IdentityID, r)
		}
	case "services/terminators":
		for r := range model.Terminators.All(n.snap) {
			add(r.ServiceID, r)
		}
	case "config-types/configs":
		for r := range model.Configs.All(n.snap) {
			add(r.ConfigTypeID, r)
		}
	case "services/configs":
		for s := range model.Services.All(n.snap) {
			for r := range model.Configs.All(n.snap) {
				if slices.Contains(s.Configs, r.ID) {
					add(s.ID, r)
				}
			}
		}
	case "configs/services":
		for s := range model.Services.All(n.snap) {
			if slices.Contains(s.Configs, id) {
				found[s.ID] = true
			}
		}
	default:
		panic("no such list: " + from + "/" + path)
	}
}

func (n naive) identity(id string) (member, bool) { return find(n.members["identities"], id) }
func (n naive) service(id string) (member, bool)  { return find(n.members["services"], id) }

func find(all []member, id string) (member, bool) {
	i := slices.IndexFunc(all, func(m member) bool { return m.id == id })
	if i < 0 {
		return member{}, false
	}
	return all[i], true
}

// granting lists the policies of a type that give an identity a service.
func (n naive) granting(identityID, serviceID, typ string) []string {
	list := []string{}
	i, hasIdentity := n.identity(identityID)
	s, hasService := n.service(serviceID)
	for _, p := range n.policies["service-policies"] {
		if hasIdentity && hasService && p.typ == typ && p.selects("identities", i) && p.selects("services", s) {
			list = append(list, p.id)
		}
	}
	return list
}

// view is all that an identity sees of its services, as text. It is empty for
// one that sees nothing or does not exist.
func (n naive) view(identityID string, admin bool) string {
	i, _ := model.Identities.Get(n.snap, identityID)
	if i == nil {
		return ""
	}
	var out strings.Builder
	for s := range model.Services.All(n.snap) {
		dial, bind := n.granting(i.ID, s.ID, model.Dial), n.granting(i.ID, s.ID, model.Bind)
		all := admin && i.IsAdmin
		if len(dial)+len(bind) == 0 && !all {
			continue
		}
		fmt.Fprintf(&out, "service %s dial %v bind %v\n", encode(model.Services.Def, s), all || len(dial) > 0, all || len(bind) > 0)
		for name, data := range n.configs(i.ID, s) {
			fmt.Fprintf(&out, "  config %s %s\n", name, data)
		}
		for _, id := range slices.Concat(dial, bind) {
			p, _ := model.ServicePolicies.Get(n.snap, id)
			fmt.Fprintf(&out, "  policy %s %s\n", id, p.Type)
			for _, check := range n.list("service-policies", id, "posture-checks") {
				k, _ := n.snap.Lookup(model.PostureChecks.Def, check)
				fmt.Fprintf(&out, "    check %s\n", encode(model.PostureChecks.Def, k))
			}
		}
	}
	return out.String()
}

// configs yields the configs of a service by the names of their types, in
// order, an identity's own in place of the service's.
func (n naive) configs(identityID string, s *model.Service) func(yield func(string, string) bool) {
	byType := map[string]*model.Config{}
	for _, id := range s.Configs {
		c, _ := model.Configs.Get(n.snap, id)
		byType[c.ConfigTypeID] = c
	}
	for o := range model.ServiceConfigs.All(n.snap) {
		if o.IdentityID == identityID && o.ServiceID == s.ID {
			byType[o.ConfigTypeID], _ = model.Configs.Get(n.snap, o.ConfigID)
		}
	}
	return func(yield func(string, string) bool) {
		for _, id := range slices.Sorted(maps.Keys(byType)) {
			typ, _ := model.ConfigTypes.Get(n.snap, id)
			if !yield(typ.Name, string(byType[id].Data)) {
				return
			}
		}
	}
}

func encode(d *kind.Def, rec kind.Record) string {
	b, err := d.Encode(rec)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// related reports whether a change of one record can mean something to an
// identity at this moment, through a policy or config of its own.
func (n naive) related(identityID string, c state.Ref) bool {
	i, ok := n.identity(identityID)
	if !ok {
		return false
	}
	switch c.Def {
	case model.Identities.Def:
		return c.ID == identityID
	case model.ServiceConfigs.Def:
		o, ok := model.ServiceConfigs.Get(n.snap, c.ID)
		return ok && o.IdentityID == identityID
	case model.ConfigTypes.Def:
		for config := range model.Configs.All(n.snap) {
			if config.ConfigTypeID == c.ID && n.related(identityID, state.Ref{Def: model.Configs.Def, ID: config.ID}) {
				return true
			}
		}
		return false
	case model.Configs.Def:
		for o := range model.ServiceConfigs.All(n.snap) {
			if o.IdentityID == identityID && o.ConfigID == c.ID {
				return true
			}
		}
		for s := range model.Services.All(n.snap) {
			if slices.Contains(s.Configs, c.ID) && n.related(identityID, state.Ref{Def: model.Services.Def, ID: s.ID}) {
				return true
			}
		}
		return false
	}
	for _, p := range n.policies["service-policies"] {
		if !p.selects("identities", i) {
			continue
		}
		services := n.list("service-policies", p.id, "services")
		if len(services) == 0 {
			continue
		}
		switch c.Def {
		case model.ServicePolicies.Def:
			if p.id == c.ID {
				return true
			}
		case model.Services.Def:
			if slices.Contains(services, c.ID) {
				return true
			}
		case model.PostureChecks.Def:
			if slices.Contains(n.list("service-policies", p.id, "posture-checks"), c.ID) {
				return true
			}
		}
	}
	return false
}
