package lint

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// side is one of the role lists of a policy.
type side struct {
	flag    string // of the command line
	members *kind.Def
	roles   []string
	needed  bool // whether a policy that selects none gives nobody anything
}

// policy is one of any kind.
type policy struct {
	*kind.Def
	kind.Record
	*model.Validity
	semantic string
	sides    []side
}

// policies yields all of every kind but those that a controller made for itself.
func (l *look) policies() iter.Seq[policy] {
	identities := func(roles []string) side { return side{"identity-role", model.Identities.Def, roles, true} }
	services := func(roles []string) side { return side{"service-role", model.Services.Def, roles, true} }
	routers := func(roles []string) side { return side{"edge-router-role", model.EdgeRouters.Def, roles, true} }
	return func(yield func(policy) bool) {
		for p := range model.ServicePolicies.All(l.snap) {
			checks := side{"posture-check-role", model.PostureChecks.Def, p.PostureCheckRoles, false}
			if !yield(policy{model.ServicePolicies.Def, p, &p.Validity, p.Semantic, []side{identities(p.IdentityRoles), services(p.ServiceRoles), checks}}) {
				return
			}
		}
		for p := range model.EdgeRouterPolicies.All(l.snap) {
			if !p.Inside && !yield(policy{model.EdgeRouterPolicies.Def, p, &p.Validity, p.Semantic, []side{identities(p.IdentityRoles), routers(p.EdgeRouterRoles)}}) {
				return
			}
		}
		for p := range model.ServiceEdgeRouterPolicies.All(l.snap) {
			if !p.Inside && !yield(policy{model.ServiceEdgeRouterPolicies.Def, p, &p.Validity, p.Semantic, []side{services(p.ServiceRoles), routers(p.EdgeRouterRoles)}}) {
				return
			}
		}
	}
}

// selected is what one side of a policy selects.
func (l *look) selected(p policy, s side) *cow.Bitmap {
	return access.Matching(l.snap, s.members, s.roles, p.semantic)
}

// empty is the first side of a policy that selects nobody and has to.
func (l *look) empty(p policy) (side, bool) {
	for _, s := range p.sides {
		if s.needed && l.selected(p, s).IsEmpty() {
			return s, true
		}
	}
	return side{}, false
}

func plural(d *kind.Def) string { return strings.ReplaceAll(d.Path, "-", " ") }

// idlePolicies select nobody, or nothing.
func idlePolicies(l *look, found func(Finding)) {
	for p := range l.policies() {
		if !p.Counts() {
			continue
		}
		if s, is := l.empty(p); is {
			what := "selects no " + plural(s.members)
			if len(s.roles) > 0 {
				what += ", by " + strings.Join(s.roles, " ")
			}
			found(l.remove(p.Def, p.Record, what))
		}
	}
}

// missing reports whether nobody has an attribute.
func (l *look) missing(d *kind.Def, role string) bool {
	attribute, is := strings.CutPrefix(role, "#")
	if !is || attribute == "all" {
		return false
	}
	key := d.Name + role
	gone, known := l.gaps[key]
	if !known {
		gone = access.Matching(l.snap, d, []string{role}, model.AnyOf).IsEmpty()
		l.gaps[key] = gone
	}
	return gone
}

// unknownRoles are asked for by policies that give somebody something, and nobody has
// them. To remove them changes nothing for anybody: of a list that asks for all of its
// attributes, and for one that nobody has, none of them counts.
func unknownRoles(l *look, found func(Finding)) {
	for p := range l.policies() {
		if _, idle := l.empty(p); idle || !p.Counts() {
			continue
		}
		for _, s := range p.sides {
			if slices.Contains(s.roles, "#all") {
				continue
			}
			missing := func(role string) bool { return l.missing(s.members, role) }
			gone := filter(s.roles, missing)
			if len(gone) == 0 {
				continue
			}
			out := gone
			if p.semantic != model.AnyOf {
				out = filter(s.roles, func(role string) bool { return strings.HasPrefix(role, "#") })
			}
			what := "asks for " + strings.Join(gone, " ") + ", which none of the " + plural(s.members) + " has"
			if len(out) > len(gone) {
				what += ": with semantic AllOf no attribute of the list counts"
			}
			found(l.update(p.Def, p.Record, what, "--remove-"+s.flag, strings.Join(out, ",")))
		}
	}
}

func filter(list []string, keep func(string) bool) (kept []string) {
	for _, item := range list {
		if keep(item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// scope is what a service policy gives, and under which conditions.
type scope struct {
	*model.ServicePolicy
	who, what, checks *cow.Bitmap
}

func (l *look) scope(p *model.ServicePolicy) scope {
	s, ok := l.scopes[p.ID]
	if !ok {
		s = scope{
			p, access.ServicePolicyIdentities.Members(l.snap, p), access.ServicePolicyServices.Members(l.snap, p),
			access.ServicePolicyChecks.Members(l.snap, p),
		}
		l.scopes[p.ID] = s
	}
	return s
}

// lasts reports whether another policy counts for as long.
func (s scope) lasts(o scope) bool {
	return o.ValidUntil == nil || s.ValidUntil != nil && !s.ValidUntil.After(*o.ValidUntil)
}

// within reports whether another policy gives all that one gives, for as long and on no
// further condition.
func (s scope) within(o scope) bool {
	return s.Type == o.Type && s.lasts(o) && holds(o.who, s.who) && holds(o.what, s.what) && holds(s.checks, o.checks)
}

// holds reports whether one set has all of another.
func holds(all, some *cow.Bitmap) bool {
	return all == some || some.IsEmpty() || all.AndCardinality(some) == some.GetCardinality()
}

// shadowed are service policies all of which another gives as well.
func shadowed(l *look, found func(Finding)) {
	for id, by := range l.shadowing() {
		found(l.remove(model.ServicePolicies.Def, l.scopes[id].ServicePolicy, "gives nothing that "+by+" does not give as things are"))
	}
}

// shadowing returns what gives all that a service policy gives, by the id of the policy.
// Of several that are the same the oldest is none of them. Whatever is within another is
// also about the identity of it that has the fewest policies, of the first few, whose
// policies are all that have to be looked at.
func (l *look) shadowing() map[string]string {
	if l.shadows != nil {
		return l.shadows
	}
	l.shadows = map[string]string{}
	for p := range model.ServicePolicies.All(l.snap) {
		s := l.scope(p)
		if !p.Counts() || s.who.IsEmpty() || s.what.IsEmpty() {
			continue
		}
		for _, q := range l.fewest(s.who) {
			o := l.scope(q)
			if q.ID == p.ID || !s.within(o) || o.within(s) && older(p, q) {
				continue
			}
			l.shadows[p.ID] = q.Name
			break
		}
	}
	return l.shadows
}

// older reports whether a policy was made before another.
func older(p, q *model.ServicePolicy) bool {
	return cmp.Or(p.CreatedAt.Compare(q.CreatedAt), strings.Compare(p.ID, q.ID)) < 0
}

// tried is how many members of a policy are looked at for the one with few others.
const tried = 8

// fewest returns the service policies of that one of the first members that has the
// fewest, by id.
func (l *look) fewest(who *cow.Bitmap) (few []*model.ServicePolicy) {
	n := 0
	for identity := range l.snap.At(model.Identities.Def, who) {
		list := l.policiesOf(identity)
		if n == 0 || len(list) < len(few) {
			few = list
		}
		if n++; n == tried {
			break
		}
	}
	return few
}

// policiesOf returns the service policies of an identity, by id.
func (l *look) policiesOf(identity kind.Record) []*model.ServicePolicy {
	id := identity.Base().ID
	list, known := l.byIdentity[id]
	if !known {
		for rec := range access.ServicePolicyIdentities.Policies(l.snap, identity) {
			list = append(list, rec.(*model.ServicePolicy))
		}
		slices.SortFunc(list, func(a, b *model.ServicePolicy) int { return strings.Compare(a.ID, b.ID) })
		l.byIdentity[id] = list
	}
	return list
}

// timedPolicies are over, or will be soon.
func timedPolicies(l *look, found func(Finding)) {
	for p := range l.policies() {
		switch end := p.ValidUntil; {
		case end == nil:
		case p.At(l.now) == model.Over:
			found(l.remove(p.Def, p.Record, "is over since "+day(*end)+" and gives nobody anything"))
		case end.Sub(l.now) <= EndsSoon:
			found(l.update(p.Def, p.Record, "ends on "+day(*end), "--valid-until", moment(l.now.Add(90*24*time.Hour))))
		}
	}
}
