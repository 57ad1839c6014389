package manifest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// abroad is what the import of OpenZiti's command line reads of each collection: what it
// calls that, and which members.
var abroad = map[string]struct {
	name    string
	members string
}{
	"auth-policies":                {"authPolicies", "name primary secondary tags"},
	"cas":                          {"certificateAuthorities", "name certPem isAuthEnabled isAutoCaEnrollmentEnabled isOttCaEnrollmentEnabled identityRoles identityNameFormat externalIdClaim tags"},
	"config-types":                 {"configTypes", "name schema tags"},
	"configs":                      {"configs", "name configTypeId data tags"},
	"edge-routers":                 {"edgeRouters", "name cost disabled noTraversal isTunnelerEnabled roleAttributes appData tags"},
	"edge-router-policies":         {"edgeRouterPolicies", "name semantic edgeRouterRoles identityRoles tags"},
	"service-edge-router-policies": {"serviceEdgeRouterPolicies", "name semantic edgeRouterRoles serviceRoles tags"},
	"service-policies":             {"servicePolicies", "name type semantic identityRoles serviceRoles postureCheckRoles tags"},
	"external-jwt-signers":         {"externalJwtSigners", "name enabled issuer audience certPem kid jwksEndpoint claimsProperty useExternalId externalAuthUrl clientId scopes targetToken tags"},
	"identities":                   {"identities", "name type isAdmin authPolicyId externalId roleAttributes appData defaultHostingCost defaultHostingPrecedence tags"},
	"posture-checks":               {"postureChecks", "name typeId roleAttributes domains macAddresses operatingSystems process semantic processes timeoutSeconds promptOnWake promptOnUnlock ignoreLegacyEndpoints tags"},
	"services":                     {"services", "name encryptionRequired terminatorStrategy roleAttributes configs tags"},
}

// renamed are members that it calls otherwise.
var renamed = map[string]string{"configTypeId": "configType", "authPolicyId": "authPolicy", "type": "typeId"}

// EncodeAbroad returns what a controller has in the form that `ziti ops import` reads, and
// what that cannot say.
func (n *Network) EncodeAbroad() (text []byte, left []string, err error) {
	doc := &value{}
	for _, d := range kinds {
		people := slices.DeleteFunc(n.sorted(d), func(c *current) bool { return c.made || c.inside })
		to, known := abroad[d.Path]
		if !known {
			if len(people) > 0 {
				left = append(left, fmt.Sprintf("%s: all %d", d.Path, len(people)))
			}
			continue
		}
		list := &value{list: true}
		for _, c := range people {
			v, lost := n.abroad(c, strings.Fields(to.members))
			if v != nil {
				list.items = append(list.items, v)
			}
			left = append(left, lost...)
		}
		doc.members = append(doc.members, member{name: to.name, value: list})
	}
	whole := doc.json()
	if err := whole.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, nil, err
	}
	return append(bytes.TrimSpace(whole), '\n'), left, nil
}

// abroad is a record with these members, nil if it would be another without what it loses.
func (n *Network) abroad(c *current, members []string) (v *value, lost []string) {
	said := c.body.object()
	at := c.def.Path + "/" + c.key
	if timed(said) {
		return nil, []string{at + ": it counts for a time alone"}
	}
	if said.names("postureCheckRoles") {
		// The import finds no checks by their names, and the policy must not do without.
		return nil, []string{at + ": it names posture checks by their names, which the import does not find; those by attributes it does"}
	}
	references(c.def.Fields, said, func(f *kind.Field, text string, _ spot) string {
		if f.Last() == "type" {
			return text
		}
		if text = n.nameOf(f, text); f.Roles != "" {
			return text
		}
		return "@" + text
	})
	if c.def == model.CAs.Def {
		lost = append(lost, at+": whether it is verified; there it is not")
	}
	v = &value{}
	fresh := body(c.def.Members(c.def.New(), kind.Create))
	for _, m := range said.members {
		name := m.name
		switch {
		case !slices.Contains(members, name):
			if !m.value.empty() && !bytes.Equal(fresh.named(name), m.value.json()) {
				lost = append(lost, at+": "+name)
			}
			continue
		case m.value.isNull():
			continue
		case name == "appData" && m.value.nested():
			lost = append(lost, at+": "+name+", which is more than texts and numbers") // 1.6.0 refuses the record for it
			continue
		case renamed[name] != "" && c.def.Path != "service-policies":
			name = renamed[name]
		}
		v.members = append(v.members, member{name: name, value: m.value})
	}
	return v, lost
}

// nameOf is the name of what a field refers to, also where files say the id of what every
// network has.
func (n *Network) nameOf(f *kind.Field, text string) string {
	for d, s := range n.shelves {
		if !slices.Contains(f.Targets(), d.Name) {
			continue
		}
		if c := s.byID[text]; c != nil && s.byName[text] == nil && c.name != "" {
			return c.name
		}
	}
	return text
}

// timed reports whether a record begins or ends by itself.
func timed(v *value) bool {
	for _, name := range []string{"validFrom", "validUntil"} {
		if m := v.member(name); m != nil && !m.isNull() {
			return true
		}
	}
	return false
}

// names reports whether a role list holds ids or names.
func (v *value) names(list string) bool {
	m := v.member(list)
	return m != nil && slices.ContainsFunc(m.items, func(item *value) bool {
		text, _ := item.text()
		return strings.HasPrefix(text, "@")
	})
}

// nested reports whether there is something in what is in it.
func (v *value) nested() bool {
	return slices.ContainsFunc(v.members, func(m member) bool { return m.value.scalar == nil })
}

// empty reports whether a value says nothing.
func (v *value) empty() bool {
	switch {
	case v.list:
		return len(v.items) == 0
	case v.isObject():
		return len(v.members) == 0
	}
	text := string(v.scalar)
	return text == "null" || text == `""` || text == "0" || text == "false"
}
