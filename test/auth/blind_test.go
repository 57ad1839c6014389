package auth_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// withRole is somebody who may do this to all records, and nothing else.
func withRole(t *testing.T, allows ...string) *servertest.Client {
	t.Helper()
	role := shared.Admin(t).Post("admin-roles", M{"name": servertest.Unique("role"), "allows": allows}).Want(http.StatusCreated).ID()
	return enter(t, add(t, M{"adminRoles": []string{role}}))
}

// TestBlindOperations has somebody lead to what they may not read by operations that do
// not write the record that their body describes: what is hidden and what is not there are
// refused alike, with the power that is missing.
func TestBlindOperations(t *testing.T) {
	t.Parallel()
	admin, later := shared.Admin(t), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	hidden := map[string]string{
		"identity": add(t, nil),
		"service":  admin.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Want(http.StatusCreated).ID(),
		"router":   admin.Post("routers", M{"name": servertest.Unique("router")}).Want(http.StatusCreated).ID(),
		"ca": admin.Post("cas", M{
			"name": servertest.Unique("ca"), "certPem": servertest.Certificate(t, true), "isAuthEnabled": true, "isOttCaEnrollmentEnabled": true, "isAutoCaEnrollmentEnabled": false, "identityRoles": []string{},
		}).Want(http.StatusCreated).ID(),
	}
	c := withRole(t, "enrollment:*", "identity:create", "authenticator:create", "token:*", "terminator:*", "grant:*")
	for _, try := range []struct {
		path, of, field string
		body            func(id string) M
	}{
		{"enrollments", "identity", "identityId", func(id string) M { return M{"identityId": id, "method": "ott", "expiresAt": later} }},
		{"authenticators", "identity", "identityId", func(id string) M {
			return M{"identityId": id, "method": "updb", "username": servertest.Unique("user"), "password": "a good password"}
		}},
		{"tokens", "identity", "ownerId", func(id string) M {
			return M{"name": servertest.Unique("token"), "roleId": "viewer", "ownerId": id, "expiresAt": later}
		}},
		{"grants", "identity", "identityId", func(id string) M {
			return M{"identityId": id, "attribute": servertest.Unique("attribute"), "reason": "because", "validUntil": later}
		}},
		{"identities", "ca", "caId", func(id string) M {
			return M{"name": servertest.Unique("identity"), "type": "User", "isAdmin": false, "enrollment": M{"ottca": id}}
		}},
		{"terminators", "service", "service", func(id string) M {
			return M{"service": id, "router": hidden["router"], "binding": "transport", "address": "tcp:127.0.0.1:1"}
		}},
	} {
		for _, id := range []string{hidden[try.of], "nothing"} {
			a := c.Post(try.path, try.body(id)).Fails(http.StatusUnauthorized, "UNAUTHORIZED", try.field)
			if !strings.Contains(string(a.Raw), try.of+":read") {
				t.Errorf("%s of %s does not say what is missing: %s", try.path, try.of, a.Raw)
			}
		}
		a := admin.Post(try.path, try.body(hidden[try.of]))
		if try.path != "tokens" { // whose owner has no power to lend
			a.Want(http.StatusCreated)
		}
	}
	issuers := M{"name": servertest.Unique("identity"), "type": "User", "isAdmin": false, "externalId": servertest.Unique("external")}
	for _, id := range []string{hidden["ca"], "nothing"} {
		issuers["externalIdIssuers"] = []string{id}
		issuers["name"] = servertest.Unique("identity")
		c.Post("identities", issuers).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "externalIdIssuers")
	}
}

// TestAttachedConfigs has somebody look after services who may read no configs: of those that
// a service has they are shown the ids alone, may leave them there, and may add none.
func TestAttachedConfigs(t *testing.T) {
	t.Parallel()
	admin, word := shared.Admin(t), servertest.Unique("hidden")
	kindOf := admin.Post("config-types", M{"name": servertest.Unique("type"), "schema": M{}}).Want(http.StatusCreated).ID()
	config := func() string {
		return admin.Post("configs", M{"name": servertest.Unique(word), "configTypeId": kindOf, "data": M{"a": word}}).Want(http.StatusCreated).ID()
	}
	there, other := config(), config()
	service := "services/" + admin.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true, "configs": []string{there}}).Want(http.StatusCreated).ID()
	c := withRole(t, "service:*")
	c.Patch(service, M{"configs": []string{there}}).Want(http.StatusOK)
	for _, more := range []string{other, "nothing"} {
		c.Patch(service, M{"configs": []string{there, more}}).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "configs")
	}
	if shown := c.Get(service + "?configTypes=all").Want(http.StatusOK); len(shown.Data()["configs"].([]any)) != 1 || shown.At("data.configs.0") != there || strings.Contains(string(shown.Raw), word) {
		t.Errorf("the service is shown as %s", shown.Raw)
	}
	if shown := c.Get(service + "/configs").Want(http.StatusOK); len(shown.List()) != 0 || shown.Total() != 0 {
		t.Errorf("its configs are shown as %s", shown.Raw)
	}
}

// TestKnownRoles wants whoever may make tokens to give them roles that they have, and to be
// told of no other one by its name.
func TestKnownRoles(t *testing.T) {
	t.Parallel()
	admin, name, later := shared.Admin(t), servertest.Unique("role"), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	own := admin.Post("admin-roles", M{"name": name, "allows": []string{"token:*"}}).Want(http.StatusCreated).ID()
	hidden := servertest.Unique("hidden")
	role := admin.Post("admin-roles", M{"name": hidden, "allows": []string{"token:read"}}).Want(http.StatusCreated).ID()
	c := enter(t, add(t, M{"adminRoles": []string{own}}))
	token := func(word string) *servertest.Answer {
		return c.Post("tokens", M{"name": servertest.Unique("token"), "roleId": word, "expiresAt": later})
	}
	token(name).Want(http.StatusCreated)
	for _, word := range []string{hidden, role, hidden[:len(hidden)-1]} {
		if a := token(word).Fails(http.StatusBadRequest, "REFERENCED_ENTITY_NOT_FOUND", "roleId"); strings.Count(string(a.Raw), hidden) > strings.Count(word, hidden) {
			t.Errorf("a role is told by its name to somebody who may not read it: %s", a.Raw)
		}
	}
}

// TestNameOfSomethingHidden wants whoever chooses a name that a record has which they may not read to
// be told that it is taken, and nothing else of who has it.
func TestNameOfSomethingHidden(t *testing.T) {
	t.Parallel()
	admin, name := shared.Admin(t), servertest.Unique("taken")
	c, tags := confined(t, "service:*")
	body := func(name string) M { return M{"name": name, "encryptionRequired": true, "tags": tags} }
	hidden := admin.Post("services", M{"name": name, "encryptionRequired": false, "roleAttributes": []string{"secretly"}}).Want(http.StatusCreated).ID()
	mine := servertest.Unique("mine")
	own := c.Post("services", body(mine)).Want(http.StatusCreated).ID()
	change := func(name string) M {
		return M{"changes": []any{M{"op": "create", "kind": "service", "body": body(name)}}}
	}
	for _, ask := range []func(name string) *servertest.Answer{
		func(name string) *servertest.Answer { return c.Post("services", body(name)) },
		func(name string) *servertest.Answer { return c.Post("changes", change(name)) },
		func(name string) *servertest.Answer { return c.Post("changes?plan=true", change(name)) },
	} {
		// It says the same of one of theirs, which they can see.
		theirs, others := ask(mine).Want(http.StatusBadRequest), ask(name).Want(http.StatusBadRequest)
		for _, at := range []string{"error.code", "error.message", "error.cause.reason", "error.cause.field"} {
			if theirs.At(at) != others.At(at) {
				t.Errorf("%s of a name that a hidden record has: %v, of one's own: %v", at, others.At(at), theirs.At(at))
			}
		}
		if strings.Contains(string(others.Raw), hidden) || strings.Contains(string(others.Raw), "secretly") || others.At("error.cause.value") != name {
			t.Errorf("it tells more than that the name is taken: %s", others.Raw)
		}
	}
	c.Patch("services/"+own, M{"name": name}).Fails(http.StatusBadRequest, "COULD_NOT_VALIDATE", "name")
}
