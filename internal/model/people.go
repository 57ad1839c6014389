package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Provided is what a signer says that an identity is, for policies.
type Provided struct {
	SignerID   string     `json:"signerId" doc:"Id of the external JWT signer."`
	Attributes []string   `json:"attributes" doc:"Role attributes that come from it."`
	TokenAt    *time.Time `json:"tokenAt" kind:"omit" doc:"When the token was made that said so first: what older ones say does not count any more. Left out if it does not say."`
}

// EnrollsPeople reports whether a signer makes identities of those who have none.
func (s *ExtJWTSigner) EnrollsPeople() bool { return s.EnrollToCertEnabled || s.EnrollToTokenEnabled }

// EnrollPolicy returns the authentication policy of those who become identities.
func (s *ExtJWTSigner) EnrollPolicy(r kind.Reader) (*AuthPolicy, bool) {
	name := cmp.Or(s.EnrollAuthPolicyID, DefaultAuthPolicy)
	if p, ok := AuthPolicies.Get(r, name); ok {
		return p, true
	}
	return AuthPolicies.Find(r, "name", name)
}

// Whole refuses a policy that is not there when the write is whole. Policies
// name signers too, so that of two that name each other one has to come first.
// Where the policy went later the signer may stay as it is: nobody becomes an
// identity by it then.
func (s *ExtJWTSigner) Whole(r kind.Reader, old *ExtJWTSigner) error {
	if old != nil && old.EnrollAuthPolicyID == s.EnrollAuthPolicyID {
		return nil
	}
	if _, ok := s.EnrollPolicy(r); !ok {
		return fault.On(fault.CodeNotFound, "enrollAuthPolicyId", "names no auth-policy with this id or name", s.EnrollAuthPolicyID)
	}
	return nil
}

// MapsGroups reports whether groups of the provider become role attributes. All
// of them as they are would be any attribute that somebody thought of there.
func (s *ExtJWTSigner) MapsGroups() bool {
	return s.EnrollAttributeClaimsSelector != "" && (s.EnrollAttributePrefix != "" || len(s.EnrollAttributeAllow) > 0)
}

// checkPeople holds the rules of how people appear by themselves. An identity
// provider may know anybody in the world, so that whoever lets people in by it
// has to say whom.
func (s *ExtJWTSigner) checkPeople() error {
	if err := s.checkWords(); err != nil {
		return err
	}
	switch {
	case s.EnrollAttributeClaimsSelector == "" && len(s.EnrollGroups) > 0:
		return fault.Invalid("enrollGroups", "needs enrollAttributeClaimsSelector beside it, which says in which claim groups are", s.EnrollGroups)
	case !s.EnrollsPeople():
		return nil
	case !s.UseExternalID:
		return fault.Invalid("useExternalId", "must be true where people become identities by their tokens: nobody's token knows the id of an identity that is not there yet", false)
	case s.Audience == "":
		return fault.Invalid("audience", "must be given where people become identities by their tokens: those for any other application would do", nil)
	case len(s.EnrollEmailDomains)+len(s.EnrollGroups)+len(s.EnrollClaims) == 0:
		field := "enrollToCertEnabled"
		if !s.EnrollToCertEnabled {
			field = "enrollToTokenEnabled"
		}
		return fault.Invalid(field, "would let in everybody whom the provider knows: say who may come by enrollEmailDomains, enrollGroups or enrollClaims", true)
	}
	return nil
}

// checkWords refuses selectors, patterns and domains that nothing could match.
func (s *ExtJWTSigner) checkWords() error {
	for _, f := range []struct{ name, selector string }{
		{"enrollNameClaimsSelector", s.EnrollNameClaimsSelector}, {"enrollAttributeClaimsSelector", s.EnrollAttributeClaimsSelector},
	} {
		if f.selector != "" && !isSelector(f.selector) {
			return fault.Invalid(f.name, wrongSelector, f.selector)
		}
	}
	for _, selector := range slices.Sorted(maps.Keys(s.EnrollClaims)) {
		if !isSelector(selector) || s.EnrollClaims[selector] == "" {
			return fault.Invalid("enrollClaims", wrongSelector+", and what it must say not empty", selector)
		}
	}
	if len(s.EnrollClaims) > 100 {
		return fault.Invalid("enrollClaims", "must be 0 to 100 long", len(s.EnrollClaims))
	}
	for _, f := range []struct {
		name string
		list []string
	}{{"enrollAttributeAllow", s.EnrollAttributeAllow}, {"enrollGroups", s.EnrollGroups}} {
		for _, pattern := range f.list {
			if pattern == "" || !kind.Visible(pattern) {
				return fault.Invalid(f.name, "must be names of groups, without characters that nobody sees", pattern)
			}
		}
	}
	if slices.ContainsFunc(s.EnrollGroups, func(g string) bool { return strings.Trim(g, "*") == "" }) {
		return fault.Invalid("enrollGroups", "must name groups: * is everybody who is in any", "*")
	}
	for _, domain := range s.EnrollEmailDomains {
		if !isDomain(domain) {
			return fault.Invalid("enrollEmailDomains", "must be whole domains in small letters, such as corp.example", domain)
		}
	}
	if strings.HasPrefix(s.EnrollAttributePrefix, "#") || strings.HasPrefix(s.EnrollAttributePrefix, "@") {
		return fault.Invalid("enrollAttributePrefix", "must not start with # or @", s.EnrollAttributePrefix)
	}
	return nil
}

// isDomain reports whether a text can be the domain of an address.
func isDomain(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") == "" && strings.Contains(s, ".") && strings.Trim(s, ".") == s
}

const wrongSelector = "must be the name of a claim, or a JSON pointer such as /realm_access/roles"

// isSelector reports whether a text can name a claim: plainly, or as a JSON
// pointer, in which only ~0 and ~1 may follow a tilde.
func isSelector(s string) bool {
	if s == "" || s == "/" || !kind.Visible(s) {
		return false
	}
	rest := strings.NewReplacer("~0", "", "~1", "").Replace(s)
	return s[0] != '/' || !strings.Contains(rest, "~")
}

// Provided returns the role attributes that come from signers, sorted.
func (i *Identity) Provided() []string {
	var all []string
	for _, p := range i.ProviderAttributes {
		all = append(all, p.Attributes...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// lent returns the role attributes that come from signers and grants.
func (i *Identity) lent() []string { return append(i.Provided(), i.GrantedAttributes...) }

// Own returns the role attributes that people gave the identity.
func (i *Identity) Own() []string { return without(i.RoleAttributes, i.lent()) }

// ProvidedBy returns the ids of the signers that an attribute comes from.
func (i *Identity) ProvidedBy(attribute string) (signers []string) {
	for _, p := range i.ProviderAttributes {
		if slices.Contains(p.Attributes, attribute) {
			signers = append(signers, p.SignerID)
		}
	}
	return signers
}

// Provide has the attributes of one signer be others, but for those that the
// identity has as its own. A token that is older than the one that said what is
// so now changes nothing: whoever kept it would be in groups that they have left.
func (i *Identity) Provide(next Provided) {
	rest := []Provided{}
	for _, p := range i.ProviderAttributes {
		switch {
		case p.SignerID != next.SignerID:
			rest = append(rest, p)
		case p.TokenAt != nil && next.TokenAt != nil && next.TokenAt.Before(*p.TokenAt):
			return
		}
	}
	next.Attributes = slices.Compact(slices.Sorted(slices.Values(without(next.Attributes, i.Own()))))
	if len(next.Attributes) > 0 || next.TokenAt != nil {
		rest = append(rest, next)
	}
	slices.SortFunc(rest, func(a, b Provided) int { return strings.Compare(a.SignerID, b.SignerID) })
	i.ProviderAttributes, i.AttributeSigners = rest, nil
	for _, p := range rest {
		i.AttributeSigners = append(i.AttributeSigners, p.SignerID)
	}
}

// join shows the attributes that signers provide and grants give beside those of
// the identity's own. What came from elsewhere before the change is nobody's own:
// whoever reads all of them and writes them back has not made them so, and
// whoever leaves them out has not taken them away.
func (i *Identity) join(r kind.Reader, old *Identity) {
	i.ProviderAttributes = slices.DeleteFunc(slices.Clone(i.ProviderAttributes), func(p Provided) bool {
		return !slices.Contains(i.AttributeSigners, p.SignerID) // which is gone
	})
	own, provided := i.RoleAttributes, i.Provided()
	if old != nil {
		own = without(own, old.lent())
	} else {
		own = without(own, provided)
	}
	i.GrantedAttributes = without(Granted(r, i.ID), own)
	lent := i.lent()
	if len(lent) == 0 && (old == nil || len(old.lent()) == 0) {
		return // as they were given
	}
	all := append(append([]string{}, own...), lent...)
	slices.Sort(all)
	i.RoleAttributes = slices.Compact(all)
}

// without returns those of a list that are not in another.
func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(others, s) })
}
