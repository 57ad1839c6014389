package auth_test

import (
	"net/http"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// TestGrantsGiveNoPower has somebody who may give role attributes for a time give one by
// which a role binding gives power: at once, and from a moment to come on, when it is the
// program that begins it. Nor do they change what those have who are more powerful.
func TestGrantsGiveNoPower(t *testing.T) {
	t.Parallel()
	admin, chiefs := shared.Admin(t), servertest.Unique("chiefs")
	role := admin.Post("admin-roles", M{"name": servertest.Unique("clerk"), "allows": []string{"grant:*", "identity:read"}}).Want(http.StatusCreated).ID()
	more := admin.Post("admin-roles", M{"name": servertest.Unique("more"), "allows": []string{"service:*"}}).Want(http.StatusCreated).ID()
	admin.Post("role-bindings", M{"name": servertest.Unique("binding"), "roleId": more, "semantic": "AnyOf", "identityRoles": []string{"#" + chiefs}}).Want(http.StatusCreated)
	clerk := add(t, M{"adminRoles": []string{role}})
	c, bob := enter(t, clerk), add(t, nil)
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	grant := func(who, attribute string, more M) M {
		body := M{"identityId": who, "attribute": attribute, "reason": "because", "validUntil": "2999-12-31T23:59:59Z"}
		for k, v := range more {
			body[k] = v
		}
		return body
	}
	for _, who := range []string{clerk, bob} {
		c.Post("grants", grant(who, chiefs, nil)).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
		c.Post("grants", grant(who, chiefs, M{"validFrom": soon})).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	}
	chief := add(t, M{"adminRoles": []string{more}})
	c.Post("grants", grant(chief, "harmless", nil)).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	c.Post("grants", grant(chief, "harmless", M{"validFrom": soon})).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")

	// What is harmless they may give, and take, but not what others gave of more.
	id := c.Post("grants", grant(bob, "harmless", M{"validFrom": soon})).Want(http.StatusCreated).ID()
	c.Patch("grants/"+id, M{"validFrom": nil}).Want(http.StatusOK)
	c.Delete("grants/" + id).Want(http.StatusOK)
	for _, times := range []M{nil, {"validFrom": soon}} {
		id := admin.Post("grants", grant(bob, chiefs, times)).Want(http.StatusCreated).ID()
		c.Patch("grants/"+id, M{"validFrom": nil, "reason": "now"}).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
		c.Delete("grants/"+id).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
		admin.Delete("grants/" + id).Want(http.StatusOK)
	}
	c.Post("grants", grant("nobody", "harmless", nil)).Fails(http.StatusNotFound, "NOT_FOUND", "identityId")
}
