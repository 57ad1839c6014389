package auth_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// TestExplainSession asks why an identity cannot use a service that has to do
// with how it authenticates.
func TestExplainSession(t *testing.T) {
	admin := shared.Admin(t)
	service := admin.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Want(201).ID()
	policy := addPolicy(t, func(primary, secondary M) {
		primary["updb"].(M)["maxAttempts"], secondary["requireTotp"] = 1, true
	})
	id, password := add(t, M{"authPolicyId": policy}), rand.Text()
	says := func(passed bool, what, remedy string) {
		t.Helper()
		link := admin.Get("identities/" + id + "/explain/" + service).Want(200).At("data.links.1").(M)
		if link["passed"] != passed || !strings.Contains(link["what"].(string), what) || !strings.Contains(link["remedy"].(string), remedy) {
			t.Errorf("the link is %v, want %v, %q and %q", link, passed, what, remedy)
		}
	}
	says(false, "no API session", "netkeep invite")
	username, _ := addPassword(t, id, password)
	says(false, "no API session", "authenticate")
	shared.Nobody(t).Post(byPassword, M{"username": username, "password": "wrong one"}).Fails(401, "INVALID_AUTH", "")
	says(false, "its password is shut out", "netkeep enable identity ")
	admin.Post("identities/"+id+"/enable", nil).Want(200)
	shared.Login(t, username, password)
	says(false, "has yet to show", "one-time")
	admin.Patch("auth-policies/"+policy, M{"secondary": M{"requireTotp": false}}).Want(200)
	says(true, "is good", "")
}
