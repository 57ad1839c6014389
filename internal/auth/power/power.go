// Package power is what identities may do to the network: how much of it somebody
// has, whether that is more than somebody else has, and the rule that nobody gets
// more than whoever gave it had. It looks at records alone. It must not import
// authn or anything of the APIs: who a caller is, and which power an operation
// needs, are theirs to say.
package power

import (
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// words is a set of powers, by their place in model.Powers.
type words [4]uint64

func (w *words) add(i int)     { w[i/64] |= 1 << (i % 64) }
func (w words) has(i int) bool { return w[i/64]&(1<<(i%64)) != 0 }
func (w words) none() bool     { return w == words{} }
func (w words) minus(o words) words {
	for i := range w {
		w[i] &^= o[i]
	}
	return w
}

func (w words) and(o words) words {
	for i := range w {
		w[i] &= o[i]
	}
	return w
}

func (w words) or(o words) words {
	for i := range w {
		w[i] |= o[i]
	}
	return w
}

// everything is all powers that there are.
var everything = func() (w words) {
	if len(model.Powers) > 64*len(w) {
		panic("power: more powers than there are bits")
	}
	for i := range model.Powers {
		w.add(i)
	}
	return w
}()

// place is where a power is in model.Powers.
func place(need string) (int, bool) { return slices.BinarySearch(model.Powers, need) }

// Set is how much of the power over a network somebody has. The zero value is none.
type Set struct {
	whole words // over all records
	parts []part
}

// part is a power over some records.
type part struct {
	words words
	limit *model.AdminRole // whose limits it has
}

// Whole is the power of an admin.
func Whole() Set { return Set{whole: everything} }

// OfRoles is what some roles allow together.
func OfRoles(roles ...*model.AdminRole) (s Set) {
	for _, role := range roles {
		var w words
		for _, entry := range role.Allows {
			for _, p := range model.Expand(entry) {
				i, _ := place(p)
				w.add(i)
			}
		}
		if role.Limited() {
			s.parts = append(s.parts, part{w, role})
		} else {
			s.whole = s.whole.or(w)
		}
	}
	return s
}

// And is what both have who have each of two sets.
func (s Set) And(o Set) Set {
	both := Set{whole: s.whole.and(o.whole)}
	add := func(w words, limits ...*model.AdminRole) {
		if w = w.minus(both.whole); w.none() {
			return
		}
		joined, possible := limits[0], true
		if len(limits) == 2 {
			joined, possible = narrower(limits[0], limits[1])
		}
		if possible {
			both.parts = append(both.parts, part{w, joined})
		}
	}
	for _, p := range s.parts {
		add(p.words.and(o.whole), p.limit)
		for _, q := range o.parts {
			add(p.words.and(q.words), p.limit, q.limit)
		}
	}
	for _, q := range o.parts {
		add(q.words.and(s.whole), q.limit)
	}
	return both
}

// narrower is the limits of two roles together, unless they contradict each other, so
// that nothing is within both.
func narrower(a, b *model.AdminRole) (both *model.AdminRole, possible bool) {
	both = &model.AdminRole{OnlyTags: map[string]string{}}
	both.OnlyAttributes = slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.OnlyAttributes, b.OnlyAttributes))))
	for _, role := range []*model.AdminRole{a, b} {
		for name, text := range role.OnlyTags {
			if other, said := both.OnlyTags[name]; said && other != text {
				return nil, false
			}
			both.OnlyTags[name] = text
		}
	}
	return both, true
}

// None reports whether it is no power at all.
func (s Set) None() bool { return s.whole.none() && len(s.parts) == 0 }

// Covers reports whether somebody with s has all that somebody with o has.
func (s Set) Covers(o Set) bool {
	if !o.whole.minus(s.whole).none() {
		return false
	}
	for _, p := range o.parts {
		rest := p.words.minus(s.whole)
		for _, mine := range s.parts {
			if within(p.limit, mine.limit) {
				rest = rest.minus(mine.words)
			}
		}
		if !rest.none() {
			return false
		}
	}
	return true
}

// within reports whether the limits of one role let it be about nothing that those
// of another do not.
func within(inner, outer *model.AdminRole) bool {
	for _, a := range outer.OnlyAttributes {
		if !slices.Contains(inner.OnlyAttributes, a) {
			return false
		}
	}
	for name, text := range outer.OnlyTags {
		if has, ok := inner.OnlyTags[name]; !ok || has != text {
			return false
		}
	}
	return true
}

// Lacks names a power that somebody with o has and somebody with s does not; empty
// if s covers o.
func (s Set) Lacks(o Set) string {
	for i, p := range model.Powers {
		if o.whole.has(i) && !s.whole.has(i) {
			return p
		}
	}
	for _, p := range o.parts {
		for i, name := range model.Powers {
			var one words
			if p.words.has(i) {
				one.add(i)
			}
			if !s.Covers(Set{parts: []part{{one, p.limit}}}) {
				return name
			}
		}
	}
	return ""
}

// Words lists what somebody may do, to all records or to some.
func (s Set) Words() (list []string) {
	for _, p := range model.Powers {
		if !s.Over(p).None() {
			list = append(list, p)
		}
	}
	return list
}

// Extent is the records that a power is over.
type Extent struct {
	all    bool
	limits []*model.AdminRole
}

// Over returns the records that somebody may do something to; * is anything.
func (s Set) Over(need string) (e Extent) {
	if need == "*" { // any at all
		return Extent{all: !s.None()}
	}
	i, known := place(need)
	if !known {
		return e
	}
	if e.all = s.whole.has(i); e.all {
		return e
	}
	for _, p := range s.parts {
		if p.words.has(i) {
			e.limits = append(e.limits, p.limit)
		}
	}
	return e
}

// Whole reports whether it is all of them.
func (e Extent) Whole() bool { return e.all }

// None reports whether there are no records to do it to.
func (e Extent) None() bool { return !e.all && len(e.limits) == 0 }

// Has reports whether a record is among them.
func (e Extent) Has(d *kind.Def, rec kind.Record) bool {
	return e.all || slices.ContainsFunc(e.limits, func(role *model.AdminRole) bool { return role.About(d, rec) })
}

// Of is the power that an identity has: all of it if it is an admin, and else what
// its roles allow, by itself and by bindings.
func Of(r kind.Reader, i *model.Identity) Set {
	if i.Admin() {
		return Whole()
	}
	return OfRoles(RolesOf(r, i)...)
}

// OfID is the power of the identity with an id; none if there is no such identity.
func OfID(r kind.Reader, id string) Set {
	if i, ok := model.Identities.Get(r, id); ok {
		return Of(r, i)
	}
	return Set{}
}

// RolesOf returns the roles of an identity, each once, and those that its permissions
// stand for. That it is an admin is none of them.
func RolesOf(r kind.Reader, i *model.Identity) (roles []*model.AdminRole) {
	add := func(id string) {
		if role, ok := model.AdminRoles.Get(r, id); ok && !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	for _, id := range i.AdminRoles {
		add(id)
	}
	for _, word := range i.Permissions {
		if role, known := model.PermissionRole(word); known && !slices.ContainsFunc(roles, func(has *model.AdminRole) bool { return has.Name == role.Name }) {
			roles = append(roles, role)
		}
	}
	has := append([]string{"#all", "@" + i.ID}, prefixed(i.RoleAttributes)...)
	for _, key := range has {
		for binding := range model.RoleBindings.Select(r, "identityRoles", key) {
			if model.Selects(binding.IdentityRoles, binding.Semantic, has) {
				add(binding.RoleID)
			}
		}
	}
	return roles
}

func prefixed(attributes []string) []string {
	var roles []string
	for _, a := range attributes {
		if a != "" {
			roles = append(roles, "#"+a)
		}
	}
	return roles
}

// Known reports whether somebody knows a record because it is them, or a role that they
// have: whoami says as much.
func Known(r kind.Reader, by state.Author, rec kind.Record) bool {
	identity, role := by.ID, ""
	switch by.Kind {
	case model.Tokens.Name:
		if token, ok := model.Tokens.Get(r, by.ID); ok {
			identity, role = token.OwnerID, token.RoleID
		}
	case model.RoleBindings.Name:
		if binding, ok := model.RoleBindings.Get(r, by.ID); ok {
			identity, role = "", binding.RoleID
		}
	}
	switch rec := rec.(type) {
	case *model.Identity:
		return rec.ID == identity
	case *model.AdminRole:
		who, ok := model.Identities.Get(r, identity)
		return rec.ID == role || ok && slices.Contains(RolesOf(r, who), rec)
	}
	return false
}

// Holds reports whether an identity has any power.
func Holds(r kind.Reader, i *model.Identity) bool { return i.Admin() || len(RolesOf(r, i)) > 0 }

// Names lists the roles of an identity by name, in order.
func Names(r kind.Reader, i *model.Identity) (names []string) {
	if i.Admin() {
		names = append(names, model.RoleAdmin)
	}
	for _, role := range RolesOf(r, i) {
		if !slices.Contains(names, role.Name) {
			names = append(names, role.Name)
		}
	}
	slices.Sort(names)
	return names
}
