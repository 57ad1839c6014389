// Package access answers who sees what: which policies select a record, which
// services an identity may use and through which routers, which lists lead
// from one kind to another, whom a change concerns and what it gives and takes.
// It computes each answer when asked, from the bitmaps and indexes of a
// snapshot, and owns nothing but the times in LastChange. Whether a caller may
// ask is not decided here: it must not import authn, rest or anything of the
// APIs.
//
// Bitmaps that it returns hold ordinals of one kind in one snapshot. They may
// be shared with the snapshot: never write to them.
package access

import (
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// all is the role that everyone has.
const all = "#all"

// Matching returns the members of a population that a role list selects: all
// of them for #all, else those whose ids are listed together with those that
// have all (AllOf) or any (AnyOf) of the listed attributes. An empty list
// selects nobody.
func Matching(snap *state.Snapshot, pop *kind.Def, roles []string, semantic string) *cow.Bitmap {
	var u union
	u.matching(snap, pop, roles, semantic)
	return u.set()
}

// Filter returns the members of a population that the roleFilter parameters of
// a list request select. They differ from a policy's role list: #all is an
// attribute like any other, the semantic is AllOf unless given, in any case,
// and without roles there is nothing to filter by, so that everyone is left.
func Filter(snap *state.Snapshot, pop *kind.Def, roles []string, semantic string) (*cow.Bitmap, error) {
	switch {
	case semantic == "" || strings.EqualFold(semantic, model.AllOf):
		semantic = model.AllOf
	case strings.EqualFold(semantic, model.AnyOf):
		semantic = model.AnyOf
	default:
		return nil, fault.Invalid("roleSemantic", "must be AllOf or AnyOf", semantic)
	}
	for _, role := range roles {
		if reason := WrongRole(role); reason != "" {
			return nil, fault.Invalid("roleFilter", reason, role)
		}
	}
	if len(roles) == 0 {
		return everyone(snap, pop), nil
	}
	var u union
	u.selected(snap, pop, roles, semantic)
	return u.set(), nil
}

// WrongRole says why a text cannot be one of Filter's roles; nothing if it can.
func WrongRole(role string) (reason string) {
	if len(role) < 2 || role[0] != '#' && role[0] != '@' {
		return "must be #attribute or @id"
	}
	return ""
}

func everyone(snap *state.Snapshot, pop *kind.Def) *cow.Bitmap {
	return Matching(snap, pop, []string{all}, "")
}

// matching adds what Matching returns.
func (u *union) matching(snap *state.Snapshot, pop *kind.Def, roles []string, semantic string) {
	if slices.Contains(roles, all) {
		u.add(snap.Tagged(pop, ""))
	} else {
		u.selected(snap, pop, roles, semantic)
	}
}

// selected adds what a list selects in which #all has no special meaning.
func (u *union) selected(snap *state.Snapshot, pop *kind.Def, roles []string, semantic string) {
	if semantic == model.AnyOf {
		for _, role := range roles {
			if a, ok := strings.CutPrefix(role, "#"); ok {
				u.add(tagged(snap, pop, a))
			}
		}
	} else {
		u.add(haveAll(snap, pop, roles))
	}
	for _, role := range roles {
		id, ok := strings.CutPrefix(role, "@")
		if !ok {
			continue
		}
		if ord, ok := snap.Ordinal(pop, id); ok {
			u.addOne(ord)
		}
	}
}

// haveAll returns those who have every attribute of the list, nil if it names
// none.
func haveAll(snap *state.Snapshot, pop *kind.Def, roles []string) *cow.Bitmap {
	var sets []*cow.Bitmap
	for _, role := range roles {
		a, ok := strings.CutPrefix(role, "#")
		if !ok {
			continue
		}
		have := tagged(snap, pop, a)
		if have == nil {
			return nil
		}
		sets = append(sets, have)
	}
	switch len(sets) {
	case 0:
		return nil
	case 1:
		return sets[0]
	}
	// The smallest first: it bounds the work of all others.
	slices.SortFunc(sets, func(a, b *cow.Bitmap) int { return int(a.GetCardinality()) - int(b.GetCardinality()) })
	common := sets[0].Clone()
	for _, set := range sets[1:] {
		common.And(set)
	}
	return common
}

// tagged returns those who have an attribute. Nobody has the empty one, which
// is where the snapshot files everyone.
func tagged(snap *state.Snapshot, pop *kind.Def, attribute string) *cow.Bitmap {
	if attribute == "" {
		return nil
	}
	return snap.Tagged(pop, attribute)
}

// union joins bitmaps. As long as one is enough it is shared, not copied.
type union struct {
	bits  *cow.Bitmap
	owned bool
	all   *cow.Bitmap // if known, a bitmap to which nothing can be added
}

// full reports whether there is nothing left to add.
func (u *union) full() bool { return u.bits != nil && u.bits == u.all }

// add joins a bitmap, which may be nil.
func (u *union) add(b *cow.Bitmap) {
	switch {
	case b == nil || b == u.bits || u.full():
	case u.bits == nil || b == u.all:
		u.bits, u.owned = b, false
	default:
		u.own()
		u.bits.Or(b)
	}
}

func (u *union) addOne(ord uint32) {
	if u.bits == nil {
		u.bits, u.owned = new(cow.Bitmap), true
	}
	if !u.bits.Contains(ord) {
		u.own()
		u.bits.Add(ord)
	}
}

func (u *union) own() {
	if !u.owned {
		u.bits, u.owned = u.bits.Clone(), true
	}
}

// set returns what was joined, never nil.
func (u *union) set() *cow.Bitmap {
	if u.bits == nil {
		return new(cow.Bitmap)
	}
	return u.bits
}
