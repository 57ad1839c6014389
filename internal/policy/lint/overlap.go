package lint

import (
	"fmt"
	"slices"
	"strings"

	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

const (
	// sampled is how many members of a policy are asked for their other policies. Those
	// of more are asked evenly: a policy with half of them is among the others of a fifth of
	// those asked, but for once in hundreds of times.
	sampled = 16
	// named is how many of those who have something twice are named.
	named = 3
)

// double is what two policies give both.
type double struct {
	other     scope
	who, what uint64
}

// overlaps are service policies half of which, or more, another gives as well, and that
// are not within one another: one may end without the access that it gives. Little that
// two give both is what roles are for. Of two that are found by each other one is told:
// that of which a role can go, or the younger. Shadowed ones are left out: they are to go,
// and what others have from them too is no reason to change those.
func overlaps(l *look, found func(Finding)) {
	shadows := l.shadowing()
	most := map[string]double{}
	var list []scope // by id
	for p := range model.ServicePolicies.All(l.snap) {
		if _, gone := shadows[p.ID]; gone || !p.Counts() {
			continue
		}
		if d, ok := l.most(l.scope(p), shadows); ok {
			most[p.ID], list = d, append(list, l.scope(p))
		}
	}
	mutual := func(s scope) bool { return most[most[s.ID].other.ID].other.ServicePolicy == s.ServicePolicy }
	// Whoever does all that is asked for takes nothing from anybody: one relies on the one
	// that gives most of the same, the oldest of several, so that no more than two can rely
	// on each other, of which one is told.
	told := map[string]bool{}
	for _, young := range []bool{true, false} {
		for _, s := range list {
			d := most[s.ID]
			if mutual(s) && (told[d.other.ID] || older(s.ServicePolicy, d.other.ServicePolicy) == young) || !mutual(s) && !young {
				continue
			}
			if flag, roles := l.spare(s, d.other); len(roles) > 0 {
				told[s.ID] = true
				found(l.update(model.ServicePolicies.Def, s.ServicePolicy, l.twice(s, d), "--remove-"+flag, strings.Join(roles, ",")))
			}
		}
	}
	for _, s := range list {
		if d := most[s.ID]; !told[s.ID] && !(mutual(s) && (told[d.other.ID] || older(s.ServicePolicy, d.other.ServicePolicy))) {
			found(l.of(model.ServicePolicies.Def, s.ServicePolicy, l.twice(s, d), "who-can", strings.ToLower(s.Type), l.first(model.Services.Def, and(s.what, d.other.what))))
		}
	}
}

// most is what of a policy another gives as well, the most of it that any does; not ok if
// that is less than half.
func (l *look) most(s scope, left map[string]string) (best double, ok bool) {
	all := s.who.GetCardinality() * s.what.GetCardinality()
	for _, q := range l.beside(s) {
		o := l.scope(q)
		if _, gone := left[q.ID]; gone || q.ID == s.ID || q.Type != s.Type {
			continue
		}
		// Whoever has half of the pairs has half of both.
		what := s.what.AndCardinality(o.what)
		if 2*what < s.what.GetCardinality() {
			continue
		}
		who := s.who.AndCardinality(o.who)
		n, max := who*what, best.who*best.what
		if 2*n < all || n < max || n == max && ok && !older(q, best.other.ServicePolicy) || s.within(o) || o.within(s) {
			continue
		}
		best, ok = double{o, who, what}, true
	}
	return best, ok
}

// beside returns the policies that may have half of the identities of one: those of some
// of them.
func (l *look) beside(s scope) (list []*model.ServicePolicy) {
	total := s.who.GetCardinality()
	if total == 0 || s.what.IsEmpty() {
		return nil
	}
	asked, votes := min(total, sampled), map[string]uint64{}
	some := new(cow.Bitmap)
	for i := range asked {
		if ord, err := s.who.Select(uint32(i * total / asked)); err == nil {
			some.Add(ord)
		}
	}
	for identity := range l.snap.At(model.Identities.Def, some) {
		for _, q := range l.policiesOf(identity) {
			if votes[q.ID]++; votes[q.ID] == 1 {
				list = append(list, q)
			}
		}
	}
	need := (asked + 1) / 2
	if asked < total {
		need = asked / 5
	}
	return slices.DeleteFunc(list, func(q *model.ServicePolicy) bool { return votes[q.ID] < need })
}

// twice says what of a policy another gives as well.
func (l *look) twice(s scope, d double) string {
	o := d.other
	return fmt.Sprintf("gives %s %s, which %s gives them as well",
		l.some(model.Identities.Def, and(s.who, o.who), s.who), l.some(model.Services.Def, and(s.what, o.what), s.what), o.Name)
}

// spare are roles of a policy that can go since another gives all that they select for as
// long and on no further condition; none if there are no such roles.
func (l *look) spare(s, o scope) (flag string, roles []string) {
	if !s.lasts(o) || !holds(s.checks, o.checks) {
		return "", nil
	}
	of := func(d *kind.Def, list []string, given *cow.Bitmap) (spare []string) {
		if slices.Contains(list, "#all") {
			return nil
		}
		for _, role := range list {
			// Of attributes that are asked for together none can go alone.
			if s.Semantic != model.AnyOf && role[0] == '#' {
				continue
			}
			if members := access.Matching(l.snap, d, []string{role}, model.AnyOf); !members.IsEmpty() && holds(given, members) {
				spare = append(spare, role)
			}
		}
		return spare
	}
	if holds(o.who, s.who) {
		return "service-role", of(model.Services.Def, s.ServiceRoles, o.what)
	}
	if holds(o.what, s.what) {
		return "identity-role", of(model.Identities.Def, s.IdentityRoles, o.who)
	}
	return "", nil
}

// some names members of a set that are part of another: all of them if it is the same.
func (l *look) some(d *kind.Def, part, all *cow.Bitmap) string {
	n, of := part.GetCardinality(), all.GetCardinality()
	var names []string
	for rec := range l.snap.At(d, part) {
		if len(names) == named {
			break
		}
		names = append(names, d.Label(rec))
	}
	list := strings.Join(names, ", ")
	if n > named {
		list += " and others"
	}
	if n == of {
		return fmt.Sprintf("all of its %s (%s)", plural(d), list)
	}
	return fmt.Sprintf("%d of its %d %s (%s)", n, of, plural(d), list)
}

// first is how a command calls the first of a set.
func (l *look) first(d *kind.Def, set *cow.Bitmap) string {
	for rec := range l.snap.At(d, set) {
		return l.called(d, rec)
	}
	return ""
}

func and(a, b *cow.Bitmap) *cow.Bitmap {
	both := a.Clone()
	both.And(b)
	return both
}
