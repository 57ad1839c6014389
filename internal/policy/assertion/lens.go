package assertion

import (
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// lens shows what policies give of the pairs of a block. What it is about is small
// where the network is large, and policies share roles: each is looked up once.
type lens struct {
	block
	typ                  string
	reach                reach
	identities, services side
}

// side is some members of a population, and those of them that have a role.
type side struct {
	snap  *state.Snapshot
	of    *kind.Def
	as    numbering
	in    *cow.Bitmap
	known map[string]*cow.Bitmap
}

func newSide(snap *state.Snapshot, of *kind.Def, as numbering, in *cow.Bitmap) side {
	return side{snap, of, as, in, map[string]*cow.Bitmap{}}
}

func (m *moment) lens(b block, typ string, r reach) *lens {
	return &lens{
		block: b, typ: typ, reach: r,
		identities: newSide(m.snap, model.Identities.Def, m.identities, b.identities),
		services:   newSide(m.snap, model.Services.Def, m.services, b.services),
	}
}

// given returns what a policy gives, if that is any of the pairs.
func (l *lens) given(p *model.ServicePolicy) (block, bool) {
	if p.Type != l.typ || !l.reach.counts(p) {
		return block{}, false
	}
	services := l.services.found(p.ServiceRoles, p.Semantic)
	if services == nil {
		return block{}, false
	}
	identities := l.identities.found(p.IdentityRoles, p.Semantic)
	return block{identities, services, p}, identities != nil
}

// found returns the members that a role list finds; nil if none.
func (s *side) found(roles []string, semantic string) *cow.Bitmap {
	if slices.Contains(roles, "#all") {
		return s.having("#all")
	}
	var all *cow.Bitmap
	join := func(set *cow.Bitmap) {
		switch {
		case set == nil:
		case all == nil:
			all = set
		default:
			all = all.Clone()
			all.Or(set)
		}
	}
	var have *cow.Bitmap // what all of the attributes have in common
	attributes, none := 0, false
	for _, role := range roles {
		set := s.having(role)
		if !strings.HasPrefix(role, "#") || semantic == model.AnyOf {
			join(set)
			continue
		}
		attributes++
		switch {
		case set == nil:
			none = true
		case have == nil:
			have = set
		default:
			have = common(have, set)
		}
	}
	if attributes > 0 && !none && !have.IsEmpty() {
		join(have)
	}
	return all
}

// finds reports whether a role list finds any member.
func (s *side) finds(roles []string, semantic string) bool {
	if semantic == model.AnyOf { // then one is enough, and who else does not matter
		return slices.ContainsFunc(roles, func(role string) bool { return s.having(role) != nil })
	}
	return s.found(roles, semantic) != nil
}

// having returns the members that have a role; nil if none.
func (s *side) having(role string) *cow.Bitmap {
	set, ok := s.known[role]
	if ok {
		return set
	}
	if set = common(s.as.of(access.Matching(s.snap, s.of, []string{role}, model.AnyOf)), s.in); set.IsEmpty() {
		set = nil
	}
	s.known[role] = set
	return set
}

// audience is who counts for an assertion about services that somebody uses: on its
// own side those that it is about, on the other everybody. Those count who are gone
// since, so it goes by the ordinals of its own snapshot.
type audience struct {
	typ         string
	own, others side
}

func newAudience(snap *state.Snapshot, a *model.Assertion) *audience {
	matching := func(roles []string) side {
		return newSide(snap, model.Identities.Def, newNumbering(snap, snap, nil, nil), access.Matching(snap, model.Identities.Def, roles, a.Semantic))
	}
	return &audience{a.Type, matching(a.IdentityRoles), matching([]string{"#all"})}
}

// hears reports whether a policy finds any of them.
func (a *audience) hears(p *model.ServicePolicy) bool {
	side := &a.others
	if p.Type == a.typ {
		side = &a.own
	}
	return now.counts(p) && side.finds(p.IdentityRoles, p.Semantic)
}
