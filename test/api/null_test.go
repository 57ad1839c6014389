package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// nulls are the lists for which a body may say null, which the Management API then
// answers: OpenZiti's controller answers null there, and tools that say null and read a
// list see a change.
var nulls = map[string][]string{
	"identities":                   {"roleAttributes"},
	"services":                     {"configs", "roleAttributes"},
	"edge-routers":                 {"roleAttributes"},
	"service-policies":             {"identityRoles", "postureCheckRoles", "serviceRoles"},
	"edge-router-policies":         {"edgeRouterRoles", "identityRoles"},
	"service-edge-router-policies": {"edgeRouterRoles", "serviceRoles"},
	"external-jwt-signers":         {"scopes"},
}

// unsaid is what answers have after a body that says null for all that has a default.
func (r resource) unsaid() M {
	want := joined(r.defaults)
	for _, list := range nulls[r.at()] {
		want[list] = nil
	}
	return want
}

// at is the path that links of the resource lead to.
func (r resource) at() string {
	if r.home != "" {
		return r.home
	}
	return r.path
}

// mayBeNull reports whether a specification may say that a list is null: only that of
// the Management API.
func mayBeNull(doc M, schema, list string) bool {
	named := map[string]string{
		"identityDetail": "identities", "currentIdentityDetail": "identities", "permittedIdentityDetail": "identities",
		"serviceDetail": "services", "permittedServiceDetail": "services", "edgeRouterDetail": "edge-routers",
		"servicePolicyDetail": "service-policies", "edgeRouterPolicyDetail": "edge-router-policies",
		"serviceEdgeRouterPolicyDetail": "service-edge-router-policies", "externalJwtSignerDetail": "external-jwt-signers", "extJwtSignerDetail": "external-jwt-signers",
	}
	servers, _ := doc["servers"].([]any)
	return fmt.Sprint(servers) == fmt.Sprint([]any{M{"url": api.ManagementRoot}}) && slices.Contains(nulls[named[schema]], list)
}

// TestNullIsKept has a list answered as null by the Management API while the last body
// that said anything of it, or could have, said null; each is [] otherwise, and in the
// Client API always.
func TestNullIsKept(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		lists := nulls[r.at()]
		if len(lists) == 0 {
			t.Logf("%s have none", r.path)
			return
		}
		saying := func(value any) M {
			body := M{}
			for _, list := range lists {
				body[list] = value
			}
			return body
		}
		least := r.least(t, c)
		id := c.Post(r.path, least).Want(201).ID()
		shows := func(when string, want any) {
			t.Helper()
			for _, rec := range []M{
				c.Get(r.path + "/" + id).Want(200).Data(),
				c.Get(r.path + "?filter=" + url.QueryEscape(`id = "`+id+`"`)).Want(200).List()[0],
			} {
				for _, list := range lists {
					if got := rec[list]; fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
						t.Errorf("%s: %s is %#v, want %#v", when, list, got, want)
					}
				}
			}
			for _, list := range lists { // a filter knows no difference
				if list != "scopes" {
					filter := url.QueryEscape(`isEmpty(` + list + `) and id = "` + id + `"`)
					if n := len(c.Get(r.path + "?filter=" + filter).Want(200).List()); n != 1 {
						t.Errorf("%s: isEmpty(%s) finds %d", when, list, n)
					}
				}
			}
		}
		shows("never set", []any{})
		c.Put(r.path+"/"+id, joined(least, r.also, saying(nil))).Want(200)
		shows("replaced by null", nil)
		c.Patch(r.path+"/"+id, joined(r.patch, M{"tags": M{"a": "b"}})).Want(200)
		shows("null, and something else is patched", nil)
		c.Patch(r.path+"/"+id, joined(r.patch, saying([]any{}))).Want(200)
		shows("patched to be empty", []any{})
		c.Patch(r.path+"/"+id, joined(r.patch, saying(nil))).Want(200)
		shows("patched with null, which changes nothing", []any{})
		c.Put(r.path+"/"+id, joined(least, r.also, saying(nil))).Want(200)
		c.Put(r.path+"/"+id, joined(least, r.also)).Want(200)
		shows("null, and replaced without it", []any{})
		c.Put(r.path+"/"+id, joined(least, r.also, saying([]any{}))).Want(200)
		shows("replaced by an empty one", []any{})
		c.Delete(r.path + "/" + id).Want(200)

		id = c.Post(r.path, joined(r.least(t, c), saying(nil))).Want(201).ID()
		shows("created with null", nil)
		id = c.Post(r.path, joined(r.least(t, c), saying([]any{}))).Want(201).ID()
		shows("created empty", []any{})
	})
}

// TestNullIsNotForClients has lists for which an administrator has said null answered as
// [] to clients, which walk through them without a look.
func TestNullIsNotForClients(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	c.Post("services", M{"name": "wiki", "encryptionRequired": true, "roleAttributes": nil, "configs": nil}).Want(201)
	me := c.Get(api.ClientRoot + "/current-identity").Want(200).Data()
	c.Put("identities/"+me["id"].(string), M{"name": me["name"], "type": me["typeId"], "isAdmin": true, "roleAttributes": nil}).Want(200)
	for path, lists := range map[string][]string{
		"services": {"configs", "roleAttributes"}, "current-identity": {"roleAttributes"}, "current-identity/services": {"roleAttributes"},
	} {
		data := c.Get(api.ClientRoot + "/" + path).Want(200).JSON.(M)["data"]
		entries, is := data.([]any)
		if !is {
			entries = []any{data}
		}
		if len(entries) != 1 {
			t.Errorf("%s has %d entries, want 1", path, len(entries))
		}
		for _, entry := range entries {
			for _, list := range lists {
				if is, ok := entry.(M)[list].([]any); !ok || len(is) != 0 {
					t.Errorf("%s: %s is %v, want []", path, list, entry.(M)[list])
				}
			}
		}
	}
	if got := c.Get("current-identity").Want(200).Data()["roleAttributes"]; got != nil {
		t.Errorf("who looks over the Management API sees %v, want null", got)
	}
}

// TestNullInThePast has null come back with a record that was deleted, and with the
// network as it was; taking back an edit leaves a list empty, since a patch says no null.
func TestNullInThePast(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	apply := func(undo M) {
		t.Helper()
		if n := conflicts(undo); n != "" {
			t.Fatalf("in the way: %s", n)
		}
		c.Post("changes", M{"changes": undo["changes"]}).Want(200)
	}
	shown := func(path string) any {
		t.Helper()
		return c.Get(path).Want(200).List()[0]["roleAttributes"]
	}
	wiki := "services?filter=" + url.QueryEscape(`name = "wiki"`)
	id := c.Post("services", M{"name": "wiki", "encryptionRequired": true, "roleAttributes": nil}).Want(201).ID()
	c.Patch("services/"+id, M{"roleAttributes": []string{}}).Want(200)
	c.Patch("services/"+id, M{"roleAttributes": []string{"a"}}).Want(200)
	entries := c.Get("audit-entries?filter=" + url.QueryEscape(`targetId = "`+id+`" sort by number`)).Want(200).List()
	if len(entries) != 3 {
		t.Fatalf("there are %d entries, want 3: null to [] is a change", len(entries))
	}
	for i, want := range []any{nil, []any{}, []any{"a"}} {
		if got := shown(wiki + "&at=" + entries[i]["id"].(string)); fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Errorf("after entry %d it was %#v, want %#v", i, got, want)
		}
	}
	if got := conflicts(c.Get("audit-entries/" + entries[1]["id"].(string) + "/undo").Want(200).Data()); !strings.Contains(got, "roleAttributes was changed since") {
		t.Errorf("in the way of taking back null: %q", got)
	}
	apply(undoOf(t, c, "updated", id))
	if got, is := shown(wiki).([]any); !is || len(got) != 0 {
		t.Errorf("the edit taken back leaves %v", shown(wiki))
	}
	c.Put("services/"+id, M{"name": "wiki", "encryptionRequired": true, "roleAttributes": nil}).Want(200)
	c.Delete("services/" + id).Want(200)
	apply(undoOf(t, c, "deleted", id))
	if got := shown(wiki); got != nil {
		t.Errorf("it came back with %v, want null", got)
	}
}

// TestListsAreNeverNull has every list of a record in answers, and never as null, but for
// those that only some posture checks have, and those above: clients walk through them without a look.
func TestListsAreNeverNull(t *testing.T) {
	forDocuments(t, func(t *testing.T, doc M) {
		lists := 0
		for name, schema := range lookup(doc, "#/components/schemas") {
			if !strings.HasSuffix(name, "Detail") || name == "postureCheckDetail" {
				continue
			}
			required := map[any]bool{}
			names, _ := schema.(M)["required"].([]any)
			for _, member := range names {
				required[member] = true
			}
			members, _ := schema.(M)["properties"].(M)
			for member, is := range members {
				if is.(M)["type"] != "array" {
					continue
				}
				if lists++; !required[member] || (is.(M)["nullable"] == true) != mayBeNull(doc, name, member) {
					t.Errorf("%s of %s may be null or absent", member, name)
				}
			}
		}
		if lists < 5 {
			t.Errorf("found only %d lists", lists)
		}
	})
}
