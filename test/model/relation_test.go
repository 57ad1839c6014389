package model_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

func escape(s string) string { return url.QueryEscape(s) }

// ids returns the ids of a list, sorted.
func ids(c *servertest.Client, path string) []string {
	found := []string{}
	for _, entry := range c.Get(path).Want(200).List() {
		found = append(found, entry["id"].(string))
	}
	slices.Sort(found)
	return found
}

func wantIDs(t *testing.T, c *servertest.Client, path string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(append([]string{}, want...), ids(c, path)); diff != "" {
		t.Errorf("%s:\n%s", path, diff)
	}
}

// TestRelations walks a small world in both directions.
func TestRelations(t *testing.T) {
	c := shared.Admin(t)
	a, b := servertest.Unique("a"), servertest.Unique("b")
	alice := create(t, c, "identities", M{"roleAttributes": []any{a}})
	bob := create(t, c, "identities", M{"roleAttributes": []any{a, b}})
	web := create(t, c, "services", M{"roleAttributes": []any{a}})
	mail := create(t, c, "services", M{"roleAttributes": []any{b}})
	east := create(t, c, "edge-routers", M{"roleAttributes": []any{a}})
	west := create(t, c, "edge-routers", M{"roleAttributes": []any{b}})
	check := create(t, c, "posture-checks", M{"roleAttributes": []any{a}})
	dial := create(t, c, "service-policies", M{"identityRoles": []any{"#" + a}, "serviceRoles": []any{"#" + a}, "postureCheckRoles": []any{"@" + check}})
	bind := create(t, c, "service-policies", M{"type": "Bind", "semantic": "AllOf", "identityRoles": []any{"#" + a, "#" + b}, "serviceRoles": []any{"@" + mail}})
	reach := create(t, c, "edge-router-policies", M{"identityRoles": []any{"@" + alice}, "edgeRouterRoles": []any{"#" + a, "#" + b}})
	carry := create(t, c, "service-edge-router-policies", M{"serviceRoles": []any{"@" + web}, "edgeRouterRoles": []any{"#" + b}})
	config := create(t, c, "configs", nil)
	c.Patch("services/"+web, M{"configs": []any{config}}).Want(200)
	terminator := create(t, c, "terminators", M{"service": web})

	for path, want := range map[string][]string{
		"identities/" + alice + "/services":                         {web},
		"identities/" + bob + "/services":                           {web, mail},
		"identities/" + bob + "/service-policies":                   {dial, bind},
		"identities/" + alice + "/edge-router-policies":             {reach},
		"identities/" + alice + "/edge-routers":                     {east, west},
		"identities/" + bob + "/edge-routers":                       {},
		"services/" + web + "/identities":                           {alice, bob},
		"services/" + mail + "/identities":                          {bob},
		"services/" + web + "/service-policies":                     {dial},
		"services/" + web + "/edge-routers":                         {west},
		"services/" + web + "/service-edge-router-policies":         {carry},
		"services/" + web + "/configs":                              {config},
		"services/" + web + "/terminators":                          {terminator},
		"edge-routers/" + west + "/identities":                      {alice},
		"edge-routers/" + west + "/services":                        {web},
		"edge-routers/" + west + "/edge-router-policies":            {reach},
		"edge-routers/" + west + "/service-edge-router-policies":    {carry},
		"service-policies/" + dial + "/identities":                  {alice, bob},
		"service-policies/" + dial + "/services":                    {web},
		"service-policies/" + dial + "/posture-checks":              {check},
		"edge-router-policies/" + reach + "/identities":             {alice},
		"edge-router-policies/" + reach + "/edge-routers":           {east, west},
		"service-edge-router-policies/" + carry + "/services":       {web},
		"service-edge-router-policies/" + carry + "/edge-routers":   {west},
		"identities/nope/services":                                  {},
		"identities?roleFilter=" + escape("#"+b):                    {bob},
		"identities?roleSemantic=anyof&roleFilter=" + escape("#"+a): {alice, bob},
		"services?roleFilter=" + escape("@"+mail):                   {mail},
	} {
		wantIDs(t, c, path, want...)
	}
	wantIDs(t, c, "identities/"+bob+"/services?filter="+escape(`id = "`+mail+`"`), mail)

	advice := c.Get("identities/" + alice + "/policy-advice/" + web).Want(200).Data()
	if advice["isDialAllowed"] != true || advice["isBindAllowed"] != false || len(advice["commonRouters"].([]any)) != 1 {
		t.Errorf("advice is %v", advice)
	}
	c.Get("identities/nope/policy-advice/"+web).Fails(404, "NOT_FOUND", "")

	// The semantic alone decides who matches.
	c.Patch("service-policies/"+bind, M{"semantic": "AnyOf"}).Want(200)
	wantIDs(t, c, "services/"+mail+"/identities", alice, bob)
	c.Patch("identities/"+alice, M{"roleAttributes": []any{}}).Want(200)
	wantIDs(t, c, "services/"+mail+"/identities", bob)
	wantIDs(t, c, "services/"+web+"/identities", bob)
}

// TestRoles refuses role lists that mean nothing.
func TestRoles(t *testing.T) {
	c := shared.Admin(t)
	for path, lists := range map[string]string{
		"service-policies":             "identityRoles serviceRoles postureCheckRoles",
		"edge-router-policies":         "identityRoles edgeRouterRoles",
		"service-edge-router-policies": "serviceRoles edgeRouterRoles",
	} {
		for _, list := range strings.Fields(lists) {
			for _, roles := range [][]any{{"#all", "#x"}, {"x"}, {"@nope"}, {"#"}} {
				c.Post(path, sample(t, c, path, M{list: roles})).Fails(400, "COULD_NOT_VALIDATE", list)
			}
			if named := c.Post(path, sample(t, c, path, M{list: []any{"@wiki"}})); !strings.Contains(string(named.Raw), "the id of a record, not its name") {
				t.Errorf("a name in the place of an id is refused with %s", named.Raw)
			}
		}
		c.Post(path, sample(t, c, path, M{"semantic": "allof"})).Fails(400, "COULD_NOT_VALIDATE", "semantic")
	}
	c.Get("identities?roleFilter=x").Fails(400, "COULD_NOT_VALIDATE", "roleFilter")
	c.Get("identities?roleSemantic=some&roleFilter="+escape("#x")).Fails(400, "COULD_NOT_VALIDATE", "roleSemantic")
}

// TestDisplayedRoles names the records in a role list.
func TestDisplayedRoles(t *testing.T) {
	c := shared.Admin(t)
	name := servertest.Unique("who")
	who := create(t, c, "identities", M{"name": name})
	policy := create(t, c, "service-policies", M{"identityRoles": []any{"@" + who, "#x"}})
	want := []any{M{"role": "#x", "name": "#x"}, M{"role": "@" + who, "name": "@" + name}}
	if diff := cmp.Diff(want, c.Get("service-policies/"+policy).At("data.identityRolesDisplay")); diff != "" {
		t.Error(diff)
	}
}
