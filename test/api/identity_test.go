package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

func TestIdentityValues(t *testing.T) {
	c := shared.Admin(t)
	id := create(t, c, "identities", nil)
	least := resourceAt("identities").least
	for _, test := range []struct {
		member M
		status int
		code   string
		field  string
	}{
		{M{"type": "Person"}, 400, "COULD_NOT_VALIDATE", "type"},
		{M{"type": "user"}, 400, "COULD_NOT_VALIDATE", "type"},
		{M{"defaultHostingCost": -1}, 400, "COULD_NOT_VALIDATE", "defaultHostingCost"},
		{M{"defaultHostingCost": 65536}, 400, "COULD_NOT_VALIDATE", "defaultHostingCost"},
		{M{"defaultHostingCost": 1.5}, 400, "COULD_NOT_PARSE_BODY", "defaultHostingCost"},
		{M{"defaultHostingCost": 1e30}, 400, "COULD_NOT_PARSE_BODY", "defaultHostingCost"},
		{M{"defaultHostingPrecedence": "first"}, 400, "COULD_NOT_VALIDATE", "defaultHostingPrecedence"},
		{M{"roleAttributes": []any{"#all"}}, 400, "COULD_NOT_VALIDATE", "roleAttributes"},
		{M{"roleAttributes": []any{"@id"}}, 400, "COULD_NOT_VALIDATE", "roleAttributes"},
		{M{"roleAttributes": []any{""}}, 400, "COULD_NOT_VALIDATE", "roleAttributes"},
		{M{"roleAttributes": []any{1}}, 400, "COULD_NOT_PARSE_BODY", "roleAttributes"},
		{M{"appData": []any{}}, 400, "COULD_NOT_PARSE_BODY", "appData"},
		{M{"authPolicyId": "nope"}, 404, "NOT_FOUND", "authPolicyId"},
		{M{"serviceHostingCosts": M{"nope": 1}}, 404, "NOT_FOUND", "serviceHostingCosts"},
		{M{"serviceHostingPrecedences": M{"nope": "default"}}, 404, "NOT_FOUND", "serviceHostingPrecedences"},
		{M{"serviceHostingCosts": M{"x": 65536}}, 400, "COULD_NOT_VALIDATE", "serviceHostingCosts.x"},
		{M{"serviceHostingPrecedences": M{"x": "first"}}, 400, "COULD_NOT_VALIDATE", "serviceHostingPrecedences.x"},
	} {
		c.Post("identities", joined(least(t, c), test.member)).Fails(test.status, test.code, test.field)
		c.Put("identities/"+id, joined(least(t, c), test.member)).Fails(test.status, test.code, test.field)
		c.Patch("identities/"+id, test.member).Fails(test.status, test.code, test.field)
	}
}

func TestIdentityTypesAndReferences(t *testing.T) {
	c := shared.Admin(t)
	policy := resourceAt("auth-policies").least(t, c)
	policyID := c.Post("auth-policies", policy).Want(201).ID()
	for _, typ := range []string{"User", "Device", "Service", "Router", "Default"} {
		id := create(t, c, "identities", M{"type": typ, "authPolicyId": policyID})
		got := c.Get("identities/" + id).Data()
		want := M{
			"type": M{
				"_links": M{"self": M{"href": "./identity-types/" + typ}},
				"entity": "identity-types", "id": typ, "name": typ,
			},
			"typeId": typ,
			"authPolicy": M{
				"_links": M{"self": M{"href": "./auth-policies/" + policyID}},
				"entity": "auth-policies", "id": policyID, "name": policy["name"],
			},
			"authPolicyId": policyID, "isDefaultAdmin": false, "isMfaEnabled": false, "hasApiSession": false,
			"hasEdgeRouterConnection": false, "disabled": false, "envInfo": M{}, "sdkInfo": M{},
			"authenticators": M{}, "enrollment": M{},
		}
		for name, value := range want {
			if diff := cmp.Diff(value, got[name]); diff != "" {
				t.Errorf("%s of a %s differs (-want +got):\n%s", name, typ, diff)
			}
		}
	}
	c.Delete("auth-policies/"+policyID).Fails(409, "CAN_NOT_DELETE_REFERENCED_ENTITY", "authPolicyId")
}

func TestIdentityExternalID(t *testing.T) {
	c := shared.Admin(t)
	external := servertest.Unique("external")
	first := create(t, c, "identities", M{"externalId": external})
	second := create(t, c, "identities", nil)
	c.Post("identities", joined(resourceAt("identities").least(t, c), M{"externalId": external})).
		Fails(400, "COULD_NOT_VALIDATE", "externalId")
	c.Patch("identities/"+second, M{"externalId": external}).Fails(400, "COULD_NOT_VALIDATE", "externalId")

	c.Patch("identities/"+first, M{"externalId": nil}).Want(200)
	if got := c.Get("identities/" + first).Data()["externalId"]; got != external {
		t.Errorf("null changed externalId to %v", got)
	}
	c.Patch("identities/"+first, M{"externalId": ""}).Want(200)
	if got := c.Get("identities/" + first).Data()["externalId"]; got != nil {
		t.Errorf("empty text left externalId %v", got)
	}
	c.Patch("identities/"+second, M{"externalId": external}).Want(200) // it is free again
}

func TestIdentityListsAreSets(t *testing.T) {
	c := shared.Admin(t)
	id := create(t, c, "identities", M{"roleAttributes": []any{"b", "a", "b"}})
	want := []any{"a", "b"}
	if diff := cmp.Diff(want, c.Get("identities/"+id).At("data.roleAttributes")); diff != "" {
		t.Errorf("roleAttributes differ (-want +got):\n%s", diff)
	}
	c.Patch("identities/"+id, M{"roleAttributes": []any{}}).Want(200)
	if diff := cmp.Diff([]any{}, c.Get("identities/"+id).At("data.roleAttributes")); diff != "" {
		t.Errorf("an empty list does not clear (-want +got):\n%s", diff)
	}
}

// TestIdentityForgetsServices deletes a service that an identity names.
func TestIdentityForgetsServices(t *testing.T) {
	c := shared.Admin(t)
	service, other := create(t, c, "services", nil), create(t, c, "services", nil)
	id := create(t, c, "identities", M{
		"serviceHostingCosts":       M{service: 1, other: 2},
		"serviceHostingPrecedences": M{service: "failed"},
	})
	c.Delete("services/" + service).Want(200)
	got := c.Get("identities/" + id).Data()
	if diff := cmp.Diff(M{other: 2.0}, got["serviceHostingCosts"]); diff != "" {
		t.Errorf("costs differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(M{}, got["serviceHostingPrecedences"]); diff != "" {
		t.Errorf("precedences differ (-want +got):\n%s", diff)
	}
}

func TestDefaultAdmin(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	id := c.Get("current-api-session").At("data.identityId").(string)
	c.Delete("identities/"+id).Fails(400, "ENTITY_CAN_NOT_BE_DELETED", "")

	for _, change := range []func(){
		func() { c.Patch("identities/"+id, M{"isAdmin": false, "isDefaultAdmin": false}).Want(200) },
		func() {
			c.Put("identities/"+id, M{"name": "Somebody", "type": "User", "isAdmin": false, "isDefaultAdmin": false}).Want(200)
		},
	} {
		change()
		got := c.Get("identities/" + id).Want(200).Data() // still lets an admin read
		if got["isDefaultAdmin"] != true || got["isAdmin"] != false {
			t.Errorf("isDefaultAdmin %v, isAdmin %v", got["isDefaultAdmin"], got["isAdmin"])
		}
	}
	s.Login(t, servertest.Username, servertest.Password).Get("identities").Want(200) // a new session has the rights too
	other := create(t, c, "identities", M{"isDefaultAdmin": true})
	if got := c.Get("identities/" + other).Data()["isDefaultAdmin"]; got != false {
		t.Errorf("somebody else became default admin")
	}
}

func TestDefaultAuthPolicy(t *testing.T) {
	c := servertest.Start(t).Admin(t)
	got := c.Get("auth-policies/default").Want(200).Data()
	if got["name"] != "Default" {
		t.Errorf("name is %v", got["name"])
	}
	want := M{
		"cert": M{"allowed": true, "allowExpiredCerts": true},
		"updb": M{
			"allowed": true, "minPasswordLength": 5.0, "requireSpecialChar": false, "requireNumberChar": false,
			"requireMixedCase": false, "maxAttempts": 0.0, "lockoutDurationMinutes": 0.0,
		},
		"extJwt": M{"allowed": true, "allowedSigners": []any{}},
	}
	if diff := cmp.Diff(want, got["primary"]); diff != "" {
		t.Errorf("primary differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(M{"requireTotp": false, "requireExtJwtSigner": nil}, got["secondary"]); diff != "" {
		t.Errorf("secondary differs (-want +got):\n%s", diff)
	}
	c.Delete("auth-policies/default").Fails(409, "CAN_NOT_DELETE_REFERENCED_ENTITY", "authPolicyId")
	c.Patch("auth-policies/default", M{"primary": M{"updb": M{"maxAttempts": 9}}}).Want(200)
	if got := c.Get("auth-policies/default").At("data.primary.updb.maxAttempts"); got != 9.0 {
		t.Errorf("maxAttempts is %v after the patch", got)
	}
	c.Put("auth-policies/default", joined(policyBody(), M{"name": "Renamed"})).Want(200)
	if got := c.Get("auth-policies/default").At("data.name"); got != "Renamed" {
		t.Errorf("name is %v after the replace", got)
	}
	id := create(t, c, "identities", nil) // still applies to those without one
	if got := c.Get("identities/" + id).At("data.authPolicyId"); got != "default" {
		t.Errorf("authPolicyId is %v", got)
	}
}
