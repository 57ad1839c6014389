// Package people is what the tokens of identity providers make of those who bring
// them: whom a signer lets in who has no identity yet, what such a one is called,
// and which role attributes their groups become. It checks no token and opens no
// session, and must not import authn, rest or api.
package people

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"netkeep.internal/internal/auth/token"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

const (
	// maxAttributes is how many groups of somebody may become attributes. Every
	// policy is asked about each.
	maxAttributes = 100
	// maxGroups is how many groups a token may name at all.
	maxGroups = 1000
	// maxAttribute is how many bytes an attribute may have that was a group.
	maxAttribute = 128
	// maxName leaves room for a number behind a name that is taken, and
	// maxExternal is more than providers use.
	maxName, maxExternal = 240, 512
)

// Person is what a token says of who brings it.
type Person struct {
	ExternalID string
	Name       string
	Attributes []string // sorted
	// At is when the token was made; zero if it does not say.
	At time.Time
	// Left are the groups that become no attributes, and why.
	Left []Left
	// Wrong is why nobody can go by the token; empty if anybody can.
	Wrong string
	// Unwelcome is why who brings it becomes no identity; empty if they may.
	Unwelcome string
}

// provided is what a signer says of the person. A moment that is still to come is
// taken for now, or what is said later would not count.
func (p Person) provided(signer *model.ExtJWTSigner, now time.Time) model.Provided {
	said := model.Provided{SignerID: signer.ID, Attributes: p.Attributes}
	if signer.MapsGroups() && !p.At.IsZero() {
		at := p.At
		if at.After(now) {
			at = now
		}
		// Tokens count in seconds. One that says more of its time must not be taken for newer than
		// another of the same second, nor for older than one that was cut to now.
		at = at.UTC().Truncate(time.Second)
		said.TokenAt = &at
	}
	return said
}

// Fault is why nobody can go by the token, if that is so.
func (p Person) Fault() error {
	if p.Wrong == "" {
		return nil
	}
	return Refusal(p.Wrong)
}

// Left is a group that becomes no attribute.
type Left struct {
	Group string `json:"group" doc:"The group, as the token names it."`
	Why   string `json:"why" doc:"Why it becomes no role attribute."`
}

// Read reads a token whose signature, audience and times were checked.
func Read(signer *model.ExtJWTSigner, said token.Claims) Person {
	p := Person{ExternalID: said.Text(cmp.Or(signer.ClaimsProperty, "sub")), At: said.Begun()}
	p.Name = p.ExternalID
	if signer.EnrollNameClaimsSelector != "" {
		name, _ := said.At(signer.EnrollNameClaimsSelector)
		p.Name, _ = name.(string)
	}
	groups, wrong := groupsOf(signer, said)
	if p.Wrong = wrong; wrong != "" {
		return p
	}
	p.mapGroups(signer, groups)
	if len(p.Attributes) > maxAttributes {
		p.Wrong = fmt.Sprintf("%d groups of the token would become role attributes, and %d may; narrow enrollAttributeAllow", len(p.Attributes), maxAttributes)
		p.Attributes = nil
		return p
	}
	p.Unwelcome = p.judge(signer, said, groups)
	return p
}

// groupsOf lists the groups that a token names: those in a list, one alone, or
// the names in an object, as some providers have it.
func groupsOf(signer *model.ExtJWTSigner, said token.Claims) (groups []string, wrong string) {
	if signer.EnrollAttributeClaimsSelector == "" {
		return nil, ""
	}
	claim, _ := said.At(signer.EnrollAttributeClaimsSelector)
	switch claim := claim.(type) {
	case string:
		groups = []string{claim}
	case []any:
		for _, one := range claim {
			if text, ok := one.(string); ok {
				groups = append(groups, text)
			}
		}
	case map[string]any:
		for name := range claim {
			groups = append(groups, name)
		}
	}
	slices.Sort(groups)
	groups = slices.Compact(groups)
	if len(groups) > maxGroups {
		return nil, fmt.Sprintf("the token names %d groups, and %d may be; have the provider name fewer", len(groups), maxGroups)
	}
	return groups, ""
}

// mapGroups finds which groups become attributes.
func (p *Person) mapGroups(signer *model.ExtJWTSigner, groups []string) {
	for _, group := range groups {
		attribute := signer.EnrollAttributePrefix + group
		switch {
		case !signer.MapsGroups():
			p.leave(group, "the signer has neither enrollAttributePrefix nor enrollAttributeAllow")
		case len(signer.EnrollAttributeAllow) > 0 && !anyMatch(signer.EnrollAttributeAllow, group):
			p.leave(group, "enrollAttributeAllow does not have it")
		case group == "" || !kind.Visible(attribute) || !utf8.ValidString(attribute):
			p.leave(group, "it has characters that nobody sees, or blanks at an end")
		case attribute[0] == '#' || attribute[0] == '@':
			p.leave(group, "role attributes do not start with # or @")
		case attribute == "all":
			p.leave(group, "#all is everybody")
		case len(attribute) > maxAttribute:
			p.leave(group, fmt.Sprintf("it is longer than %d bytes", maxAttribute))
		default:
			p.Attributes = append(p.Attributes, attribute)
		}
	}
	slices.Sort(p.Attributes)
}

func (p *Person) leave(group, why string) { p.Left = append(p.Left, Left{group, why}) }

// judge says why somebody becomes no identity.
func (p *Person) judge(signer *model.ExtJWTSigner, said token.Claims, groups []string) string {
	switch {
	case !usable(p.ExternalID, maxExternal):
		return "the claim " + cmp.Or(signer.ClaimsProperty, "sub") + " is no text that could tell somebody from others"
	case !usable(p.Name, maxName):
		return "the claim " + cmp.Or(signer.EnrollNameClaimsSelector, signer.ClaimsProperty, "sub") + " is no text that could be a name; see enrollNameClaimsSelector"
	}
	if len(signer.EnrollEmailDomains) > 0 || signer.ClaimsProperty == "email" {
		if why := judgeEmail(signer, said); why != "" {
			return why
		}
	}
	if len(signer.EnrollGroups) > 0 && !slices.ContainsFunc(groups, func(g string) bool { return anyMatch(signer.EnrollGroups, g) }) {
		return "none of the token's groups is in enrollGroups"
	}
	for _, selector := range slices.Sorted(maps.Keys(signer.EnrollClaims)) {
		if claim, _ := said.At(selector); !Says(claim, signer.EnrollClaims[selector]) {
			return "the claim " + selector + " does not say what enrollClaims asks for"
		}
	}
	return ""
}

// judgeEmail says why the token's address is none to go by. Whoever types an
// address into a form does not have it yet.
func judgeEmail(signer *model.ExtJWTSigner, said token.Claims) string {
	address := said.Text("email")
	_, domain, _ := strings.Cut(address, "@") // what has two of them is in no list
	verified, _ := said.At("email_verified")
	switch {
	case address == "":
		return "the token has no claim email; ask the provider for the scope email"
	case verified != true && verified != "true":
		return "the provider has not verified the address: the claim email_verified is not true"
	case len(signer.EnrollEmailDomains) > 0 && !slices.Contains(signer.EnrollEmailDomains, lower(domain)):
		return "the domain of the claim email is not in enrollEmailDomains"
	}
	return ""
}

// lower writes the letters of ASCII small, and no others: there are some whose
// small form is a letter of ASCII.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// usable reports whether a text can be a name.
func usable(s string, most int) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= most && kind.Visible(s)
}

// Says reports whether a claim is what is wanted, or a list that has it.
func Says(claim any, want string) bool {
	switch claim := claim.(type) {
	case string:
		return claim == want
	case bool:
		return fmt.Sprint(claim) == want
	case []any:
		return slices.ContainsFunc(claim, func(one any) bool {
			text, ok := one.(string)
			return ok && text == want
		})
	}
	return false
}

// anyMatch reports whether one of the patterns matches.
func anyMatch(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, s) })
}

// match reports whether a text is a pattern in which * stands for any characters.
func match(pattern, s string) bool {
	first, rest, stars := strings.Cut(pattern, "*")
	if !stars {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, first)
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		at := strings.Index(s, part)
		if ok = ok && at >= 0; !ok {
			return false
		}
		s = s[at+len(part):]
	}
	return ok && strings.HasSuffix(s, parts[len(parts)-1])
}
