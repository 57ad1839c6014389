package auth_test

import (
	"strings"
	"testing"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// bind gives tokens of an issuer a role.
func bind(i *issuer, role string, claims M) M {
	return M{"name": servertest.Unique("binding"), "roleId": role, "semantic": "AnyOf", "identityRoles": []any{}, "signerId": i.id, "claims": claims}
}

// TestBoundJWT has a pipeline show the token that its provider gave it.
func TestBoundJWT(t *testing.T) {
	admin, i := shared.Admin(t), newIssuer(t, "ES256", newKey(t), nil)
	right := M{"sub": "repo:shop/site", "repository": "shop/site", "ref": M{"name": "main"}}
	show := func(claims M) *servertest.Client {
		return shared.Nobody(t).With("Authorization", "Bearer "+i.token(t, claims))
	}
	show(right).Get("services").Fails(401, "UNAUTHORIZED", "")
	binding := admin.Post("role-bindings", bind(i, "policy-author", M{"repository": "shop/site", "/ref/name": "main"})).Want(201).ID()
	service := show(right).Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Want(201).ID()
	entry := admin.Get(`audit-entries?filter=targetId="` + service + `"`).Want(200).List()[0]
	if entry["actorKind"] != "role-binding" || entry["actorId"] != binding || !strings.HasPrefix(entry["actorName"].(string), "repo:shop/site by ") {
		t.Errorf("the entry says %v %v %v", entry["actorKind"], entry["actorId"], entry["actorName"])
	}
	show(right).Get("identities").Want(200)
	show(right).Post("identities", M{"name": servertest.Unique("identity"), "type": "User", "isAdmin": false}).Fails(401, "UNAUTHORIZED", "")
	show(right).Post("tokens", tokenBody(nil)).Fails(400, "COULD_NOT_VALIDATE", "ownerId")
	show(right).Post("tokens", tokenBody(M{"ownerId": add(t, nil)})).Fails(401, "UNAUTHORIZED", "")

	for name, claims := range map[string]M{
		"another repository": {"sub": "x", "repository": "shop/other", "ref": M{"name": "main"}},
		"a claim missing":    {"sub": "x", "repository": "shop/site"},
		"another audience":   {"sub": "x", "repository": "shop/site", "ref": M{"name": "main"}, "aud": "other"},
		"over":               {"sub": "x", "repository": "shop/site", "ref": M{"name": "main"}, "exp": 1000},
		"nobody":             {"sub": nil, "repository": "shop/site", "ref": M{"name": "main"}},
	} {
		t.Run(name, func(t *testing.T) { show(claims).For(t).Get("services").Fails(401, "UNAUTHORIZED", "") })
	}
	show(right).Get("current-identity").Fails(401, "UNAUTHORIZED", "")
	show(right).Get(api.ClientRoot+"/services").Fails(401, "UNAUTHORIZED", "")
	show(right).With("zt-session", "x").Get("services").Fails(401, "UNAUTHORIZED", "")

	// What a signer says has the power of its bindings, so it is out of reach.
	admin.Patch("external-jwt-signers/"+i.id, M{"audience": ""}).Fails(400, "COULD_NOT_VALIDATE", "audience")
	events := show(right).Stream("events")
	admin.Delete("role-bindings/" + binding).Want(200)
	show(right).Get("services").Fails(401, "UNAUTHORIZED", "")
	events.Ends("UNAUTHORIZED")
}

// TestBindingRefused has bindings that would let in too many.
func TestBindingRefused(t *testing.T) {
	admin, i := shared.Admin(t), newIssuer(t, "ES256", newKey(t), nil)
	open := newIssuer(t, "ES256", newKey(t), M{"audience": nil})
	admin.Post("role-bindings", bind(open, "viewer", M{"sub": "x"})).Fails(400, "COULD_NOT_VALIDATE", "signerId")
	admin.Post("role-bindings", bind(i, "viewer", M{})).Fails(400, "COULD_NOT_VALIDATE", "claims")
	admin.Post("role-bindings", bind(i, "viewer", M{"sub": ""})).Fails(400, "COULD_NOT_VALIDATE", "claims")
}
