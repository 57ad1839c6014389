package auth_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// TestLimitedRole has somebody who runs the services of one team and nothing else: the
// others are not there for them.
func TestLimitedRole(t *testing.T) {
	t.Parallel()
	admin, team := shared.Admin(t), servertest.Unique("team")
	role := admin.Post("admin-roles", M{
		"name": team, "allows": []string{"service:*", "identity:read"}, "onlyAttributes": []string{team}, "onlyTags": M{"owner": "web"},
	}).Want(http.StatusCreated).ID()
	c := enter(t, add(t, M{"adminRoles": []string{role}}))
	service := func(name string, attributes []string, tags M) M {
		return M{"name": servertest.Unique(name), "encryptionRequired": true, "roleAttributes": attributes, "tags": tags}
	}
	own, tags := []string{team}, M{"owner": "web"}
	other := admin.Post("services", service("other", own, M{"owner": "db"})).Want(http.StatusCreated).ID()
	secret := admin.Post("services", service("secret", nil, tags)).Want(http.StatusCreated).ID()

	if n := c.Get("services").Want(http.StatusOK).Total(); n != 0 {
		t.Errorf("%d services are counted of which none is the team's", n)
	}
	mine := c.Post("services", service("mine", own, tags)).Want(http.StatusCreated).ID()
	c.Post("services", service("outside", nil, tags)).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	c.Post("services", service("outside", own, nil)).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	for _, query := range []string{"", "?filter=" + url.QueryEscape(`true`), "?sort=name", "?filter=" + url.QueryEscape(`tags.owner="db" or name contains "m"`)} {
		a := c.Get("services" + query).Want(http.StatusOK)
		if list := a.List(); len(list) != 1 || list[0]["id"] != mine || a.Total() != 1 {
			t.Errorf("services%s has %d entries of %d: %s", query, len(list), a.Total(), a.Raw)
		}
	}
	c.Get("services/" + mine).Want(http.StatusOK)
	c.Patch("services/"+mine, M{"name": servertest.Unique("renamed")}).Want(http.StatusOK)
	c.Patch("services/"+mine, M{"roleAttributes": []string{}}).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	c.Patch("services/"+mine, M{"tags": M{"owner": "db"}}).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	for _, id := range []string{other, secret, "nothing"} { // all alike
		c.Get("services/"+id).Fails(http.StatusNotFound, "NOT_FOUND", "")
		c.Get("services/"+id+"/configs").Fails(http.StatusNotFound, "NOT_FOUND", "")
		c.Patch("services/"+id, M{"roleAttributes": own, "tags": tags}).Fails(http.StatusNotFound, "NOT_FOUND", "")
		c.Delete("services/"+id).Fails(http.StatusNotFound, "NOT_FOUND", "")
		change := M{"changes": []any{M{"op": "delete", "kind": "service", "target": id}}}
		for _, path := range []string{"changes", "changes?plan=true"} {
			if a := c.Post(path, change); a.Status < 400 || a.Status == http.StatusUnauthorized {
				t.Errorf("%s of a service that is not there: %s", path, a.Raw)
			}
		}
	}
	for _, path := range []string{"configs", "summary", "service-role-attributes", "audit-entries", "events", "services/" + mine + "/who-can"} {
		c.Get(path).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	}

	// Whom a change lets in is not for those who may not read it.
	admin.Post("service-policies", M{
		"name": servertest.Unique("policy"), "type": "Dial", "semantic": "AnyOf", "serviceRoles": []string{"#" + team}, "identityRoles": []string{"#all"},
	}).Want(http.StatusCreated)
	plan := c.Post("changes?plan=true", M{"changes": []any{M{"op": "create", "kind": "service", "body": service("more", own, tags)}}}).Want(http.StatusOK)
	if pairs, _ := plan.At("data.access.pairs").([]any); len(pairs) > 0 || strings.Contains(string(plan.Raw), "Default Admin") {
		t.Errorf("a plan tells who may use what: %s", plan.Raw)
	}
	c.Delete("services/" + mine).Want(http.StatusOK)
	admin.Get("services/" + other).Want(http.StatusOK)
}

// TestMissingPower wants a refusal to say what is missing, and the same whether there is
// anything there.
func TestMissingPower(t *testing.T) {
	t.Parallel()
	c := enter(t, add(t, M{"adminRoles": []string{"viewer"}}))
	for _, id := range []string{add(t, nil), "nothing"} {
		a := c.Delete("identities/"+id).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
		if !strings.Contains(string(a.Raw), "identity:delete") {
			t.Errorf("it does not say what is missing: %s", a.Raw)
		}
	}
	if a := enter(t, add(t, nil)).Get("services").Fails(http.StatusUnauthorized, "UNAUTHORIZED", ""); !strings.Contains(string(a.Raw), "service:read") {
		t.Errorf("somebody without power is not told what is missing: %s", a.Raw)
	}
	if a := shared.Nobody(t).Get("services").Fails(http.StatusUnauthorized, "UNAUTHORIZED", ""); strings.Contains(string(a.Raw), "service:read") {
		t.Errorf("somebody who is nobody is not told to authenticate: %s", a.Raw)
	}
}

// TestMissingPowerOfChanges wants a list of changes to be refused with what is missing, in
// words that say nothing of what is there.
func TestMissingPowerOfChanges(t *testing.T) {
	t.Parallel()
	team := servertest.Unique("team")
	role := shared.Admin(t).Post("admin-roles", M{"name": team, "allows": []string{"service:*"}, "onlyAttributes": []string{team}}).Want(http.StatusCreated).ID()
	limited, viewer := enter(t, add(t, M{"adminRoles": []string{role}})), enter(t, add(t, M{"adminRoles": []string{"viewer"}}))
	own := limited.Post("services", M{"name": servertest.Unique("own"), "encryptionRequired": true, "roleAttributes": []string{team}}).Want(http.StatusCreated).ID()
	create := M{"op": "create", "kind": "service", "body": M{"name": servertest.Unique("outside"), "encryptionRequired": true}}
	for _, try := range []struct {
		who    *servertest.Client
		change M
		says   string
	}{
		{viewer, create, "needs the power service:create"},
		{viewer, M{"op": "delete", "kind": "service", "target": own}, "needs the power service:delete"},
		{viewer, M{"op": "delete", "kind": "service", "target": "nothing"}, "needs the power service:delete"},
		{limited, create, "the power service:create over some services only"},
		{limited, M{"op": "patch", "kind": "service", "target": own, "body": M{"roleAttributes": []string{}}}, "the power service:update over some services only"},
		{limited, M{"op": "create", "kind": "identity", "body": M{"name": "x", "type": "User", "isAdmin": true}}, "needs the power identity:create"},
	} {
		for _, path := range []string{"changes", "changes?plan=true"} {
			a := try.who.Post(path, M{"changes": []any{try.change}}).Want(http.StatusUnauthorized)
			if message, _ := a.At("error.message").(string); !strings.Contains(message, try.says) {
				t.Errorf("%s of %v says %q", path, try.change, message)
			}
		}
	}
}
