package power

import (
	"bytes"
	"reflect"
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// opened reports whether a write lets a service be asked for, or in another way than
// before.
func opened(step state.Step, ref state.Ref) bool {
	if ref.Def != model.Services.Def {
		return false
	}
	after, there := model.Services.Get(step.After, ref.ID)
	if !there || after.Requests == nil {
		return false
	}
	before, was := model.Services.Get(step.Before, ref.ID)
	return !was || !reflect.DeepEqual(before.Requests, after.Requests)
}

// answered reports whether all that a write does to an identity is that requests of it
// are approved, and its power stays what it is; or whether a grant is what such a
// request was approved with. Who may approve is for the service to say: they need not
// have the power of whoever asks.
func answered(step state.Step, ref state.Ref) bool {
	identity := ref.ID
	switch g, made := model.Grants.Get(step.After, ref.ID); {
	case ref.Def == model.Grants.Def && made:
		identity = g.IdentityID
	case ref.Def != model.Identities.Def:
		return false
	}
	given := approved(step, identity)
	if len(given) == 0 || ref.Def == model.Grants.Def && !slices.ContainsFunc(given, func(g *model.Grant) bool { return g.ID == ref.ID }) {
		return false
	}
	before, was := model.Identities.Get(step.Before, identity)
	after, is := model.Identities.Get(step.After, identity)
	if !was || !is || !onlyGranted(before, after, given) {
		return false
	}
	return Of(step.Before, before).Covers(Of(step.After, after))
}

// approved lists what an identity was granted in a write, since the same write approves a
// request for each.
func approved(step state.Step, identity string) (grants []*model.Grant) {
	for _, ref := range step.Changed {
		if ref.Def != model.AccessRequests.Def {
			continue
		}
		before, was := model.AccessRequests.Get(step.Before, ref.ID)
		after, is := model.AccessRequests.Get(step.After, ref.ID)
		if !was || !is || !before.Pending() || after.Standing != model.Approved || after.IdentityID != identity {
			continue
		}
		_, old := model.Grants.Get(step.Before, after.GrantID)
		g, made := model.Grants.Get(step.After, after.GrantID)
		if !old && made && g.Counts() && g.RequestID == after.ID && g.IdentityID == identity && g.Attribute == after.Attribute {
			grants = append(grants, g)
		}
	}
	return grants
}

// onlyGranted reports whether an identity differs in nothing but that it has more
// attributes by these grants.
func onlyGranted(before, after *model.Identity, grants []*model.Grant) bool {
	var given []string
	for _, g := range grants {
		given = append(given, g.Attribute)
	}
	for _, a := range after.RoleAttributes {
		if !slices.Contains(before.RoleAttributes, a) && !slices.Contains(given, a) {
			return false
		}
	}
	for _, a := range before.RoleAttributes {
		if !slices.Contains(after.RoleAttributes, a) {
			return false
		}
	}
	for _, a := range after.GrantedAttributes {
		if !slices.Contains(before.GrantedAttributes, a) && !slices.Contains(given, a) {
			return false
		}
	}
	d := model.Identities.Def
	same := d.Clone(after).(*model.Identity)
	same.RoleAttributes, same.GrantedAttributes, same.UpdatedAt = before.RoleAttributes, before.GrantedAttributes, before.UpdatedAt
	return equal(d, before, same)
}

// equal reports whether two records are stored alike.
func equal(d *kind.Def, a, b kind.Record) bool {
	left, err := d.Encode(a)
	if err != nil {
		return false
	}
	right, err := d.Encode(b)
	return err == nil && bytes.Equal(left, right)
}
