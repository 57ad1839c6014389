package auth_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// confined is somebody whose roles are about what has a tag alone, and the tag.
func confined(t *testing.T, allows ...string) (c *servertest.Client, tags M) {
	t.Helper()
	tags = M{"team": servertest.Unique("team")}
	role := shared.Admin(t).Post("admin-roles", M{"name": servertest.Unique("role"), "allows": allows, "onlyTags": tags}).Want(http.StatusCreated).ID()
	return enter(t, add(t, M{"adminRoles": []string{role}})), tags
}

// TestLimitedByAnotherPath wants routers that are not somebody's not to be there under any
// of the paths to them.
func TestLimitedByAnotherPath(t *testing.T) {
	t.Parallel()
	c, tags := confined(t, "router:*", "edge-router:*")
	admin := shared.Admin(t)
	others := []string{
		admin.Post("routers", M{"name": servertest.Unique("router")}).Want(http.StatusCreated).ID(),
		admin.Post("edge-routers", M{"name": servertest.Unique("router")}).Want(http.StatusCreated).ID(),
	}
	for _, id := range others {
		for _, path := range []string{"routers/", "transit-routers/", "edge-routers/", api.FabricRoot + "/routers/"} {
			c.Get(path+id).Fails(http.StatusNotFound, "NOT_FOUND", "")
			c.Patch(path+id, M{"name": "mine"}).Fails(http.StatusNotFound, "NOT_FOUND", "")
			c.Delete(path+id).Fails(http.StatusNotFound, "NOT_FOUND", "")
		}
		admin.Get("transit-routers/" + id).Want(http.StatusOK)
	}
	own := c.Post("transit-routers", M{"name": servertest.Unique("router"), "tags": tags}).Want(http.StatusCreated).ID()
	c.Get("transit-routers/" + own).Want(http.StatusOK)
	c.Delete("transit-routers/" + own).Want(http.StatusOK)
}

// TestLimitedReferences has somebody whose power is over some records lead to others by
// what they write: those are not there, by id and by name, alone and in lists of changes,
// and what the system keeps is.
func TestLimitedReferences(t *testing.T) {
	t.Parallel()
	c, tags := confined(t, "service:*", "config:*", "terminator:*", "router:*")
	admin, attribute := shared.Admin(t), servertest.Unique("attribute")
	hostV1, _ := admin.Get("config-types?filter=" + url.QueryEscape(`name = "host.v1"`)).Want(http.StatusOK).List()[0]["id"].(string)
	config := func(who *servertest.Client, tags M) (id, name string) {
		name = servertest.Unique("config")
		body := M{"name": name, "configTypeId": hostV1, "data": M{"protocol": "tcp", "address": "secret.example", "port": 80}, "tags": tags}
		return who.Post("configs", body).Want(http.StatusCreated).ID(), name
	}
	service := func(who *servertest.Client, tags M, configs ...string) *servertest.Answer {
		return who.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true, "roleAttributes": []string{attribute}, "tags": tags, "configs": configs})
	}
	hidden, hiddenName := config(admin, nil)
	mine, mineName := config(c, tags) // of a type that the system keeps
	own := service(c, tags, mine).Want(http.StatusCreated).ID()
	foreign := service(admin, nil, hidden).Want(http.StatusCreated).ID()

	service(c, tags, hidden).Fails(http.StatusNotFound, "NOT_FOUND", "configs")
	c.Patch("services/"+own, M{"configs": []string{hidden}}).Fails(http.StatusNotFound, "NOT_FOUND", "configs")
	change := func(op, target string, body M) *servertest.Answer {
		one := M{"op": op, "kind": "service", "body": body}
		if target != "" {
			one["target"] = target
		}
		return c.Post("changes?plan=true", M{"changes": []any{one}})
	}
	change("patch", own, M{"configs": []string{mineName}}).Want(http.StatusOK)
	for _, path := range []string{"nothing", "foreign"} { // one is told what the other is
		name := servertest.Unique("nothing")
		if path == "foreign" {
			name = hiddenName
		}
		a := change("patch", own, M{"configs": []string{name}}).Fails(http.StatusNotFound, "NOT_FOUND", "changes.0.body.configs")
		if got := a.At("error.cause.value"); got != name {
			t.Errorf("of %s the answer says %v", path, got)
		}
	}
	label, _ := admin.Get("services/" + foreign).Want(http.StatusOK).Data()["name"].(string)
	if there, not := change("patch", label, M{"tags": tags}), change("patch", "nothing", M{"tags": tags}); there.At("error.cause.reason") != not.At("error.cause.reason") {
		t.Errorf("of a service that is not theirs: %s, of none: %s", there.Raw, not.Raw)
	}

	// What an admin gave it stays when something else of it is changed.
	admin.Patch("services/"+own, M{"configs": []string{hidden}}).Want(http.StatusOK)
	c.Patch("services/"+own, M{"name": servertest.Unique("renamed")}).Want(http.StatusOK)
	c.Patch("services/"+own, M{"configs": []string{hidden}}).Want(http.StatusOK)

	router := c.Post("routers", M{"name": servertest.Unique("router"), "tags": tags}).Want(http.StatusCreated).ID()
	theirs := admin.Post("routers", M{"name": servertest.Unique("router")}).Want(http.StatusCreated).ID()
	host := func(service, router string) *servertest.Answer {
		return c.Post("terminators", M{"service": service, "router": router, "binding": "transport", "address": "tcp:127.0.0.1:1", "tags": tags})
	}
	host(foreign, router).Fails(http.StatusNotFound, "NOT_FOUND", "service")
	host(own, theirs).Fails(http.StatusNotFound, "NOT_FOUND", "router")
	host(own, router).Want(http.StatusCreated)
}

// TestLimitedHosts wants whoever reads everything to host no service that is not theirs.
func TestLimitedHosts(t *testing.T) {
	t.Parallel()
	admin, tags := shared.Admin(t), M{"team": servertest.Unique("team")}
	role := admin.Post("admin-roles", M{"name": servertest.Unique("role"), "allows": []string{"terminator:*"}, "onlyTags": tags}).Want(http.StatusCreated).ID()
	c := enter(t, add(t, M{"adminRoles": []string{role, "viewer"}}))
	service := admin.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Want(http.StatusCreated).ID()
	router := admin.Post("routers", M{"name": servertest.Unique("router"), "tags": tags}).Want(http.StatusCreated).ID()
	c.Post("terminators", M{"service": service, "router": router, "binding": "transport", "address": "tcp:127.0.0.1:1", "tags": tags}).
		Fails(http.StatusNotFound, "NOT_FOUND", "service")
}

// TestFilterThroughPolicies wants filters to look through a policy at nobody whom the
// caller may not read.
func TestFilterThroughPolicies(t *testing.T) {
	t.Parallel()
	admin, name := shared.Admin(t), servertest.Unique("somebody")
	who := add(t, M{"name": name})
	policy := admin.Post("service-policies", M{
		"name": servertest.Unique("policy"), "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"@" + who}, "serviceRoles": []string{"#all"},
	}).Want(http.StatusCreated).ID()
	role := admin.Post("admin-roles", M{"name": servertest.Unique("role"), "allows": []string{"service-policy:read"}}).Want(http.StatusCreated).ID()
	c := enter(t, add(t, M{"adminRoles": []string{role}}))
	ask := "service-policies?filter=" + url.QueryEscape(`not isEmpty(from identities where name = "`+name+`")`)
	if list := admin.Get(ask).Want(http.StatusOK).Raw; !strings.Contains(string(list), policy) {
		t.Errorf("who may read everybody does not find it: %s", list)
	}
	if n := c.Get(ask).Want(http.StatusOK).Total(); n != 0 {
		t.Errorf("somebody finds out by the name of whom they may not read: %d policies", n)
	}
}

// TestUntold has somebody write what they may not read: neither a refusal nor a plan tells
// them what was in it, or what assertions say.
func TestUntold(t *testing.T) {
	t.Parallel()
	admin, attribute, name := shared.Admin(t), servertest.Unique("attribute"), servertest.Unique("secretly")
	add(t, M{"name": name, "roleAttributes": []string{attribute}})
	admin.Post("services", M{"name": name, "encryptionRequired": true, "roleAttributes": []string{attribute}}).Want(http.StatusCreated)
	admin.Post("assertions", M{"name": name, "expect": "never", "identityRoles": []string{"#" + attribute}, "serviceRoles": []string{"#" + attribute}}).Want(http.StatusCreated)
	role := admin.Post("admin-roles", M{"name": servertest.Unique("role"), "allows": []string{"service-policy:create", "service-policy:update"}}).Want(http.StatusCreated).ID()
	c := enter(t, add(t, M{"adminRoles": []string{role}}))
	policy := func(who string) M {
		return M{"name": servertest.Unique("policy"), "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{who}, "serviceRoles": []string{"#" + attribute}}
	}
	plan := func(op, target string, body M) *servertest.Answer {
		one := M{"op": op, "kind": "service-policy", "body": body}
		if target != "" {
			one["target"] = target
		}
		return c.Post("changes?plan=true", M{"changes": []any{one}}).Want(http.StatusOK)
	}
	refused := c.Post("service-policies", policy("#"+attribute)).Fails(http.StatusConflict, "ASSERTION_BROKEN", "")
	planned := plan("create", "", policy("#"+attribute))
	for _, a := range []*servertest.Answer{refused, planned} {
		if strings.Contains(string(a.Raw), name) {
			t.Errorf("it tells what an assertion is about: %s", a.Raw)
		}
	}
	if broken, _ := planned.At("data.assertions").([]any); len(broken) != 1 {
		t.Errorf("a plan that would be refused says so of %v", broken)
	}
	body := policy("#" + name)
	other := admin.Post("service-policies", body).Want(http.StatusCreated).ID()
	if a := plan("patch", other, M{"identityRoles": []string{}}); strings.Contains(string(a.Raw), "#"+name) {
		t.Errorf("a plan tells what was there: %s", a.Raw)
	}
	if a := admin.Post("service-policies", policy("#"+attribute)).Fails(http.StatusConflict, "ASSERTION_BROKEN", "assertion"); !strings.Contains(string(a.Raw), name+" may dial "+name) {
		t.Errorf("who may read everything is not told: %s", a.Raw)
	}
}

// TestBlindReferences has somebody whose power is over all records of a kind lead to those
// of another that they may read none of: they are told what is missing, whether there is
// such a record or not, and get nothing of it to read.
func TestBlindReferences(t *testing.T) {
	t.Parallel()
	admin, secret := shared.Admin(t), servertest.Unique("secret")+".example"
	with := func(allows ...string) *servertest.Client {
		role := admin.Post("admin-roles", M{"name": servertest.Unique("role"), "allows": allows}).Want(http.StatusCreated).ID()
		return enter(t, add(t, M{"adminRoles": []string{role}}))
	}
	hostV1, _ := admin.Get("config-types?filter=" + url.QueryEscape(`name = "host.v1"`)).Want(http.StatusOK).List()[0]["id"].(string)
	name := servertest.Unique("config")
	config := admin.Post("configs", M{"name": name, "configTypeId": hostV1, "data": M{"protocol": "tcp", "address": secret, "port": 80}}).Want(http.StatusCreated).ID()
	body := func(configs ...string) M {
		return M{"name": servertest.Unique("service"), "encryptionRequired": true, "configs": configs}
	}

	c := with("service:*", "identity:update", "service-config:*")
	own := c.Post("services", body()).Want(http.StatusCreated).ID()
	who, _ := c.Get("current-identity").Want(http.StatusOK).Data()["id"].(string)
	lacks := func(a *servertest.Answer, field string) {
		t.Helper()
		a.Fails(http.StatusUnauthorized, "UNAUTHORIZED", field)
		if !strings.Contains(string(a.Raw), "config:read") {
			t.Errorf("it does not say what is missing: %s", a.Raw)
		}
	}
	for _, id := range []string{config, "nothing"} { // one is told what the other is
		lacks(c.Post("services", body(id)), "configs")
		lacks(c.Put("services/"+own, body(id)), "configs")
		lacks(c.Patch("services/"+own, M{"configs": []string{id}}), "configs")
	}
	for _, word := range []string{config, name, "nothing"} {
		for _, path := range []string{"changes", "changes?plan=true"} {
			lacks(c.Post(path, M{"changes": []any{M{"op": "patch", "kind": "service", "target": own, "body": M{"configs": []string{word}}}}}), "changes.0.body.configs")
		}
	}
	lacks(c.Post("identities/"+who+"/service-configs", []any{M{"serviceId": own, "configId": config}}), "configId")

	// What an admin gave the service stays, and is not shown either.
	admin.Patch("services/"+own, M{"configs": []string{config}}).Want(http.StatusOK)
	c.Patch("services/"+own, M{"name": servertest.Unique("renamed"), "configs": []string{config}}).Want(http.StatusOK)
	shown := "services?configTypes=all&filter="
	for _, ask := range []string{"services/" + own + "?configTypes=all", shown + url.QueryEscape(`id="`+own+`"`)} {
		if a := admin.Get(ask).Want(http.StatusOK); !strings.Contains(string(a.Raw), secret) {
			t.Errorf("an admin does not see the config: %s", a.Raw)
		}
		if a := c.Get(ask).Want(http.StatusOK); strings.Contains(string(a.Raw), secret) {
			t.Errorf("a config is shown to somebody who may read none: %s", a.Raw)
		}
	}
	ask := shown + url.QueryEscape(`not isEmpty(from configs where name = "`+name+`")`)
	if there, told := admin.Get(ask).Want(http.StatusOK).Total(), c.Get(ask).Want(http.StatusOK).Total(); there != 1 || told != 0 {
		t.Errorf("by the name of a config an admin finds %d services, somebody who may read none %d", there, told)
	}
	c.Get("services?asIdentity="+who).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")

	// Who may read them may.
	reader := with("service:*", "config:read")
	reader.Patch("services/"+own, M{"configs": []string{}}).Want(http.StatusOK)
	reader.Patch("services/"+own, M{"configs": []string{config}}).Want(http.StatusOK)
	reader.Patch("services/"+own, M{"configs": []string{"nothing"}}).Fails(http.StatusNotFound, "NOT_FOUND", "configs")
	if a := reader.Get("services/" + own + "?configTypes=all").Want(http.StatusOK); !strings.Contains(string(a.Raw), secret) {
		t.Errorf("who may read configs does not see one: %s", a.Raw)
	}

	// What every record of a kind has by itself is no reference that somebody makes.
	with("identity:create").Post("identities", M{"name": servertest.Unique("plain"), "type": "User", "isAdmin": false}).Want(http.StatusCreated)
}
