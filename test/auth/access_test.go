package auth_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// levels are what an operation may ask for, the least first.
var levels = []string{"anonymous", "partial", "full", "admin"}

// roles are the kinds of callers, with the most that each may call.
var roles = []struct {
	name  string
	level string
	enter func(t *testing.T) *servertest.Client
}{
	{"anonymous", "anonymous", func(t *testing.T) *servertest.Client { return shared.Nobody(t) }},
	{"nobody's token", "anonymous", func(t *testing.T) *servertest.Client {
		c := enter(t, add(t, nil))
		c.Delete(session).Want(http.StatusOK)
		return c
	}},
	{"partial, must enroll", "partial", func(t *testing.T) *servertest.Client {
		policy := addPolicy(t, func(_, secondary M) { secondary["requireTotp"] = true })
		return enter(t, add(t, M{"authPolicyId": policy}))
	}},
	{"partial, must show a code", "partial", func(t *testing.T) *servertest.Client { return enter(t, enroll(t, add(t, nil)).id) }},
	{"partial, must show a JWT", "partial", func(t *testing.T) *servertest.Client {
		policy := addPolicy(t, func(_, secondary M) { secondary["requireExtJwtSigner"] = house(t).id })
		return enter(t, add(t, M{"authPolicyId": policy}))
	}},
	{"full", "full", func(t *testing.T) *servertest.Client { return enter(t, add(t, nil)) }},
	{"admin", "admin", func(t *testing.T) *servertest.Client { return enter(t, add(t, M{"isAdmin": true})) }},
	{"admin, must enroll", "partial", func(t *testing.T) *servertest.Client {
		policy := addPolicy(t, func(_, secondary M) { secondary["requireTotp"] = true })
		return enter(t, add(t, M{"isAdmin": true, "authPolicyId": policy}))
	}},
	{"admin, must show a code", "partial", func(t *testing.T) *servertest.Client {
		return enter(t, enroll(t, add(t, M{"isAdmin": true})).id)
	}},
	{"admin, must show a JWT", "partial", func(t *testing.T) *servertest.Client {
		policy := addPolicy(t, func(_, secondary M) { secondary["requireExtJwtSigner"] = house(t).id })
		return enter(t, add(t, M{"isAdmin": true, "authPolicyId": policy}))
	}},
}

// operations returns what the APIs offer and whom each is for, as they say
// themselves, by method and path.
func operations(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, root := range []string{api.ClientRoot, api.ManagementRoot, api.FabricRoot} {
		for name, op := range shared.Operations(root) {
			access, _ := op.Extensions["x-access"].(string)
			if !slices.Contains(levels, access) {
				t.Errorf("%s does not say whom it is for", name)
			}
			if secured := op.Security != nil && len(*op.Security) > 0; secured != (access != "anonymous") {
				t.Errorf("%s is for %s, and its security is %v", name, access, op.Security)
			}
			all[name] = access
			if power, _ := op.Extensions["x-power"].(string); (power != "") != (access == "admin") {
				t.Errorf("%s is for %s and needs the power %q", name, access, power)
			}
		}
	}
	return all
}

// TestRoles has every kind of caller call every operation. Ids in paths are
// those of nothing, and bodies are empty, so that nothing is changed.
func TestRoles(t *testing.T) {
	all := operations(t)
	for _, role := range roles {
		t.Run(role.name, func(t *testing.T) {
			t.Parallel()
			c := role.enter(t)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				method, path, _ := strings.Cut(name, " ")
				var body any
				if method != http.MethodGet && method != http.MethodDelete {
					body = M{}
				}
				caller := c
				if method == http.MethodDelete && strings.HasSuffix(path, "/"+session) {
					caller = role.enter(t) // it ends the session
				}
				a := caller.Do(method, strings.NewReplacer("{", "no-", "}", "").Replace(path), body)
				switch may := slices.Index(levels, role.level) >= slices.Index(levels, all[name]); {
				case !may:
					a.Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
				case a.Status == http.StatusUnauthorized:
					t.Errorf("%s is for %s and refuses %s: %s", name, all[name], role.name, a.Raw)
				}
			}
		})
	}
}

// TestAccess compares whom each operation is for with a list that is changed
// on purpose only.
func TestAccess(t *testing.T) {
	var got bytes.Buffer
	all := operations(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&got, "%-9s %s\n", all[name], name)
	}
	compare(t, "access.golden", got.Bytes())
}

// TestUnauthorizedLearnsNothing checks that rights are judged before the
// body, and before it is said whether something exists.
func TestUnauthorizedLearnsNothing(t *testing.T) {
	c, id := enter(t, add(t, nil)), add(t, nil)
	c.Post("identities", servertest.Raw("{")).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	there, not := c.Get("identities/"+id), c.Get("identities/nothing")
	for _, a := range []*servertest.Answer{there, not} {
		a.Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
		delete(a.JSON.(M)["error"].(M), "requestId")
	}
	if diff := cmp.Diff(there.JSON, not.JSON); diff != "" {
		t.Errorf("what exists is refused differently from what does not:\n%s", diff)
	}
}
