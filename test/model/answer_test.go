package model_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestRequiredMembers asks for one of each kind and looks at every member that
// clients rely on. testdata/required.json lists them with their JSON types; a
// question mark allows null.
func TestRequiredMembers(t *testing.T) {
	text, err := os.ReadFile("testdata/required.json")
	if err != nil {
		t.Fatal(err)
	}
	var required map[string]map[string]string
	if err := json.Unmarshal(text, &required); err != nil {
		t.Fatal(err)
	}
	c := shared.Admin(t)
	for _, path := range slices.Sorted(maps.Keys(required)) {
		t.Run(path, func(t *testing.T) {
			c := c.For(t)
			if samples[path] != nil {
				create(t, c, path, nil)
			}
			if path == "current-api-session" {
				members(t, c.Get(path).Want(200).Data(), required[path])
				return
			}
			list := c.Get(path + "?limit=500").Want(200).List()
			if len(list) == 0 && path != "sessions" {
				t.Fatal("there is none to look at")
			}
			for _, entry := range list {
				members(t, entry, required[path])
				members(t, c.Get(path+"/"+entry["id"].(string)).Want(200).Data(), required[path])
			}
		})
	}
}

func members(t *testing.T, entry M, required map[string]string) {
	t.Helper()
	for name, want := range required {
		value, there := entry[name]
		want, nullable := strings.CutSuffix(want, "?")
		got := typeOf(value)
		if !there || got != want && !(nullable && value == nil) {
			t.Errorf("%s is %v (%s, there: %v), want %s", name, value, got, there, want)
		}
	}
}

func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case M:
		return "object"
	case []any:
		return "array"
	}
	return "null"
}

// TestFilterNames uses every field that clients know in a filter, and sorts by
// those that are not sets.
func TestFilterNames(t *testing.T) {
	c := shared.Admin(t)
	every := []string{"id", "createdAt", "updatedAt", "isSystem", "tags.x"}
	for path, fields := range map[string]string{
		"api-sessions":                 "identity authenticator ipAddress lastActivityAt",
		"auth-policies":                "name primary.cert.allowed primary.cert.allowExpiredCerts primary.updb.allowed primary.updb.requireSpecialChar primary.updb.requireMixedCase primary.updb.requireNumberChar primary.updb.maxAttempts primary.updb.minPasswordLength primary.extJwt.allowed secondary.requireTotp secondary.requireExtJwtSigner",
		"authenticators":               "method identity certFingerprint fingerprint certPem updbUsername username",
		"cas":                          "name fingerprint verificationToken isVerified isAutoCaEnrollmentEnabled isOttCaEnrollmentEnabled isAuthEnabled",
		"configs":                      "name type configTypeId",
		"config-types":                 "name schema",
		"edge-router-policies":         "name semantic identityRoles* edgeRouterRoles*",
		"edge-routers":                 "name fingerprint cost noTraversal disabled isVerified isTunnelerEnabled roleAttributes*",
		"routers":                      "name fingerprint cost noTraversal disabled",
		"enrollments":                  "token identity edgeRouter transitRouter caId",
		"external-jwt-signers":         "name fingerprint kid issuer certPem commonName claimsProperty audience notAfter notBefore enabled useExternalId",
		"identities":                   "name externalId type typeId authPolicyId isAdmin isDefaultAdmin roleAttributes*",
		"identity-types":               "name",
		"posture-check-types":          "name",
		"posture-checks":               "name promptOnUnlock promptOnWake typeId roleAttributes*",
		"services":                     "name terminatorStrategy roleAttributes* configs*",
		"service-edge-router-policies": "name semantic serviceRoles* edgeRouterRoles*",
		"service-policies":             "name semantic type identityRoles* serviceRoles* postureCheckRoles*",
		"sessions":                     "apiSession service type",
		"terminators":                  "binding address instanceId identity hostId service router serviceId routerId service.name router.name",
	} {
		for _, field := range append(every, strings.Fields(fields)...) {
			if field, set := strings.CutSuffix(field, "*"); set {
				c.Get(path + "?filter=" + escape("isEmpty("+field+")")).Want(200)
				c.Get(path+"?filter="+escape("true sort by "+field)).Fails(400, "INVALID_FILTER", "")
				continue
			}
			c.Get(path + "?filter=" + escape(field+" = null")).Want(200)
			if field != "tags.x" {
				c.Get(path + "?filter=" + escape("true sort by "+field+" desc")).Want(200)
			}
		}
		c.Get(path+"?filter="+escape("passwordHash = null")).Fails(400, "INVALID_FILTER", "")
	}
	c.Get("services?filter=" + escape(`isEmpty(from configs where name contains "x")`)).Want(200)
}
