package explain

import (
	"cmp"
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// Ways are through which policies and roles an identity comes to its services, or a
// service to those who may use it. What else it takes is for Explain.
type Ways struct {
	ID          string     `json:"id" doc:"Id of the identity or service that was asked for."`
	Name        string     `json:"name" doc:"What people call it."`
	Admin       bool       `json:"admin" doc:"Whether it is an admin, who may use every service without a policy. What is only for that is not listed."`
	PolicyCount int        `json:"policyCount" doc:"How many service policies select it."`
	Policies    []Passage  `json:"policies" doc:"Service policies that select it, by name; the first hundred."`
	Count       int        `json:"count" doc:"How many services it may use or host by these policies, or how many identities may use or host it."`
	Reached     []Attained `json:"reached" doc:"The services, or the identities, by name; a page of them."`
}

// Passage is a policy that leads from one side to the other.
type Passage struct {
	ID       string    `json:"id" doc:"Id of the policy."`
	Name     string    `json:"name" doc:"Name of the policy."`
	Type     string    `json:"type" kind:"enum=Dial|Bind" doc:"Whether it is about using services (Dial) or hosting them (Bind)."`
	Roles    []RoleEnd `json:"roles" doc:"Roles by which it selects what was asked for."`
	Ends     []RoleEnd `json:"ends" doc:"Roles of the other side, in the order of the policy; the first twenty."`
	EndCount int       `json:"endCount" doc:"How many roles the other side has."`
	Count    int       `json:"count" doc:"How many records of the other side it leads to."`
}

// RoleEnd is a role, and how many it selects.
type RoleEnd struct {
	Role  string `json:"role" doc:"The role: #attribute, @id or #all."`
	Name  string `json:"name" doc:"The role as people read it, with a name in the place of an id."`
	Count int    `json:"count" doc:"How many of those that the policy selects have it; 1 where it is about one record."`
}

// Attained is a record on the other side.
type Attained struct {
	ID   string `json:"id" doc:"Id of the service or identity."`
	Name string `json:"name" doc:"Name of the service or identity."`
	Dial bool   `json:"dial" doc:"Whether the service may be used."`
	Bind bool   `json:"bind" doc:"Whether the service may be hosted."`
	Ways []Way  `json:"ways" doc:"By which policies; the first twenty, by name."`
}

// Way is one policy by which a record is reached.
type Way struct {
	PolicyID string    `json:"policyId" doc:"Id of the policy."`
	Policy   string    `json:"policy" doc:"Name of the policy."`
	Type     string    `json:"type" kind:"enum=Dial|Bind" doc:"Whether it is about using (Dial) or hosting (Bind)."`
	Roles    []RoleEnd `json:"roles" doc:"Roles by which the policy selects the record."`
}

// Bounds of what ways tell of one record.
const (
	maxPassages = 100
	maxEnds     = 20
	maxWays     = 20
)

// walk is the search for ways from one side of service policies to the other.
type walk struct {
	snap      *state.Snapshot
	from, to  *access.List
	near, far *kind.Def // the kind that was asked for, and the other
	roles     func(*model.ServicePolicy) []string
}

// passed is a policy that selects what was asked for, and what it leads to.
type passed struct {
	policy *model.ServicePolicy
	reach  *cow.Bitmap
}

// FromIdentity finds the ways from an identity to its services, of which it lists those
// from one place to another.
func FromIdentity(snap *state.Snapshot, id string, first, end int) (Ways, error) {
	w := walk{
		snap, access.ServicePolicyIdentities, access.ServicePolicyServices, model.Identities.Def, model.Services.Def,
		func(p *model.ServicePolicy) []string { return p.ServiceRoles },
	}
	ways, err := w.find(id, first, end)
	if identity, ok := model.Identities.Get(snap, id); ok {
		ways.Admin = identity.Admin()
	}
	return ways, err
}

// FromService finds the ways from a service to those who may use it, in the same way.
func FromService(snap *state.Snapshot, id string, first, end int) (Ways, error) {
	w := walk{
		snap, access.ServicePolicyServices, access.ServicePolicyIdentities, model.Services.Def, model.Identities.Def,
		func(p *model.ServicePolicy) []string { return p.IdentityRoles },
	}
	return w.find(id, first, end)
}

func (w walk) find(id string, first, end int) (Ways, error) {
	rec, ok := w.snap.Lookup(w.near, id)
	if !ok {
		return Ways{}, fault.NotFound(w.near.Name, id)
	}
	policies := w.policies(rec)
	out := Ways{ID: id, Name: w.near.Label(rec), PolicyCount: len(policies), Policies: []Passage{}, Reached: []Attained{}}
	dial, bind := new(cow.Bitmap), new(cow.Bitmap)
	for i, p := range policies {
		if p.policy.Type == model.Dial {
			dial.Or(p.reach)
		} else {
			bind.Or(p.reach)
		}
		if i < maxPassages {
			out.Policies = append(out.Policies, w.passage(p, rec))
		}
	}
	all := dial.Clone()
	all.Or(bind)
	out.Count = int(all.GetCardinality())
	for _, far := range w.page(all, first, end) {
		ord, _ := w.snap.Ordinal(w.far, far.Base().ID)
		out.Reached = append(out.Reached, Attained{
			ID: far.Base().ID, Name: w.far.Label(far), Dial: dial.Contains(ord), Bind: bind.Contains(ord), Ways: w.ways(policies, far, ord),
		})
	}
	return out, nil
}

// policies are those that select a record, by name.
func (w walk) policies(rec kind.Record) (list []passed) {
	for policy := range w.from.Policies(w.snap, rec) {
		list = append(list, passed{policy.(*model.ServicePolicy), w.to.Members(w.snap, policy)})
	}
	slices.SortFunc(list, func(a, b passed) int {
		return cmp.Or(cmp.Compare(a.policy.Name, b.policy.Name), cmp.Compare(a.policy.ID, b.policy.ID))
	})
	return list
}

// passage says by which roles a policy leads on.
func (w walk) passage(p passed, rec kind.Record) Passage {
	roles := w.roles(p.policy)
	return Passage{
		ID: p.policy.ID, Name: p.policy.Name, Type: p.policy.Type, Count: int(p.reach.GetCardinality()), EndCount: len(roles),
		Roles: w.ends(w.near, w.from.Reasons(p.policy, rec), nil), Ends: w.ends(w.far, roles[:min(len(roles), maxEnds)], p.reach),
	}
}

// ends are roles over a kind, with how many of a set have each; one if there is none.
func (w walk) ends(of *kind.Def, roles []string, among *cow.Bitmap) []RoleEnd {
	list := make([]RoleEnd, len(roles))
	for i, role := range roles {
		list[i] = RoleEnd{Role: role, Name: role, Count: 1}
		if rec, ok := w.snap.Lookup(of, strings.TrimPrefix(role, "@")); ok && strings.HasPrefix(role, "@") {
			list[i].Name = "@" + of.Label(rec)
		}
		if among != nil {
			list[i].Count = int(among.AndCardinality(access.Matching(w.snap, of, []string{role}, model.AnyOf)))
		}
	}
	return list
}

// page is some records of a set, in the order of their names.
func (w walk) page(set *cow.Bitmap, first, end int) []kind.Record {
	all := slices.Collect(w.snap.At(w.far, set))
	slices.SortFunc(all, func(a, b kind.Record) int {
		return cmp.Or(cmp.Compare(w.far.Label(a), w.far.Label(b)), cmp.Compare(a.Base().ID, b.Base().ID))
	})
	return all[min(first, len(all)):min(end, len(all))]
}

// ways are the policies by which a record is reached.
func (w walk) ways(policies []passed, far kind.Record, ord uint32) []Way {
	list := []Way{}
	for _, p := range policies {
		if p.reach.Contains(ord) && len(list) < maxWays {
			list = append(list, Way{PolicyID: p.policy.ID, Policy: p.policy.Name, Type: p.policy.Type, Roles: w.ends(w.far, w.to.Reasons(p.policy, far), nil)})
		}
	}
	return list
}
