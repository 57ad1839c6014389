package api_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// TestMembersOfOthers sends every member that the flags of the public command line
// set, of its releases 1.6 and 2.0. Each comes back, or the answer names it: none
// vanishes.
func TestMembersOfOthers(t *testing.T) {
	c := shared.Admin(t)
	service := c.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Want(201).ID()
	router := c.Post("edge-routers", M{"name": servertest.Unique("router")}).Want(201).ID()
	address := "https://" + servertest.Unique("issuer") + ".example"
	signer := M{
		"issuer": address, "audience": "aud", "jwksEndpoint": address + "/keys", "claimsProperty": "email", "clientId": "id", "enabled": true,
		"externalAuthUrl": address + "/login", "useExternalId": true, "scopes": []any{"openid", "email"}, "targetToken": "ID",
		"enrollToCertEnabled": true, "enrollToTokenEnabled": true, "enrollAuthPolicyId": "default", "enrollNameClaimsSelector": "/sub", "enrollAttributeClaimsSelector": "/roles",
		"enrollEmailDomains": []any{"corp.example"},
	}
	routers := M{"cost": 5.0, "disabled": true, "noTraversal": true, "configs": []any{"x"}, "ctrlChanListeners": M{"tls:127.0.0.1:1": []any{}}}
	policy := M{"semantic": "AllOf", "identityRoles": []any{"#a"}, "serviceRoles": []any{"#b"}, "type": "Dial", "postureCheckRoles": []any{"#c"}}
	for _, test := range []struct {
		path  string
		sent  M
		named []string
	}{
		{"services", M{"encryptionRequired": false, "maxIdleTimeMillis": 300000.0, "roleAttributes": []any{"x"}, "terminatorStrategy": "weighted"}, nil},
		{"config-types", M{"schema": M{"type": "object"}, "target": "service"}, []string{"target"}},
		{"configs", M{"configTypeId": configType(t, c, "host.v1"), "data": M{"address": "localhost", "port": 22.0, "protocol": "tcp"}}, nil},
		{"identities", M{
			"type": "Device", "isAdmin": true, "appData": M{"k": "v"}, "authPolicyId": "default", "externalId": servertest.Unique("ext"), "roleAttributes": []any{"r"},
			"defaultHostingCost": 12.0, "defaultHostingPrecedence": "required", "serviceHostingCosts": M{service: 7.0}, "serviceHostingPrecedences": M{service: "required"},
			"permissions": []any{"service.read"},
		}, nil},
		{"identities", M{"type": "Device", "isAdmin": false, "permissions": []any{}, "interfaces": nil}, nil},
		{"edge-routers", joined(routers, M{"appData": M{"k": "v"}, "isTunnelerEnabled": true, "roleAttributes": []any{"r"}}), []string{"configs", "ctrlChanListeners"}},
		{"transit-routers", routers, []string{"configs", "ctrlChanListeners"}},
		{"service-policies", policy, nil},
		{"edge-router-policies", M{"semantic": "AllOf", "identityRoles": []any{"#a"}, "edgeRouterRoles": []any{"#b"}}, nil},
		{"service-edge-router-policies", M{"semantic": "AllOf", "serviceRoles": []any{"#a"}, "edgeRouterRoles": []any{"#b"}}, nil},
		{"external-jwt-signers", signer, nil},
		{"auth-policies", M{
			"primary": M{
				"cert": M{"allowed": true, "allowExpiredCerts": true}, "extJwt": M{"allowed": true, "allowedSigners": []any{}},
				"updb": M{"allowed": true, "lockoutDurationMinutes": 3.0, "maxAttempts": 4.0, "minPasswordLength": 9.0, "requireMixedCase": true, "requireNumberChar": true, "requireSpecialChar": true},
			},
			"secondary": M{"requireTotp": true, "requireExtJwtSigner": nil},
		}, nil},
		{"terminators", M{"address": "tcp:localhost:1", "binding": "transport", "cost": 9.0, "identity": "instance", "precedence": "required", "service": service, "router": router}, nil},
		{"posture-checks", M{"typeId": "MFA", "timeoutSeconds": 30.0, "promptOnWake": true, "promptOnUnlock": true, "ignoreLegacyEndpoints": true, "roleAttributes": []any{"r"}}, nil},
	} {
		t.Run(test.path, func(t *testing.T) {
			test.sent = joined(M{"tags": M{"a": "b"}}, test.sent)
			if test.path != "terminators" {
				test.sent["name"] = servertest.Unique("member")
			}
			a := c.Post(test.path, test.sent).Want(201)
			if got, want := a.Header.Get(ignored), quoted(test.named); got != want {
				t.Errorf("the answer names %s, want %s", got, want)
			}
			shown := c.Get(test.path + "/" + a.ID()).Want(200).Data()
			for _, name := range slices.Sorted(maps.Keys(test.sent)) {
				if !slices.Contains(test.named, name) {
					comesBack(t, name, test.sent[name], shown)
				}
			}
		})
	}
}

// comesBack expects a member as it was sent, or as an object with that id.
func comesBack(t *testing.T, name string, sent any, shown M) {
	t.Helper()
	got := shown[name]
	if entity, ok := got.(M); ok && entity["entity"] != nil {
		got = entity["id"]
	}
	if list, ok := got.([]any); ok && len(list) == 0 && sent == nil || name == "type" && shown["typeId"] == sent {
		return
	}
	if !reflect.DeepEqual(got, sent) {
		t.Errorf("%s was %v and is shown as %v", name, sent, got)
	}
}

// quoted is names as the header has them.
func quoted(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return `"` + strings.Join(names, `", "`) + `"`
}

// configType is the id of one that the network has.
func configType(t *testing.T, c *servertest.Client, name string) string {
	t.Helper()
	return c.Get("config-types?filter=" + query(`name = "%s"`, name)).Want(200).List()[0]["id"].(string)
}
