package console

import (
	"slices"
	"strings"

	"netkeep.internal/internal/lang/kind"
)

// navGroup is some ways to other pages.
type navGroup struct {
	Name  string
	Links []navLink
}

type navLink struct {
	Text, Href string
	Here       bool
}

// sections order kinds by what people do with them. A kind that is in none is in the
// last.
var sections = []struct {
	name  string
	kinds []string
}{
	{"Access", []string{"identity", "service", "service-policy", "config", "config-type", "posture-check"}},
	{"Network", []string{"edge-router", "router", "edge-router-policy", "service-edge-router-policy", "terminator", "link", "circuit", "controller"}},
	{"Credentials", []string{"auth-policy", "authenticator", "enrollment", "ca", "ext-jwt-signer"}},
	{"Activity", []string{"api-session", "session", "audit-entry"}},
	{"More", nil},
}

// nav are the ways to all tables.
func (v *visit) nav() []navGroup {
	here := strings.TrimPrefix(v.r.URL.Path, Root)
	groups := []navGroup{{Links: []navLink{{"Overview", Root, here == ""}}}}
	groups[0].Links = append(groups[0].Links, reasonLinks(here)...)
	groups[0].Links = append(groups[0].Links, navLink{"Invite", link("invite"), here == "invite" || strings.HasPrefix(here, "invite/")})
	var placed []string
	for _, s := range sections {
		g := navGroup{Name: s.name}
		for _, d := range v.Kinds.Defs {
			if s.kinds == nil && v.shown(d) && !slices.Contains(placed, d.Name) {
				s.kinds = append(s.kinds, d.Name)
			}
		}
		for _, name := range s.kinds {
			if d := v.Kinds.Named(name); d != nil && v.shown(d) {
				first, _, _ := strings.Cut(here, "/")
				g.Links = append(g.Links, navLink{titled(resource{v.Console, d}.many()), link(d.Path), first == d.Path})
				placed = append(placed, name)
			}
		}
		if len(g.Links) > 0 {
			groups = append(groups, g)
		}
	}
	return append(groups, navGroup{Name: "For programs", Links: []navLink{{"API", link("api"), here == "api" || strings.HasPrefix(here, "api/")}}})
}

// shown reports whether a kind has pages.
func (c *Console) shown(d *kind.Def) bool { return d.Verbs.Has(kind.Lists | kind.Gets) }

// titled begins with a capital, and has short names all in capitals.
func titled(words string) string {
	list := strings.Split(words, " ")
	for i, w := range list {
		switch w {
		case "cas":
			list[i] = "CAs"
		case "ca", "id", "jwt", "api", "mfa", "pem", "url", "totp", "updb", "ott", "ottca", "sdk":
			list[i] = strings.ToUpper(w)
		}
	}
	text := strings.Join(list, " ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
