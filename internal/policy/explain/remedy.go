package explain

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/advice"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// spoken is the name of a kind in a sentence.
func spoken(d *kind.Def) string { return strings.ReplaceAll(d.Name, "-", " ") }

// called is how a command calls a record: by its name, unless that looks like
// a flag or a list, or is the id of another.
func (q *question) called(d *kind.Def, rec kind.Record) string {
	name := d.Label(rec)
	if _, taken := q.snap.Lookup(d, name); taken || strings.HasPrefix(name, "-") || strings.ContainsRune(name, ',') {
		return rec.Base().ID
	}
	return name
}

func (q *question) identityName() string { return q.called(model.Identities.Def, q.identity) }
func (q *question) serviceName() string  { return q.called(model.Services.Def, q.service) }

// remedy is what would make a link hold: for people, and for programs if it is a change
// of a record.
type remedy struct {
	text   string
	change *Change
}

// mend notes what would make the link hold.
func (l *Link) mend(r remedy) {
	if l.Remedy = r.text; r.change != nil {
		l.Changes = []Change{*r.change}
	}
}

// addRole gives a record one more attribute.
func (q *question) addRole(d *kind.Def, rec kind.Record, attribute string) remedy {
	with := append(slices.Clone(d.AttributesOf(rec)), attribute)
	return remedy{
		advice.Command("update", d.Name, q.called(d, rec), "--add-role", attribute),
		&Change{Op: "patch", Kind: d.Name, Target: rec.Base().ID, Body: body(map[string]any{"roleAttributes": with})},
	}
}

// newPolicy is a policy that is to be made.
func newPolicy(d *kind.Def, members map[string]any) *Change {
	members["semantic"] = model.AnyOf
	return &Change{Op: "create", Kind: d.Name, Body: body(members)}
}

// body is members as JSON, which texts and lists of texts always are.
func body(members map[string]any) jsontext.Value {
	text, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return jsontext.Value("{}")
	}
	return text
}

func byID(rec kind.Record) []string { return []string{"@" + rec.Base().ID} }

// grant gives the identity the service.
func (q *question) grant() remedy {
	if attribute, ok := q.cheapest(model.Identities.Def, q.identity, access.ServicePolicyIdentities, q.givers()); ok {
		return q.addRole(model.Identities.Def, q.identity, attribute)
	}
	verb := "dials"
	if q.typ == model.Bind {
		verb = "hosts"
	}
	name := q.unused(model.ServicePolicies.Def, q.identity.Name+"-"+verb+"-"+q.service.Name)
	return remedy{
		advice.Command("create", model.ServicePolicies.Name, name, "--type", q.typ, "--identity-roles", "@"+q.identityName(), "--service-roles", "@"+q.serviceName()),
		newPolicy(model.ServicePolicies.Def, map[string]any{"name": name, "type": q.typ, "identityRoles": byID(q.identity), "serviceRoles": byID(q.service)}),
	}
}

// givers yields the policies that give the service to others.
func (q *question) givers() iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		for policy := range access.ServicePolicyServices.Policies(q.snap, q.service) {
			if policy.(*model.ServicePolicy).Type == q.typ && !yield(policy) {
				return
			}
		}
	}
}

// giveCommon gives identity and service an edge router in common, if each has
// some.
func (q *question) giveCommon() remedy {
	if q.routes.identity.IsEmpty() || q.routes.service.IsEmpty() {
		return remedy{text: "first give both an edge router, as above"}
	}
	return q.giveRouter(q.identitySide())
}

// giveRouter gives a side an edge router: one that the other side has and that
// is online, if there is one.
func (q *question) giveRouter(s side) remedy {
	router := q.suitable(s)
	if router == nil {
		return remedy{text: "there is no edge router yet; create one, and have it enroll"}
	}
	policies := s.to.Policies(q.snap, router)
	if attribute, ok := q.cheapest(s.def, s.member, s.from, policies); ok {
		return q.addRole(s.def, s.member, attribute)
	}
	name := q.unused(s.policy, s.name+"-uses-"+router.Name)
	return remedy{
		advice.Command("create", s.policy.Name, name, s.flag, "@"+q.called(s.def, s.member), "--edge-router-roles", "@"+q.called(model.EdgeRouters.Def, router)),
		newPolicy(s.policy, map[string]any{"name": name, s.list: byID(s.member), "edgeRouterRoles": byID(router)}),
	}
}

// suitable returns the edge router that a side is best given, nil if there is
// none.
func (q *question) suitable(s side) *model.EdgeRouter {
	among := s.others
	if among.IsEmpty() {
		among = access.Matching(q.snap, model.EdgeRouters.Def, []string{"#all"}, model.AnyOf)
	}
	return q.onlineFirst(among)
}

func (q *question) onlineFirst(among *cow.Bitmap) (first *model.EdgeRouter) {
	for rec := range q.snap.At(model.EdgeRouters.Def, among) {
		router := rec.(*model.EdgeRouter)
		if q.Online(router.ID) {
			return router
		}
		if first == nil {
			first = router
		}
	}
	return first
}

// maxTried is how many attributes are weighed against each other.
const maxTried = 32

// cheapest returns the attribute that, given to a member, makes the list of one
// of the policies select it: the one that gives it the least besides.
func (q *question) cheapest(d *kind.Def, member kind.Record, l *access.List, policies iter.Seq[kind.Record]) (best string, found bool) {
	tried, least := map[string]bool{}, 0
	for policy := range policies {
		for _, attribute := range l.Wants(policy, member) {
			if tried[attribute] {
				continue
			}
			tried[attribute] = true
			more := access.Widening(q.snap, d, member, attribute)
			if !found || more < least || more == least && attribute < best {
				best, least, found = attribute, more, true
			}
		}
		if len(tried) >= maxTried {
			break
		}
	}
	return best, found
}

// unused returns a name that no record of the kind has yet.
func (q *question) unused(d *kind.Def, name string) string {
	const longest = 240
	name = strings.TrimLeft(name, "-") // or it would be a flag
	if runes := []rune(name); len(runes) > longest {
		name = string(runes[:longest])
	}
	try := name
	for n := 2; ; n++ {
		if !q.taken(d, try) {
			return try
		}
		try = fmt.Sprint(name, "-", n)
	}
}

func (q *question) taken(d *kind.Def, name string) bool {
	for range q.snap.Select(d, "name", name) {
		return true
	}
	return false
}
