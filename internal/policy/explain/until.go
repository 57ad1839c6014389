package explain

import (
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// Until is when policies end to let an identity use or host a service if nobody
// changes anything: when the last of those ends that do now, or the last grant by
// which it selects the identity. It is nil if that is never, or if none lets it.
func Until(snap *state.Snapshot, identity *model.Identity, serviceID, typ string) *time.Time {
	var last *time.Time
	for _, p := range access.Granting(snap, identity.ID, serviceID, typ) {
		end := earlier(p.ValidUntil, selected(snap, p, identity))
		if end == nil {
			return nil
		}
		if last == nil || end.After(*last) {
			last = end
		}
	}
	return last
}

// selected is when a policy ends to select an identity by its roles; nil for never.
func selected(snap *state.Snapshot, p *model.ServicePolicy, identity *model.Identity) (end *time.Time) {
	for i, role := range access.ServicePolicyIdentities.Reasons(p, identity) {
		lasts := lent(snap, identity, role)
		switch {
		case p.Semantic == model.AnyOf && lasts == nil:
			return nil
		case i == 0:
			end = lasts
		case p.Semantic == model.AnyOf && lasts.After(*end):
			end = lasts
		case p.Semantic != model.AnyOf:
			end = earlier(end, lasts)
		}
	}
	return end
}

// lent is when an identity ends to have a role that grants alone give it; nil for
// never.
func lent(snap *state.Snapshot, identity *model.Identity, role string) (end *time.Time) {
	attribute, given := grantedRole(identity, role)
	if !given || len(identity.ProvidedBy(attribute)) > 0 {
		return nil
	}
	for g := range model.Grants.Select(snap, "identityId", identity.ID) {
		if g.Attribute == attribute && g.Counts() && (end == nil || g.ValidUntil.After(*end)) {
			end = &g.ValidUntil
		}
	}
	return end
}

// earlier is the first of two ends, of which either may be never.
func earlier(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

// grantedRole reports whether grants give an identity the attribute of a role.
func grantedRole(identity *model.Identity, role string) (attribute string, is bool) {
	for _, a := range identity.GrantedAttributes {
		if role == "#"+a {
			return a, true
		}
	}
	return "", false
}
