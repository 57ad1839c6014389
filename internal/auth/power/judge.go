package power

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Judge refuses a write by which somebody would give a power that they do not have,
// to whomever, or would change by what somebody more powerful gets in. It looks at
// what the write has come to, not at the operation: whatever is changed, and however,
// all of the power that it is about has to be the author's own.
//
// Machines are judged by their own power. Who is neither writes what the program has it
// write, such as an enrollment: what that may come to is decided by whoever made the
// invitation, the CA or the signer.
func Judge(_ context.Context, step state.Step, by state.Author) error {
	if !slices.Contains(answerable, by.Kind) {
		return nil
	}
	weighty := slices.DeleteFunc(slices.Clone(step.Changed), func(ref state.Ref) bool {
		return !slices.Contains(decisive, ref.Def) && !opened(step, ref) || ownWay(step, ref, by) || answered(step, ref)
	})
	if len(weighty) == 0 {
		return nil
	}
	if err := onlyPeople(step, weighty, by); err != nil {
		return err
	}
	mine := OfAuthor(step.Before, by)
	if mine.Covers(Whole()) {
		return nil
	}
	for _, ref := range weighty {
		for need := range about(step, ref) {
			if !mine.Covers(need) {
				return beyond(step, ref, mine, need)
			}
		}
	}
	return nil
}

// decisive are the kinds that have to do with power: who has it, and how they get in.
var decisive = []*kind.Def{
	model.AdminRoles.Def, model.RoleBindings.Def, model.Identities.Def, model.Authenticators.Def, model.Enrollments.Def, model.MFAs.Def,
	model.APISessions.Def, model.AuthPolicies.Def, model.ExtJWTSigners.Def, model.CAs.Def, model.EdgeRouters.Def, model.Routers.Def, model.Tokens.Def,
	model.Grants.Def,
}

// answerable are the kinds of authors who do what they like with the power they have.
var answerable = []string{model.Identities.Name, model.Tokens.Name, model.RoleBindings.Name}

// OfAuthor is the power that the author of a write has.
func OfAuthor(r kind.Reader, by state.Author) Set {
	switch by.Kind {
	case model.Identities.Name:
		return OfID(r, by.ID)
	case model.Tokens.Name:
		if token, ok := model.Tokens.Get(r, by.ID); ok {
			return OfToken(r, token)
		}
	case model.RoleBindings.Name:
		if binding, ok := model.RoleBindings.Get(r, by.ID); ok {
			return ofRole(r, binding.RoleID)
		}
	}
	return Set{}
}

// OfToken is the power that a token has: what its role allows of what its owner may
// do now.
func OfToken(r kind.Reader, token *model.Token) Set {
	return ofRole(r, token.RoleID).And(OfID(r, token.OwnerID))
}

// ofRole is what the role with an id allows; nothing if there is none.
func ofRole(r kind.Reader, id string) Set {
	if role, ok := model.AdminRoles.Get(r, id); ok {
		return OfRoles(role)
	}
	return Set{}
}

// onlyPeople refuses tokens that machines make or change: who found out a secret
// could go on after it is revoked.
func onlyPeople(step state.Step, weighty []state.Ref, by state.Author) error {
	if by.Kind == model.Identities.Name {
		return nil
	}
	for _, ref := range weighty {
		if ref.Def != model.Tokens.Def {
			continue
		}
		if _, stays := step.After.Lookup(ref.Def, ref.ID); stays {
			return &fault.Error{Code: fault.CodeUnauthorized, Reason: "a machine makes and changes no tokens, it can only revoke them; log in for that"}
		}
	}
	return nil
}

// beyond says what somebody lacks to write something, and what they could give instead.
func beyond(step state.Step, ref state.Ref, mine, need Set) error {
	reason := "this " + ref.Def.Name + " has to do with a power that you do not have: " + mine.Lacks(need) + "; "
	if roles := mine.couldGive(step.Before); len(roles) > 0 && !mine.Covers(roleIn(step.After, ref)) {
		reason += "give a role that you have all of, such as " + strings.Join(roles, " or ") + ", or "
	}
	return &fault.Error{Code: fault.CodeUnauthorized, Reason: reason + "ask somebody who has it"}
}

// roleIn is what the role allows that a token or binding has; nothing if it is neither.
func roleIn(r kind.Reader, ref state.Ref) Set {
	if token, ok := model.Tokens.Get(r, ref.ID); ok && ref.Def == model.Tokens.Def {
		return ofRole(r, token.RoleID)
	}
	if binding, ok := model.RoleBindings.Get(r, ref.ID); ok && ref.Def == model.RoleBindings.Def {
		return ofRole(r, binding.RoleID)
	}
	return Set{}
}

// mostRoles is how many roles one is told of that one could give.
const mostRoles = 3

// couldGive names roles that allow nothing that somebody with s may not do, those that
// allow the most first; none if they may not read roles.
func (s Set) couldGive(r kind.Reader) (names []string) {
	if !s.Over(model.AdminRoles.Name + ":read").Whole() {
		return nil
	}
	var roles []*model.AdminRole
	for role := range model.AdminRoles.All(r) {
		if s.Covers(OfRoles(role)) {
			roles = append(roles, role)
		}
	}
	slices.SortStableFunc(roles, func(a, b *model.AdminRole) int {
		return cmp.Or(cmp.Compare(len(OfRoles(b).Words()), len(OfRoles(a).Words())), cmp.Compare(a.Name, b.Name))
	})
	for _, role := range roles[:min(len(roles), mostRoles)] {
		names = append(names, role.Name)
	}
	return names
}

// ownWay reports whether a record is a way in of the author's own, before and after.
func ownWay(step state.Step, ref state.Ref, by state.Author) bool {
	for _, r := range []*state.Snapshot{step.Before, step.After} {
		if rec, ok := r.Lookup(ref.Def, ref.ID); ok && wayOf(rec) != by.ID {
			return false
		}
	}
	return true
}

// wayOf returns whose way in a record is; nobody's if it is none. A router that is a
// client itself is the identity with its id.
func wayOf(rec kind.Record) (identity string) {
	switch rec := rec.(type) {
	case *model.Authenticator:
		return rec.IdentityID
	case *model.Enrollment:
		return cmp.Or(rec.IdentityID, rec.EdgeRouterID)
	case *model.MFA:
		return rec.IdentityID
	case *model.APISession:
		return rec.IdentityID
	case *model.EdgeRouter:
		return rec.ID
	case *model.Router:
		return rec.ID
	}
	return ""
}

// Behind is the power of whomever a record lets somebody be.
func Behind(r kind.Reader, rec kind.Record) Set { return OfID(r, wayOf(rec)) }

// about yields the powers that a change is about: those that it gives or takes, and
// those of whoever it may let somebody else be.
func about(step state.Step, ref state.Ref) iter.Seq[Set] {
	return func(yield func(Set) bool) {
		for _, r := range []*state.Snapshot{step.Before, step.After} {
			rec, ok := r.Lookup(ref.Def, ref.ID)
			if !ok {
				continue
			}
			goOn := true
			aboutRecord(r, step, rec, func(need Set) bool {
				goOn = need.None() || yield(need)
				return goOn
			})
			if !goOn {
				return
			}
		}
	}
}

// aboutRecord yields the powers that a record is about in a snapshot.
func aboutRecord(r *state.Snapshot, step state.Step, rec kind.Record, yield func(Set) bool) {
	switch rec := rec.(type) {
	case *model.AdminRole:
		yield(OfRoles(rec))
	case *model.RoleBinding:
		if role, ok := model.AdminRoles.Get(r, rec.RoleID); ok {
			yield(OfRoles(role))
		}
	case *model.Identity:
		yield(Of(r, rec))
	case *model.AuthPolicy:
		for i := range Holders(r) {
			if i.AuthPolicyID == rec.ID && !yield(Of(r, i)) {
				return
			}
		}
	case *model.ExtJWTSigner: // it says who somebody is, also of those who get power later
		yield(Whole())
	case *model.Service: // others give the attribute in the place of whoever said so
		yield(OfRoles(&model.AdminRole{Allows: []string{"grant:create"}}))
	case *model.Token:
		aboutToken(r, step, rec, yield)
	case *model.Grant: // which the program begins later, whom nobody judges
		if given(r, []string{rec.Attribute}, yield) {
			yield(OfID(r, rec.IdentityID))
		}
	case *model.CA:
		if given(r, rec.IdentityRoles, yield) {
			vouched(r, rec.ID, yield)
		}
	default: // a cascade takes the identity and its ways in along
		if way := wayOf(rec); yield(OfID(step.Before, way)) {
			yield(OfID(step.After, way))
		}
	}
}

// aboutToken yields what a token can come to, which is all of its role and all that
// its owner may do, and for one that goes what it was good for.
func aboutToken(r *state.Snapshot, step state.Step, token *model.Token, yield func(Set) bool) {
	if _, stays := step.After.Lookup(model.Tokens.Def, token.ID); !stays {
		yield(OfToken(r, token))
		return
	}
	if r == step.Before || yield(ofRole(r, token.RoleID)) {
		yield(OfID(r, token.OwnerID))
	}
}

// vouched yields the powers of those who get in by certificates of a CA. That nobody
// else with power does so by a text in one is the rule of authn.
func vouched(r *state.Snapshot, ca string, yield func(Set) bool) {
	for i := range Holders(r) {
		by := slices.Contains(i.ExternalIDIssuers, ca)
		for a := range model.Authenticators.Select(r, "identityId", i.ID) {
			by = by || a.CAID == ca
		}
		for e := range model.Enrollments.Select(r, "identityId", i.ID) {
			by = by || e.CAID == ca
		}
		if by && !yield(Of(r, i)) {
			return
		}
	}
}

// given yields the roles that somebody may get by any of these attributes.
func given(r kind.Reader, attributes []string, yield func(Set) bool) (goOn bool) {
	for _, key := range prefixed(attributes) {
		for binding := range model.RoleBindings.Select(r, "identityRoles", key) {
			if role, ok := model.AdminRoles.Get(r, binding.RoleID); ok && !yield(OfRoles(role)) {
				return false
			}
		}
	}
	return true
}

// Holders yields all identities that have any power, the admins first. It walks over
// all identities for them, and is for what is rare: somebody with less power than an
// admin who changes how others get in.
func Holders(r *state.Snapshot) iter.Seq[*model.Identity] {
	return func(yield func(*model.Identity) bool) {
		for _, admins := range []bool{true, false} {
			for i := range model.Identities.All(r) {
				if i.Admin() == admins && (admins || Holds(r, i)) && !yield(i) {
					return
				}
			}
		}
	}
}
