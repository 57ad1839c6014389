package auth_test

import (
	"net/http"
	"slices"
	"testing"

	"netkeep.internal/test/servertest"
)

// TestPermissions has permissions of OpenZiti 2 count as admin roles, under the same rules.
func TestPermissions(t *testing.T) {
	admin := shared.Admin(t)
	id := add(t, M{"permissions": []string{"service.read", "config", "identity.create", "identity.read"}})
	who := enter(t, id)
	who.Get("services").Want(http.StatusOK)
	who.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Want(http.StatusUnauthorized)
	who.Get("service-policies").Want(http.StatusUnauthorized)
	config := who.Post("configs", M{"name": servertest.Unique("config"), "configTypeId": "NH5p4FpGR", "data": M{"protocol": "tcp", "address": "localhost", "port": 22}}).Want(http.StatusCreated).ID()
	who.Delete("configs/" + config).Want(http.StatusOK)

	// Nobody gives more than they have, in these words as in others.
	give := func(words ...string) M {
		return M{"name": servertest.Unique("identity"), "type": "Device", "isAdmin": false, "permissions": words}
	}
	who.Post("identities", give("service.read")).Want(http.StatusCreated)
	for _, word := range []string{"service", "service.delete", "admin_readonly", "router"} {
		who.Post("identities", give(word)).Want(http.StatusUnauthorized)
	}

	if got := who.Get("current-identity").Want(http.StatusOK).Data()["permissions"]; len(got.([]any)) != 4 {
		t.Errorf("the permissions are told as %v", got)
	}
	if roles, _ := who.Get("current-identity").Want(http.StatusOK).Data()["roles"].([]any); !slices.Contains(roles, any("service.read")) {
		t.Errorf("the roles are told as %v", roles)
	}
	admin.Post("identities", give("service.raed")).Fails(http.StatusBadRequest, "COULD_NOT_VALIDATE", "permissions")

	// Who is told of others only by reading them reads them, as the role viewer does.
	admin.Patch("identities/"+id, M{"permissions": []string{"admin_readonly"}}).Want(http.StatusOK)
	who.Get("service-policies").Want(http.StatusOK)
	who.Post("identities", give()).Want(http.StatusUnauthorized)
	admin.Put("identities/"+id, M{"name": servertest.Unique("identity"), "type": "Device", "isAdmin": false}).Want(http.StatusOK)
	who.Get("services").Want(http.StatusOK) // a tool that knows of no permissions leaves them
	admin.Patch("identities/"+id, M{"permissions": []string{}}).Want(http.StatusOK)
	who.Get("services").Want(http.StatusUnauthorized)
}
