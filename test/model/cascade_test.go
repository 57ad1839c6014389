package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

func TestIdentityDelete(t *testing.T) {
	c := shared.Admin(t)
	id := create(t, c, "identities", M{"enrollment": M{"ott": true}})
	enrollment := c.Get("identities/" + id).At("data.enrollment.ott.id").(string)
	auth := create(t, c, "authenticators", M{"identityId": id})
	policy := create(t, c, "service-policies", M{"identityRoles": []any{"@" + id, "#x"}})
	service, config := create(t, c, "services", nil), create(t, c, "configs", nil)
	c.Post("identities/"+id+"/service-configs", []any{M{"serviceId": service, "configId": config}}).Want(200)

	c.Delete("identities/" + id).Want(200)
	gone(t, c, "identities/"+id, "enrollments/"+enrollment, "authenticators/"+auth)
	if diff := cmp.Diff([]any{"#x"}, c.Get("service-policies/"+policy).At("data.identityRoles")); diff != "" {
		t.Error(diff)
	}
	c.Get("identities/"+id+"/service-configs").Fails(404, "NOT_FOUND", "")
}

func TestServiceDelete(t *testing.T) {
	c := shared.Admin(t)
	id := create(t, c, "services", nil)
	terminator := create(t, c, "terminators", M{"service": id})
	who := create(t, c, "identities", M{"serviceHostingCosts": M{id: 7}, "serviceHostingPrecedences": M{id: "failed"}})
	policy := create(t, c, "service-policies", M{"serviceRoles": []any{"@" + id}})
	c.Delete("services/" + id).Want(200)
	gone(t, c, "services/"+id, "terminators/"+terminator)
	got := c.Get("identities/" + who).Want(200)
	if len(got.At("data.serviceHostingCosts").(M)) != 0 || len(got.At("data.serviceHostingPrecedences").(M)) != 0 {
		t.Errorf("hosting maps still name the service: %s", got.Raw)
	}
	if roles := c.Get("service-policies/" + policy).At("data.serviceRoles").([]any); len(roles) != 0 {
		t.Errorf("roles are %v", roles)
	}
}

func TestConfigDelete(t *testing.T) {
	c := shared.Admin(t)
	id := create(t, c, "configs", nil)
	service := create(t, c, "services", M{"configs": []any{id}})
	who := create(t, c, "identities", nil)
	c.Post("identities/"+who+"/service-configs", []any{M{"serviceId": service, "configId": id}}).Want(200)
	c.Delete("configs/" + id).Want(200)
	if configs := c.Get("services/" + service).At("data.configs").([]any); len(configs) != 0 {
		t.Errorf("the service still has configs %v", configs)
	}
	if overrides := c.Get("identities/" + who + "/service-configs").List(); len(overrides) != 0 {
		t.Errorf("the identity still has overrides %v", overrides)
	}
}

func TestRestrictedDeletes(t *testing.T) {
	c := shared.Admin(t)
	policy := create(t, c, "auth-policies", nil)
	create(t, c, "identities", M{"authPolicyId": policy})
	c.Delete("auth-policies/"+policy).Fails(409, "CAN_NOT_DELETE_REFERENCED_ENTITY", "authPolicyId")

	signer := create(t, c, "external-jwt-signers", nil)
	body := sample(t, c, "auth-policies", nil)
	body["primary"].(M)["extJwt"] = M{"allowed": true, "allowedSigners": []any{signer}}
	c.Post("auth-policies", body).Want(201)
	c.Delete("external-jwt-signers/"+signer).Fails(409, "CAN_NOT_DELETE_REFERENCED_ENTITY", "primary.extJwt.allowedSigners")

	c.Delete("auth-policies/default").Fails(409, "CAN_NOT_DELETE_REFERENCED_ENTITY", "authPolicyId")
}

func TestCADelete(t *testing.T) {
	c := shared.Admin(t)
	ca := create(t, c, "cas", nil)
	who := create(t, c, "identities", M{"enrollment": M{"ottca": ca}})
	enrollment := c.Get("identities/" + who).At("data.enrollment.ottca.id").(string)
	c.Delete("cas/" + ca).Want(200)
	gone(t, c, "cas/"+ca, "enrollments/"+enrollment)
}

// TestTunneler turns an edge router into a client of the network and back.
func TestTunneler(t *testing.T) {
	c := shared.Admin(t)
	name := servertest.Unique("router")
	id := create(t, c, "edge-routers", M{"name": name, "isTunnelerEnabled": true})
	identity := c.Get("identities/" + id).Want(200)
	if identity.At("data.name") != name || identity.At("data.typeId") != "Router" {
		t.Errorf("identity is %s", identity.Raw)
	}
	policy := c.Get("edge-router-policies/" + id).Want(200)
	if policy.At("data.isSystem") != true || policy.At("data.name") != "edge-router-"+id+"-system" {
		t.Errorf("policy is %s", policy.Raw)
	}
	wantIDs(t, c, "identities/"+id+"/edge-routers", id)

	c.Patch("edge-router-policies/"+id, M{"semantic": "AllOf"}).Fails(400, "ENTITY_CAN_NOT_BE_UPDATED", "")
	c.Delete("edge-router-policies/"+id).Fails(400, "ENTITY_CAN_NOT_BE_DELETED", "")
	c.Delete("identities/"+id).Fails(400, "ENTITY_CAN_NOT_BE_DELETED", "")
	c.Patch("identities/"+id, M{"name": servertest.Unique("x")}).Fails(400, "COULD_NOT_VALIDATE", "name")
	c.Patch("identities/"+id, M{"type": "User"}).Fails(400, "COULD_NOT_VALIDATE", "typeId")
	c.Post("authenticators", sample(t, c, "authenticators", M{"identityId": id})).Fails(400, "COULD_NOT_VALIDATE", "identityId")

	renamed := servertest.Unique("router")
	c.Patch("edge-routers/"+id, M{"name": renamed}).Want(200)
	if got := c.Get("identities/" + id).At("data.name"); got != renamed {
		t.Errorf("identity is called %v", got)
	}
	c.Patch("edge-routers/"+id, M{"isTunnelerEnabled": false}).Want(200)
	gone(t, c, "identities/"+id, "edge-router-policies/"+id)
	c.Patch("edge-routers/"+id, M{"isTunnelerEnabled": true}).Want(200)
	c.Get("identities/" + id).Want(200)
	c.Delete("edge-routers/" + id).Want(200)
	gone(t, c, "edge-routers/"+id, "identities/"+id, "edge-router-policies/"+id, "routers/"+id)
}

// TestRouters shares one name space between routers and edge routers.
func TestRouters(t *testing.T) {
	c := shared.Admin(t)
	name := servertest.Unique("router")
	edge := create(t, c, "edge-routers", M{"name": name, "cost": 5})
	c.Post("routers", M{"name": name}).Fails(400, "COULD_NOT_VALIDATE", "name")
	c.Patch("routers/"+edge, M{"cost": 6}).Fails(409, "CAN_NOT_UPDATE_ROUTER", "")
	if got := c.Get("routers/" + edge).Want(200).At("data.cost"); got != float64(5) {
		t.Errorf("cost is %v", got)
	}
	plain := c.Post("transit-routers", M{"name": servertest.Unique("r"), "tags": M{"a": "b"}, "disabled": true}).Want(201).ID()
	got := c.Get("routers/" + plain).Want(200)
	if got.At("data.tags.a") != "b" || got.At("data.disabled") != true {
		t.Errorf("router is %s", got.Raw)
	}
	if got.At("data.enrollmentToken") == nil || got.At("data.enrollmentJwt") == nil {
		t.Errorf("a fresh router has no invitation: %s", got.Raw)
	}
	other := c.Post("routers", M{"name": servertest.Unique("r")}).Want(201).ID()
	c.Patch("routers/"+other, M{"name": name}).Fails(400, "COULD_NOT_VALIDATE", "name")
	terminator := create(t, c, "terminators", M{"router": edge})
	enrollment := c.Get("edge-routers/" + edge).At("data.enrollmentToken").(string)
	c.Delete("routers/" + edge).Want(200)
	gone(t, c, "edge-routers/"+edge, "routers/"+edge, "terminators/"+terminator)
	if n := c.Get("enrollments?filter=" + escape(`token = "`+enrollment+`"`)).Total(); n != 0 {
		t.Error("the invitation outlived the router")
	}
}
