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
	{"Access", []string{"identity", "service", "service-policy", "grant", "access-request", "assertion", "config", "config-type", "posture-check"}},
	{"Network", []string{"edge-router", "router", "edge-router-policy", "service-edge-router-policy", "terminator", "link", "controller"}},
	{"Credentials", []string{"auth-policy", "authenticator", "enrollment", "ca", "ext-jwt-signer"}},
	{"Administrators", []string{"admin-role", "role-binding", "token"}},
	{"Activity", []string{"api-session", "session", "audit-entry"}},
	{"More", nil},
}

// nav are the ways to all tables.
func (v *visit) nav() []navGroup {
	here := strings.TrimPrefix(v.r.URL.Path, Root)
	open, _, _ := strings.Cut(here, "/")
	if open == "difference" {
		open = "history"
	}
	groups := []navGroup{{Links: append([]navLink{{"Overview", Root, here == ""}}, marked(places, open)...)}}
	placed := []string{"circuit"}
	for _, s := range sections {
		g := navGroup{Name: s.name}
		for _, d := range v.Kinds.Defs {
			if s.kinds == nil && v.shown(d) && !slices.Contains(placed, d.Name) {
				s.kinds = append(s.kinds, d.Name)
			}
		}
		for _, name := range s.kinds {
			if d := v.Kinds.Named(name); d != nil && v.shown(d) {
				g.Links = append(g.Links, navLink{titled(resource{v.Console, d}.many()), link(d.Path), open == d.Path})
				placed = append(placed, name)
			}
		}
		if len(g.Links) > 0 {
			groups = append(groups, g)
		}
	}
	for _, g := range lastPlaces {
		groups = append(groups, navGroup{g.Name, marked(g.Links, open)})
	}
	return groups
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
