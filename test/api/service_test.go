package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

func TestServiceValues(t *testing.T) {
	c := shared.Admin(t)
	id := create(t, c, "services", nil)
	config := create(t, c, "configs", nil)
	typ := c.Get("configs/" + config).At("data.configTypeId")
	twin := create(t, c, "configs", M{"configTypeId": typ})
	for _, test := range []struct {
		member M
		status int
		code   string
		field  string
	}{
		{M{"configs": []any{"nope"}}, 404, "NOT_FOUND", "configs"},
		{M{"configs": []any{config, "nope"}}, 404, "NOT_FOUND", "configs"},
		{M{"configs": []any{config, twin}}, 400, "COULD_NOT_VALIDATE", "configs"},
		{M{"configs": []any{M{}}}, 400, "COULD_NOT_PARSE_BODY", "configs"},
		{M{"terminatorStrategy": "nope"}, 404, "NOT_FOUND", "terminatorStrategy"},
		{M{"roleAttributes": []any{"@x"}}, 400, "COULD_NOT_VALIDATE", "roleAttributes"},
	} {
		body := joined(resourceAt("services").least(t, c), test.member)
		c.Post("services", body).Fails(test.status, test.code, test.field)
		c.Put("services/"+id, body).Fails(test.status, test.code, test.field)
		c.Patch("services/"+id, test.member).Fails(test.status, test.code, test.field)
	}
	for _, strategy := range []string{"smartrouting", "weighted", "random", "sticky"} {
		c.Patch("services/"+id, M{"terminatorStrategy": strategy}).Want(200)
	}
}

func TestServiceEncryptionIsFixed(t *testing.T) {
	c := shared.Admin(t)
	for _, value := range []bool{true, false} {
		id := create(t, c, "services", M{"encryptionRequired": value})
		c.Patch("services/"+id, M{"encryptionRequired": !value}).Want(200)
		c.Put("services/"+id, M{"name": servertest.Unique("service"), "encryptionRequired": !value}).Want(200)
		c.Put("services/"+id, M{"name": servertest.Unique("service")}).Want(200)
		if got := c.Get("services/" + id).At("data.encryptionRequired"); got != value {
			t.Errorf("encryptionRequired is %v, was created %v", got, value)
		}
	}
}

func TestServiceShowsAdminAll(t *testing.T) {
	c := shared.Admin(t)
	got := c.Get("services/" + create(t, c, "services", nil)).Data()
	for name, want := range (M{"permissions": []any{"Bind", "Dial"}, "config": M{}, "postureQueries": []any{}}) {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", name, diff)
		}
	}
}

// TestServiceForgetsConfigs deletes a config that a service has.
func TestServiceForgetsConfigs(t *testing.T) {
	c := shared.Admin(t)
	gone, kept := create(t, c, "configs", nil), create(t, c, "configs", nil)
	id := create(t, c, "services", M{"configs": []any{gone, kept}})
	c.Delete("configs/" + gone).Want(200)
	if diff := cmp.Diff([]any{kept}, c.Get("services/"+id).At("data.configs")); diff != "" {
		t.Errorf("configs differ (-want +got):\n%s", diff)
	}
	if n := c.Get("services?filter=" + query(`anyOf(configs) = "%s"`, kept)).Total(); n != 1 {
		t.Errorf("filter by config finds %d, want 1", n)
	}
}

// TestServiceConfigTypes asks for configs of several types, as clients of OpenZiti do that have
// seen a controller of OpenZiti 1.1 or later, and as they are written by hand.
func TestServiceConfigTypes(t *testing.T) {
	c := shared.Admin(t)
	var types, configs []string
	for range 3 {
		config := create(t, c, "configs", nil)
		configs = append(configs, config)
		types = append(types, c.Get("configs/"+config).At("data.configTypeId").(string))
	}
	id := create(t, c, "services", M{"configs": configs})
	for query, want := range map[string]int{
		"":                         0,
		"?configTypes=":            0,
		"?configTypes=" + types[0]: 1,
		"?configTypes=all":         3,
		"?configTypes=nope&configTypes=" + types[1]:                              1,
		"?configTypes=" + types[0] + "&configTypes=" + types[2]:                  2,
		"?configTypes=" + types[0] + "," + types[1]:                              2,
		"?configTypes=" + types[0] + "," + types[1] + "&configTypes=" + types[2]: 3,
	} {
		if got := c.Get("services/" + id + query).At("data.config").(M); len(got) != want {
			t.Errorf("%s shows the configs %v, not %d of them", query, got, want)
		}
	}
}
