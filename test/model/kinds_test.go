package model_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

func TestPostureChecks(t *testing.T) {
	c := shared.Admin(t)
	process := M{"osType": "Linux", "path": "/bin/x", "hashes": []any{"aa"}}
	for typ, variant := range map[string]M{
		"OS":            {"operatingSystems": []any{M{"type": "Windows", "versions": []any{">=10.0.0"}}}},
		"PROCESS":       {"process": process},
		"DOMAIN":        {"domains": []any{"example.org"}},
		"MAC":           {"macAddresses": []any{"00:11:22:33:44:55"}},
		"MFA":           {"timeoutSeconds": 60, "promptOnWake": true, "promptOnUnlock": false, "ignoreLegacyEndpoints": true},
		"PROCESS_MULTI": {"semantic": "AnyOf", "processes": []any{process}},
	} {
		t.Run(typ, func(t *testing.T) {
			c := c.For(t)
			body := M{"name": servertest.Unique("check"), "typeId": typ}
			for k, v := range variant {
				body[k] = v
			}
			id := c.Post("posture-checks", body).Want(201).ID()
			got := c.Get("posture-checks/" + id).Data()
			for k := range variant {
				if got[k] == nil {
					t.Errorf("%s is missing: %v", k, got)
				}
			}
			for _, foreign := range []string{"domains", "macAddresses", "process", "processes", "operatingSystems", "timeoutSeconds"} {
				if _, own := variant[foreign]; !own && got[foreign] != nil {
					t.Errorf("%s has %s", typ, foreign)
				}
			}
			if typ != "MFA" {
				c.Post("posture-checks", M{"name": servertest.Unique("check"), "typeId": typ}).Want(400)
			}
			c.Patch("posture-checks/"+id, M{"name": servertest.Unique("check")}).Fails(400, "COULD_NOT_VALIDATE", "typeId")
			c.Patch("posture-checks/"+id, M{"typeId": typ, "tags": M{"a": true}}).Want(200)
			delete(body, "typeId") // a replace may leave it out
			c.Put("posture-checks/"+id, body).Want(200)
			if got := c.Get("posture-checks/" + id).At("data.typeId"); got != typ {
				t.Errorf("the type became %v", got)
			}
		})
	}
	mac := c.Post("posture-checks", M{"name": servertest.Unique("mac"), "typeId": "MAC", "macAddresses": []any{"00:1A:2b:3C:4d:5e", "AA-BB-CC-DD-EE-FF", "0011.2233.4455"}}).Want(201).ID()
	want := []any{"001a2b3c4d5e", "aabbccddeeff", "001122334455"}
	if diff := cmp.Diff(want, c.Get("posture-checks/"+mac).At("data.macAddresses")); diff != "" {
		t.Errorf("addresses are not in one form:\n%s", diff)
	}
	c.Patch("posture-checks/"+mac, M{"typeId": "MAC", "macAddresses": []any{"00:11", "my own"}}).Fails(400, "COULD_NOT_VALIDATE", "macAddresses.1")
	id := create(t, c, "posture-checks", nil)
	c.Patch("posture-checks/"+id, M{"typeId": "MAC"}).Fails(400, "COULD_NOT_VALIDATE", "typeId")
	c.Post("posture-checks", sample(t, c, "posture-checks", M{"typeId": "NOPE"})).Fails(400, "COULD_NOT_VALIDATE", "typeId")
	c.Post("posture-checks", sample(t, c, "posture-checks", M{"domains": []any{}})).Fails(400, "COULD_NOT_VALIDATE", "domains")
	c.Post("posture-checks", M{"name": servertest.Unique("os"), "typeId": "OS", "operatingSystems": []any{M{"type": "Linux", "versions": []any{"not a version"}}}}).
		Fails(400, "COULD_NOT_VALIDATE", "operatingSystems")
	mfa := c.Post("posture-checks", M{"name": servertest.Unique("mfa"), "typeId": "MFA"}).Want(201).ID()
	if got := c.Get("posture-checks/" + mfa).At("data.timeoutSeconds"); got != float64(-1) {
		t.Errorf("no timeout is shown as %v", got)
	}
}

func TestSigners(t *testing.T) {
	c := shared.Admin(t)
	c.Post("external-jwt-signers", sample(t, c, "external-jwt-signers", M{"certPem": servertest.Certificate(t, false)})).
		Fails(400, "REFERENCED_ENTITY_NOT_FOUND", "certPem")
	c.Post("ext-jwt-signers", sample(t, c, "external-jwt-signers", M{"jwksEndpoint": nil})).
		Fails(400, "REFERENCED_ENTITY_NOT_FOUND", "certPem")
	c.Post("ext-jwt-signers", sample(t, c, "external-jwt-signers", M{"jwksEndpoint": nil, "certPem": "nonsense"})).
		Fails(400, "INVALID_CERT_PEM", "certPem")
	id := c.Post("ext-jwt-signers", sample(t, c, "external-jwt-signers", M{
		"jwksEndpoint": nil, "kid": nil, "certPem": servertest.Certificate(t, false), "tags": M{"a": "b"},
	})).Want(201).ID()
	got := c.Get("ext-jwt-signers/" + id).Data()
	if got["kid"] != got["fingerprint"] || got["claimsProperty"] != "sub" || got["tags"].(M)["a"] != "b" || got["commonName"] == "" {
		t.Errorf("signer is %v", got)
	}
	for _, twin := range []string{"name", "issuer", "kid"} {
		c.Post("external-jwt-signers", sample(t, c, "external-jwt-signers", M{twin: got[twin]})).Fails(400, "COULD_NOT_VALIDATE", twin)
	}
	body := sample(t, c, "auth-policies", nil)
	body["secondary"] = M{"requireTotp": false, "requireExtJwtSigner": "nope"}
	c.Post("auth-policies", body).Fails(404, "NOT_FOUND", "secondary.requireExtJwtSigner")
}

func TestCAs(t *testing.T) {
	c := shared.Admin(t)
	body := sample(t, c, "cas", nil)
	id := c.Post("cas", body).Want(201).ID()
	got := c.Get("cas/" + id).Data()
	if got["isVerified"] != false || got["identityNameFormat"] != "[caName]-[commonName]" || got["verificationToken"] == "" {
		t.Errorf("CA is %v", got)
	}
	if got["_links"].(M)["verify"] == nil || got["_links"].(M)["jwt"] == nil {
		t.Errorf("links are %v", got["_links"])
	}
	again := sample(t, c, "cas", M{"certPem": body["certPem"]})
	c.Post("cas", again).Fails(400, "COULD_NOT_VALIDATE", "certPem")
	c.Post("cas", sample(t, c, "cas", M{"certPem": servertest.Certificate(t, false)})).Fails(400, "COULD_NOT_VALIDATE", "certPem")
	c.Patch("cas/"+id, M{"isVerified": true, "isAuthEnabled": false}).Want(200)
	if got := c.Get("cas/" + id); got.At("data.isVerified") != false || got.At("data.isAuthEnabled") != false {
		t.Errorf("CA is %s", got.Raw)
	}
	claim := M{"location": "SAN_URI", "matcher": "SCHEME", "matcherCriteria": "spiffe", "parser": "NONE", "parserCriteria": nil, "index": 0}
	c.Patch("cas/"+id, M{"externalIdClaim": claim}).Want(200)
	c.Patch("cas/"+id, M{"externalIdClaim": M{"index": 2}}).Want(200)
	if got := c.Get("cas/" + id); got.At("data.externalIdClaim.index") != float64(2) || got.At("data.externalIdClaim.matcher") != "SCHEME" {
		t.Errorf("CA is %s", got.Raw)
	}
	c.Patch("cas/"+id, M{"externalIdClaim": M{"location": "COMMON_NAME"}}).Fails(400, "REFERENCED_ENTITY_NOT_FOUND", "externalIdClaim.matcher")
}

func TestEnrollments(t *testing.T) {
	c := shared.Admin(t)
	who := create(t, c, "identities", M{"enrollment": M{"updb": "someone"}})
	first := c.Get("identities/" + who).At("data.enrollment.updb").(M)
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	c.Post("enrollments", M{"identityId": who, "method": "updb", "username": "other", "expiresAt": soon}).Fails(409, "ENROLLMENT_EXISTS", "method")
	c.Post("enrollments", M{"identityId": who, "method": "ott", "expiresAt": soon}).Want(201)
	for _, test := range []struct {
		body  M
		code  string
		field string
	}{
		{M{"identityId": "nope", "method": "ott", "expiresAt": soon}, "REFERENCED_ENTITY_NOT_FOUND", "identityId"},
		{M{"identityId": who, "method": "ottca", "expiresAt": soon}, "REFERENCED_ENTITY_NOT_FOUND", "caId"},
		{M{"identityId": who, "method": "ottca", "caId": "nope", "expiresAt": soon}, "REFERENCED_ENTITY_NOT_FOUND", "caId"},
		{M{"identityId": who, "method": "ott", "expiresAt": "2001-01-01T00:00:00Z"}, "REFERENCED_ENTITY_NOT_FOUND", "expiresAt"},
		{M{"identityId": who, "method": "nope", "expiresAt": soon}, "COULD_NOT_VALIDATE", "method"},
		{M{"identityId": who, "method": "ott"}, "COULD_NOT_VALIDATE", "expiresAt"},
	} {
		c.Post("enrollments", test.body).Fails(400, test.code, test.field)
	}
	id := first["id"].(string)
	c.Post("enrollments/"+id+"/refresh", M{"expiresAt": soon}).Want(200)
	after := c.Get("enrollments/" + id).Data()
	if after["token"] == first["token"] || after["jwt"] == first["jwt"] {
		t.Error("a refresh left the old token good")
	}
	c.Post("enrollments/"+id+"/refresh", M{"expiresAt": "2001-01-01T00:00:00Z"}).Fails(400, "REFERENCED_ENTITY_NOT_FOUND", "expiresAt")
	c.Post("enrollments/nope/refresh", M{"expiresAt": soon}).Fails(404, "NOT_FOUND", "")
	c.Delete("enrollments/" + id).Want(200)
	gone(t, c, "enrollments/"+id)
}

func TestAuthenticators(t *testing.T) {
	c := shared.Admin(t)
	policy := sample(t, c, "auth-policies", nil)
	policy["primary"].(M)["updb"].(M)["requireNumberChar"] = true
	who := create(t, c, "identities", M{"authPolicyId": c.Post("auth-policies", policy).Want(201).ID()})
	body := M{"identityId": who, "method": "updb", "username": servertest.Unique("user"), "password": "nodigits", "tags": M{"a": "b"}}
	c.Post("authenticators", body).Fails(400, "COULD_NOT_VALIDATE", "password")
	body["password"] = "short1"
	c.Post("authenticators", body).Fails(400, "COULD_NOT_VALIDATE", "password")
	body["password"] = "long enough 1"
	id := c.Post("authenticators", body).Want(201).ID()
	got := c.Get("authenticators/" + id).Data()
	if got["tags"].(M)["a"] != "b" || got["password"] != nil || got["passwordHash"] != nil {
		t.Errorf("authenticator is %v", got)
	}
	wantIDs(t, c, "identities/"+who+"/authenticators", id)
	c.Post("authenticators", M{"identityId": who, "method": "updb", "username": servertest.Unique("user"), "password": "long enough 1"}).
		Fails(409, "MAX_AUTHENTICATOR_METHODS_REACHED", "method")
	c.Post("authenticators", M{"identityId": create(t, c, "identities", nil), "method": "updb", "username": body["username"], "password": "long enough 1"}).
		Fails(400, "COULD_NOT_VALIDATE", "username")
	c.Post("authenticators", M{"identityId": who, "method": "cert", "certPem": servertest.Certificate(t, false)}).Fails(400, "COULD_NOT_VALIDATE", "certPem")
	c.Post("authenticators", M{"identityId": who, "method": "nope"}).Fails(400, "COULD_NOT_VALIDATE", "method")

	user := shared.Login(t, body["username"].(string), "long enough 1")
	c.Patch("authenticators/"+id, M{"password": "nodigits"}).Fails(400, "COULD_NOT_VALIDATE", "password")
	c.Patch("authenticators/"+id, M{"password": "another one 2"}).Want(200)
	shared.Login(t, body["username"].(string), "another one 2")
	renamed := servertest.Unique("user")
	c.Put("authenticators/"+id, M{"username": renamed, "password": "a third one 3"}).Want(200)
	shared.Login(t, renamed, "a third one 3")
	c.Put("authenticators/"+id, M{"username": renamed}).Fails(400, "COULD_NOT_VALIDATE", "password")
	c.Delete("authenticators/" + id).Want(200)
	user.Get("current-api-session").Fails(401, "UNAUTHORIZED", "")
}

func TestServiceConfigs(t *testing.T) {
	c := shared.Admin(t)
	who, service, other := create(t, c, "identities", nil), create(t, c, "services", nil), create(t, c, "services", nil)
	typ := create(t, c, "config-types", nil)
	first, second := create(t, c, "configs", M{"configTypeId": typ}), create(t, c, "configs", M{"configTypeId": typ})
	path := "identities/" + who + "/service-configs"
	pairs := func() (got []any) {
		for _, e := range c.Get(path).Want(200).List() {
			got = append(got, e["serviceId"].(string)+" "+e["configId"].(string))
		}
		return got
	}
	c.Post(path, []any{M{"serviceId": service, "configId": first}, M{"serviceId": other, "configId": first}}).Want(200)
	c.Post(path, []any{M{"serviceId": service, "configId": second}}).Want(200)
	if got := pairs(); len(got) != 2 {
		t.Errorf("overrides are %v", got)
	}
	c.Post(path, []any{M{"serviceId": "nope", "configId": first}}).Fails(404, "NOT_FOUND", "serviceId")
	c.Post(path, []any{M{"serviceId": service, "configId": "nope"}}).Fails(404, "NOT_FOUND", "configId")
	c.Post(path, M{}).Fails(400, "COULD_NOT_PARSE_BODY", "")
	c.Do("DELETE", path, []any{M{"serviceId": other, "configId": first}}).Want(200)
	if diff := cmp.Diff([]any{service + " " + second}, pairs()); diff != "" {
		t.Error(diff)
	}
	c.Delete(path).Want(200)
	if got := pairs(); len(got) != 0 {
		t.Errorf("overrides are %v", got)
	}
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestIdentityExtras(t *testing.T) {
	c := shared.Admin(t)
	user := shared.AddUser(t, false)
	session := shared.Login(t, user.Username, user.Password)
	id := user.ID
	c.Post("identities/"+id+"/disable", M{"durationMinutes": 5}).Want(200)
	got := c.Get("identities/" + id).Data()
	if got["disabled"] != true || got["disabledUntil"] == nil || got["hasApiSession"] != false {
		t.Errorf("identity is %v", got)
	}
	session.Get("current-api-session").Fails(401, "UNAUTHORIZED", "")
	shared.Nobody(t).Post("authenticate?method=password", M{"username": user.Username, "password": user.Password}).Fails(401, "INVALID_AUTH", "")
	c.Post("identities/"+id+"/enable", nil).Want(200)
	shared.Login(t, user.Username, user.Password)
	c.Post("identities/nope/disable", M{"durationMinutes": 0}).Fails(404, "NOT_FOUND", "")
	c.Post("identities/nope/enable", nil).Fails(404, "NOT_FOUND", "")

	trace := c.Put("identities/"+id+"/trace", M{"enabled": true, "duration": "10m"}).Want(200).Data()
	if trace["enabled"] != true || !uuid.MatchString(trace["traceId"].(string)) {
		t.Errorf("trace is %v", trace)
	}
	if own := c.Put("identities/"+id+"/trace", M{"enabled": true, "duration": "10m", "traceId": "own"}).Want(200).At("data.traceId"); own != "own" {
		t.Errorf("trace has the id %v", own)
	}
	c.Put("identities/"+id+"/trace", M{"enabled": true, "duration": "nonsense"}).Fails(400, "COULD_NOT_VALIDATE", "duration")
	c.Put("identities/nope/trace", M{"enabled": false}).Fails(404, "NOT_FOUND", "")
	c.Get("identities/" + id + "/posture-data").Want(200)
	if n := len(c.Get("identities/" + id + "/failed-service-requests").Want(200).List()); n != 0 {
		t.Errorf("there are %d failed requests", n)
	}
	c.Patch("identities/"+id, M{"serviceHostingCosts": M{"nope": 1}}).Fails(404, "NOT_FOUND", "serviceHostingCosts")
	c.Patch("identities/"+id, M{"serviceHostingCosts": M{create(t, c, "services", nil): 65536}}).Want(400)
}

func TestFixedLists(t *testing.T) {
	c := shared.Admin(t)
	wantIDs(t, c, "identity-types", "Default", "Device", "Router", "Service", "User")
	wantIDs(t, c, "posture-check-types", "DOMAIN", "MAC", "MFA", "OS", "PROCESS", "PROCESS_MULTI")
	c.Get("identity-types/User").Want(200)
	c.Get("posture-check-types/OS").Want(200)
	c.Post("identity-types", M{"name": "x"}).Fails(405, "METHOD_NOT_ALLOWED", "")
	attr := servertest.Unique("zz")
	create(t, c, "services", M{"roleAttributes": []any{attr}})
	got := c.Get("service-role-attributes?filter=" + escape(`id = "`+attr+`"`)).Want(200)
	if diff := cmp.Diff([]any{attr}, got.At("data")); diff != "" {
		t.Error(diff)
	}
	all := c.Get("summary").Want(200).At("data").(M)
	if all["identities"].(float64) < 1 || all["controllers"] != 1.0 || all["revocations"] != 0.0 {
		t.Errorf("there are %v", all)
	}
}

// TestPolicyTypeByNumber filters service policies by the numbers that clients
// know the types as.
func TestPolicyTypeByNumber(t *testing.T) {
	c := shared.Admin(t)
	mark := servertest.Unique("numbered")
	dial := create(t, c, "service-policies", M{"type": "Dial", "tags": M{"mark": mark}})
	bind := create(t, c, "service-policies", M{"type": "Bind", "tags": M{"mark": mark}})
	for filter, want := range map[string][]string{
		`type = 1`: {dial}, `type = 2`: {bind}, `type != 1`: {bind}, `type in [1, 2]`: {dial, bind}, `type not in [2]`: {dial},
		`type = 3`: {}, `type = 0`: {}, `type = 1.5`: {}, `type = "Dial"`: {dial}, `type = "1"`: {}, `type in ["Bind"]`: {bind},
	} {
		wantIDs(t, c, "service-policies?filter="+escape(`tags.mark = "`+mark+`" and `+filter), want...)
	}
}

func TestTerminators(t *testing.T) {
	c := shared.Admin(t)
	service, other := create(t, c, "services", nil), create(t, c, "services", nil)
	body := sample(t, c, "terminators", M{"service": service, "binding": "", "address": "udp:127.0.0.1:1", "identity": "x", "identitySecret": "c2VjcmV0"})
	id := c.Post("terminators", body).Want(201).ID()
	got := c.Get("terminators/" + id).Data()
	if got["binding"] != "udp" || got["precedence"] != "default" || got["identitySecret"] != nil {
		t.Errorf("terminator is %v", got)
	}
	c.Patch("terminators/"+id, M{"service": other, "identity": "y", "cost": 9}).Want(200)
	got = c.Get("terminators/" + id).Data()
	if got["serviceId"] != service || got["identity"] != "x" || got["cost"] != float64(9) {
		t.Errorf("terminator is %v", got)
	}
	// Both lists know it by the names of its service and its router.
	filter := escape(`service.name = "` + got["service"].(M)["name"].(string) + `" and router.name = "` + got["router"].(M)["name"].(string) + `"`)
	wantIDs(t, c, "terminators?filter="+filter, id)
	wantIDs(t, c, "services/"+service+"/terminators?filter="+filter, id)
	wantIDs(t, c, "services/"+service+"/terminators?filter="+escape(`router.name = "nope"`))
	c.Post("terminators", sample(t, c, "terminators", M{"service": "nope"})).Fails(404, "NOT_FOUND", "service")
	c.Post("terminators", sample(t, c, "terminators", M{"router": "nope"})).Fails(404, "NOT_FOUND", "router")
	c.Post("terminators", sample(t, c, "terminators", M{"cost": 65536})).Fails(400, "COULD_NOT_VALIDATE", "cost")
}
