package auth_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// related makes a record of each kind that others refer to, and records that refer to all of
// them. All of their names begin with the word secret and have their kind.
func related(t *testing.T, s *servertest.Server) (places map[string]string) {
	t.Helper()
	admin, later := s.Admin(t), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	places = map[string]string{}
	add := func(kindName, path string, body M) string {
		body["name"] = "secret-" + kindName
		places[path] = admin.Post(path, body).Want(http.StatusCreated).ID()
		return places[path]
	}
	role := add("admin-role", "admin-roles", M{"allows": []string{"service:read"}})
	config := add("config", "configs", M{"configTypeId": add("config-type", "config-types", M{"schema": M{}}), "data": M{"a": "secret-config"}})
	ca := add("ca", "cas", M{"certPem": servertest.Certificate(t, true), "isAuthEnabled": true, "isAutoCaEnrollmentEnabled": false, "isOttCaEnrollmentEnabled": true, "identityRoles": []string{}})
	signer := add("ext-jwt-signer", "external-jwt-signers", M{"enabled": true, "issuer": "https://secret-ext-jwt-signer", "audience": "x", "jwksEndpoint": "https://127.0.0.1/keys"})
	primary, secondary := allowAll()
	primary["extJwt"] = M{"allowed": true, "allowedSigners": []string{signer}}
	policy := add("auth-policy", "auth-policies", M{"primary": primary, "secondary": secondary})
	service := add("service", "services", M{"encryptionRequired": true, "configs": []string{config}})
	router := add("edge-router", "edge-routers", M{"isTunnelerEnabled": true})
	who := add("identity", "identities", M{
		"type": "User", "isAdmin": false, "authPolicyId": policy, "adminRoles": []string{role}, "serviceHostingCosts": M{service: 3}, "enrollment": M{"ottca": ca},
	})
	add("terminator", "terminators", M{"service": service, "router": router, "binding": "transport", "address": "tcp:secret-terminator:1"})
	check := add("posture-check", "posture-checks", M{"typeId": "MFA"})
	people, hosts, gates := []string{"@" + who}, []string{"@" + service}, []string{"@" + router}
	add("service-policy", "service-policies", M{"type": "Dial", "semantic": "AnyOf", "identityRoles": people, "serviceRoles": hosts, "postureCheckRoles": []string{"@" + check}})
	add("edge-router-policy", "edge-router-policies", M{"semantic": "AnyOf", "identityRoles": people, "edgeRouterRoles": gates})
	add("service-edge-router-policy", "service-edge-router-policies", M{"semantic": "AnyOf", "serviceRoles": hosts, "edgeRouterRoles": gates})
	add("role-binding", "role-bindings", M{"roleId": role, "semantic": "AnyOf", "identityRoles": people})
	add("assertion", "assertions", M{"expect": "always", "identityRoles": people, "serviceRoles": hosts})
	add("token", "tokens", M{"roleId": role, "ownerId": who, "expiresAt": later})
	places["grants"] = admin.Post("grants", M{"identityId": who, "attribute": "some", "reason": "because", "validUntil": later}).Want(http.StatusCreated).ID()
	admin.Post("identities/"+who+"/service-configs", []any{M{"serviceId": service, "configId": config}}).Want(http.StatusOK)
	return places
}

// ofOthers are kinds of which a power to read shows records all the same: a router for
// traffic at the edge is among all routers and is an identity, and types are for everybody.
var ofOthers = map[string][]string{"config": {"config-type"}, "router": {"edge-router"}, "identity": {"edge-router"}}

// TestShownOfOthers has somebody for each power to read call what needs it, and nothing
// else: no answer names a record of another kind, whatever refers to it.
func TestShownOfOthers(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	places, all := related(t, s), needs(s)
	with := readers(t, s)
	shown := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		need := all[name]
		what, verb, _ := strings.Cut(need, ":")
		method, path, _ := strings.Cut(name, " ")
		if method != http.MethodGet || verb != "read" || slices.Contains([]string{"access", "audit-entry", "event", "status"}, what) { // which show something of every kind
			continue
		}
		path = strings.TrimPrefix(path, "/edge/management/v1/")
		if collection, rest, one := strings.Cut(path, "/{id}"); one {
			path = collection + "/" + places[strings.Replace(collection, "ext-jwt", "external-jwt", 1)] + rest
		}
		a := with(need).Do(method, strings.NewReplacer("{", "no-", "}", "").Replace(path)+"?configTypes=all", nil)
		for _, piece := range strings.Split(string(a.Raw), "secret-")[1:] {
			kindName := strings.TrimRight(piece[:strings.IndexAny(piece, "\"\\ :,&?")], "/")
			if shown++; kindName != what && !slices.Contains(ofOthers[what], kindName) {
				t.Errorf("%s, with %s, names a record of the kind %s: %s", name, need, kindName, a.Raw)
			}
		}
	}
	if shown < 20 {
		t.Errorf("%d names are shown in all, so that nothing was looked at", shown)
	}

	// Nor can they be found out by filters.
	ask := "terminators?filter=" + url.QueryEscape(`service.name = "secret-service"`)
	if there, told := s.Admin(t).Get(ask).Want(http.StatusOK).Total(), with("terminator:read").Get(ask).Want(http.StatusOK).Total(); there != 1 || told != 0 {
		t.Errorf("by the name of its service an admin finds %d terminators, somebody who may read no services %d", there, told)
	}
}

// readers makes somebody for each power who has it and nothing else.
func readers(t *testing.T, s *servertest.Server) func(need string) *servertest.Client {
	admin, made := s.Admin(t), map[string]*servertest.Client{}
	return func(need string) *servertest.Client {
		if made[need] == nil {
			name, later := servertest.Unique("reader"), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
			role := admin.Post("admin-roles", M{"name": name, "allows": []string{need}}).Want(http.StatusCreated).ID()
			who := admin.Post("identities", M{"name": name, "type": "User", "isAdmin": false, "adminRoles": []string{role}}).Want(http.StatusCreated).ID()
			token := admin.Post("tokens", M{"name": name, "roleId": role, "ownerId": who, "expiresAt": later}).Want(http.StatusCreated)
			secret, _ := token.Data()["token"].(string)
			made[need] = s.Nobody(t).With("Authorization", "Bearer "+secret)
		}
		return made[need]
	}
}
