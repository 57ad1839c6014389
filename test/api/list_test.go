package api_test

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/test/servertest"
)

// waitTime bounds what tests wait for.
const waitTime = time.Minute

// query writes a filter in the form that a URL needs.
func query(format string, args ...any) string { return url.QueryEscape(fmt.Sprintf(format, args...)) }

// names returns the names in a list, in its order.
func names(a *servertest.Answer) []string {
	list := []string{}
	for _, m := range a.List() {
		list = append(list, m["name"].(string))
	}
	return list
}

// TestListShowsDetails checks that lists show records as their own pages do.
func TestListShowsDetails(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		id := c.Post(r.path, joined(r.least(t, c), r.more(t, c))).Want(201).ID()
		a := c.Get(r.path + "?filter=" + query(`id = "%s"`, id)).Want(200)
		want := M{"limit": 10.0, "offset": 0.0, "totalCount": 1.0}
		if diff := cmp.Diff(want, a.At("meta.pagination")); diff != "" {
			t.Errorf("pagination differs (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(c.Get(r.path+"/"+id).At("data"), a.At("data.0")); diff != "" {
			t.Errorf("entry differs from the record (-record +entry):\n%s", diff)
		}
	})
}

func TestFilterableFields(t *testing.T) {
	want := map[string][]string{
		"auth-policies": {
			"name", "primary.cert.allowed", "primary.cert.allowExpiredCerts", "primary.updb.allowed",
			"primary.updb.minPasswordLength", "primary.updb.requireSpecialChar", "primary.updb.requireNumberChar",
			"primary.updb.requireMixedCase", "primary.updb.maxAttempts", "primary.extJwt.allowed",
			"secondary.requireTotp", "secondary.requireExtJwtSigner",
		},
		"identities": {
			"name", "externalId", "type", "authPolicyId", "isAdmin", "isDefaultAdmin", "roleAttributes",
		},
		"config-types": {"name", "schema"},
		"configs":      {"name", "type", "configTypeId"},
		"services":     {"name", "terminatorStrategy", "roleAttributes", "configs", "maxIdleTimeMillis"},
		"cas": {
			"name", "fingerprint", "verificationToken", "isVerified", "isAutoCaEnrollmentEnabled", "isOttCaEnrollmentEnabled", "isAuthEnabled",
		},
		"external-jwt-signers": {
			"name", "fingerprint", "kid", "issuer", "certPem", "commonName", "claimsProperty", "audience", "notAfter", "notBefore",
			"enabled", "useExternalId", "clientId", "targetToken",
		},
		"edge-routers": {
			"name", "fingerprint", "cost", "noTraversal", "disabled", "isVerified", "isTunnelerEnabled", "roleAttributes",
		},
		"routers":                      {"name", "fingerprint", "cost", "noTraversal", "disabled"},
		"terminators":                  {"binding", "address", "instanceId", "hostId", "service", "router", "service.name", "router.name"},
		"posture-checks":               {"name", "promptOnUnlock", "promptOnWake"},
		"service-policies":             {"name", "semantic", "type", "identityRoles", "serviceRoles", "postureCheckRoles", "identities", "services"},
		"edge-router-policies":         {"name", "semantic", "identityRoles", "edgeRouterRoles"},
		"service-edge-router-policies": {"name", "semantic", "serviceRoles", "edgeRouterRoles"},
		"assertions":                   {"name", "expect", "type", "semantic", "identityRoles", "serviceRoles"},
	}
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		var fields []string
		for _, f := range c.Get(r.path).At("meta.filterableFields").([]any) {
			fields = append(fields, f.(string))
		}
		for _, f := range append(want[r.path], "id", "createdAt", "updatedAt", "tags", "isSystem") {
			if !slices.Contains(fields, f) {
				t.Errorf("%s is not among %v", f, fields)
			}
		}
		// What is announced works.
		for _, f := range fields {
			filter := f + " = null"
			switch {
			case f == "tags":
				filter = "tags.x = null"
			case f == "roleAttributes" || f == "configs" || f == "identities" || f == "services" || strings.HasSuffix(f, "allowedSigners") || strings.HasSuffix(f, "Roles"):
				filter = "isEmpty(" + f + ")"
			}
			c.Get(r.path + "?filter=" + query("%s", filter)).Want(200)
		}
	})
}

// fleet adds services that only one list sees, and returns the filter for them
// and their names in the order of their letters.
func fleet(t *testing.T, c *servertest.Client, n int) (filter string, names []string) {
	t.Helper()
	mark := servertest.Unique("fleet")
	for i := range n {
		name := fmt.Sprintf("%s-%03d", mark, i)
		names = append(names, name)
		create(t, c, "services", M{
			"name": name, "roleAttributes": []any{mark, fmt.Sprintf("mod%d", i%3)},
			"terminatorStrategy": []any{"smartrouting", "weighted"}[i%2],
			"tags":               M{"even": i%2 == 0, "place": fmt.Sprintf("p%d", i)},
		})
	}
	return fmt.Sprintf(`anyOf(roleAttributes) = "%s"`, mark), names
}

func TestPages(t *testing.T) {
	c := shared.Admin(t)
	filter, all := fleet(t, c, 25)
	sorted := filter + " sort by name"
	for _, test := range []struct {
		clauses, params string
		want            []string
		limit, offset   float64
	}{
		{"", "", all[:10], 10, 0},
		{"", "&limit=3", all[:3], 3, 0},
		{"", "&limit=3&offset=4", all[4:7], 3, 4},
		{"", "&offset=20", all[20:], 10, 20},
		{"", "&offset=25", []string{}, 10, 25},
		{"", "&limit=0", all[:10], 10, 0},
		{"", "&limit=-7", all[:10], 10, 0},
		{"", "&limit=501", all, 500, 0},
		{"", "&limit=-1", all, math.MaxInt64, 0},
		{"", "&limit=-1&offset=23", all[23:], math.MaxInt64, 23},
		{"", "&offset=-3", all[:10], 10, 0},
		{"", "&offset=100001", []string{}, 10, 100000},
		{" limit none", "", all, math.MaxInt64, 0},
		{" limit none", "&limit=3", all, math.MaxInt64, 0},
		{" limit 2", "&limit=3", all[:2], 2, 0},
		{" skip 24", "&offset=1", all[24:], 10, 24},
		{" skip 5 limit 2", "", all[5:7], 2, 5},
	} {
		t.Run(test.clauses+test.params, func(t *testing.T) {
			a := c.For(t).Get("services?filter=" + query("%s", sorted+test.clauses) + test.params).Want(200)
			if diff := cmp.Diff(test.want, names(a)); diff != "" {
				t.Errorf("entries differ (-want +got):\n%s", diff)
			}
			want := M{"limit": test.limit, "offset": test.offset, "totalCount": 25.0}
			if diff := cmp.Diff(want, a.At("meta.pagination")); diff != "" {
				t.Errorf("pagination differs (-want +got):\n%s", diff)
			}
		})
	}
	a := c.Get("services?limit=-1")
	if !strings.Contains(string(a.Raw), `"limit":9223372036854775807`) {
		t.Errorf("the limit of all is not written out: %s", a.Raw[len(a.Raw)-200:])
	}
}

func TestSort(t *testing.T) {
	c := shared.Admin(t)
	filter, all := fleet(t, c, 6)
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	byStrategy := []string{all[0], all[2], all[4], all[1], all[3], all[5]}
	for _, test := range []struct {
		clauses, sort string
		want          []string
	}{
		{" sort by name", "", all},
		{" sort by name asc", "", all},
		{" sort by name desc", "", reversed},
		{" SORT BY terminatorStrategy, name", "", byStrategy},
		{"", "name", all},
		{"", "name desc", reversed},
		{"", "terminatorStrategy asc, name", byStrategy},
		{" sort by name", "name desc", all},
	} {
		t.Run(test.clauses+"/"+test.sort, func(t *testing.T) {
			path := "services?filter=" + query("%s", filter+test.clauses)
			if test.sort != "" {
				path += "&sort=" + query("%s", test.sort)
			}
			if diff := cmp.Diff(test.want, names(c.For(t).Get(path).Want(200))); diff != "" {
				t.Errorf("order differs (-want +got):\n%s", diff)
			}
		})
	}
	var ids []string
	for _, m := range c.Get("services?filter=" + query("%s", filter)).List() {
		ids = append(ids, m["id"].(string))
	}
	if len(ids) != len(all) || !slices.IsSorted(ids) {
		t.Errorf("without a sort the order is %v, want that of the ids", ids)
	}
}

// TestOrderOfCreation creates records faster than answers can tell their times
// apart, and lists them as they came.
func TestOrderOfCreation(t *testing.T) {
	c := shared.Admin(t)
	filter, all := fleet(t, c, 30)
	if got := names(c.Get("services?filter=" + query("(%s) sort by createdAt limit none", filter)).Want(200)); !slices.Equal(got, all) {
		t.Errorf("by creation they are %v", got)
	}
	slices.Reverse(all)
	if got := names(c.Get("services?filter=" + query("(%s) sort by createdAt desc limit none", filter)).Want(200)); !slices.Equal(got, all) {
		t.Errorf("from the last to the first they are %v", got)
	}
}

func TestFilters(t *testing.T) {
	c := shared.Admin(t)
	filter, all := fleet(t, c, 6)
	for _, test := range []struct {
		filter string
		want   []string
	}{
		{`name = "` + all[3] + `"`, all[3:4]},
		{`name contains "-00" and name < "` + all[2] + `"`, all[:2]},
		{`tags.even = true`, []string{all[0], all[2], all[4]}},
		{`tags.place in ["p1", "p5", "p9"]`, []string{all[1], all[5]}},
		{`tags.absent = null`, all},
		{`tags.even = "true"`, []string{}},
		{`not tags.even = true`, []string{all[1], all[3], all[5]}},
		{`terminatorStrategy != "weighted"`, []string{all[0], all[2], all[4]}},
		{`anyOf(roleAttributes) = "mod1"`, []string{all[1], all[4]}},
		{`isEmpty(configs)`, all},
		{`createdAt > datetime(2020-01-01T00:00:00Z)`, all},
		{`createdAt < datetime(2020-01-01T00:00:00Z)`, []string{}},
		{`isSystem = false`, all},
		{`false`, []string{}},
	} {
		t.Run(test.filter, func(t *testing.T) {
			a := c.For(t).Get("services?filter=" + query("(%s) and (%s) sort by name limit none", filter, test.filter)).Want(200)
			if diff := cmp.Diff(test.want, names(a)); diff != "" || a.Total() != len(test.want) {
				t.Errorf("entries of %d differ (-want +got):\n%s", a.Total(), diff)
			}
		})
	}
}

func TestListErrors(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		for _, test := range []struct{ params, code, field string }{
			{"filter=" + query(`name =`), "INVALID_FILTER", ""},
			{"filter=" + query(`nope = 1`), "INVALID_FILTER", ""},
			{"filter=" + query(`name`), "INVALID_FILTER", ""},
			{"filter=" + query(`createdAt = "x"`), "INVALID_FILTER", ""},
			{"filter=" + query(`true sort by nope`), "INVALID_FILTER", ""},
			{"filter=" + query(`true sort by tags.x`), "INVALID_FILTER", ""},
			{"filter=" + query(`true limit "x"`), "INVALID_FILTER", ""},
			{"filter=" + query("name = \"\x00\xff"), "INVALID_FILTER", ""},
			{"filter=" + query("%s", strings.Repeat("(", 1000)), "INVALID_FILTER", ""},
			{"filter=" + query("%s", strings.Repeat("true and ", 1000)+"true"), "INVALID_FILTER", ""},
			{"sort=nope", "INVALID_SORT_IDENTIFIER", ""},
			{"sort=" + query(`name upwards`), "INVALID_SORT_IDENTIFIER", ""},
			{"limit=ten", "COULD_NOT_VALIDATE", "limit"},
			{"limit=1.5", "COULD_NOT_VALIDATE", "limit"},
			{"limit=9223372036854775808", "COULD_NOT_VALIDATE", "limit"},
			{"offset=x", "COULD_NOT_VALIDATE", "offset"},
		} {
			c.Get(r.path+"?"+test.params).Fails(400, test.code, test.field)
		}
	})
}

// TestSecretsAreNoFields checks that nothing secret can be asked for.
func TestSecretsAreNoFields(t *testing.T) {
	c := shared.Admin(t)
	for _, field := range []string{"password", "passwordHash", "authenticators", "token", "tokenHash"} {
		c.Get("identities?filter="+query(`%s = "x"`, field)).Fails(400, "INVALID_FILTER", "")
	}
}

func TestIdentityTypes(t *testing.T) {
	c := shared.Admin(t)
	want := []string{"Default", "Device", "Router", "Service", "User"}
	if diff := cmp.Diff(want, names(c.Get("identity-types").Want(200))); diff != "" {
		t.Errorf("types differ (-want +got):\n%s", diff)
	}
	for _, name := range want {
		got := c.Get("identity-types/" + name).Want(200).Data()
		if got["id"] != name || got["name"] != name {
			t.Errorf("type %s has id %v and name %v", name, got["id"], got["name"])
		}
		c.Delete("identity-types/"+name).Fails(405, "METHOD_NOT_ALLOWED", "")
		c.Patch("identity-types/"+name, M{"name": "x"}).Fails(405, "METHOD_NOT_ALLOWED", "")
	}
	c.Get("identity-types/Person").Fails(404, "NOT_FOUND", "")
	c.Post("identity-types", M{"name": "Person"}).Fails(405, "METHOD_NOT_ALLOWED", "")
}

// TestFields asks lists for some members: entries have these and no others.
func TestFields(t *testing.T) {
	c := shared.Admin(t)
	id := c.Post("services", M{"name": servertest.Unique("lean"), "encryptionRequired": true}).Want(201).ID()
	at := "services?filter=" + query(`id = "%s"`, id)
	whole := c.Get(at).Want(200).At("data.0").(M)
	for _, some := range [][]string{{"name"}, {"id", "_links"}, {"roleAttributes", "permissions", "name"}} {
		want := M{}
		for _, name := range some {
			want[name] = whole[name]
		}
		a := c.Get(at + "&fields=" + strings.Join(some, ",")).Want(200)
		if diff := cmp.Diff(want, a.At("data.0")); diff != "" {
			t.Errorf("%v (-want +got):\n%s", some, diff)
		}
	}
	reason := c.Get(at+"&fields=nme").Fails(400, string(fault.CodeInvalid), "fields").At("error.cause.reason")
	if text, _ := reason.(string); !strings.Contains(text, "the nearest is name") {
		t.Errorf("the reason is %v", reason)
	}
}
