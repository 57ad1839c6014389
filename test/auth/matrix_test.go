package auth_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// needs returns the power that each operation of every API asks for, as it says
// itself; those that ask for none are left out.
func needs(s *servertest.Server) map[string]string {
	all := map[string]string{}
	for _, root := range []string{api.ClientRoot, api.ManagementRoot, api.FabricRoot} {
		for name, op := range s.Operations(root) {
			if need, _ := op.Extensions["x-power"].(string); need != "" {
				all[name] = need
			}
		}
	}
	return all
}

// TestVocabulary wants every power to be needed by something, and nothing to need
// what no role can allow.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	asked := map[string]bool{}
	for name, need := range needs(shared) {
		if _, known := slices.BinarySearch(model.Powers, need); !known && need != "*" {
			t.Errorf("%s needs %s, which no role can allow", name, need)
		}
		asked[need] = true
	}
	for _, p := range model.Powers {
		// Secrets are parts of answers, and an override is said beside a change.
		if !asked[p] && !strings.HasSuffix(p, ":reveal") && p != "assertion:override" {
			t.Errorf("no operation needs %s", p)
		}
	}
}

// column is somebody in the table of who may call what.
type column struct {
	name   string
	change M // of the identity
	caller *servertest.Client
	power  power.Set
	some   bool // whether their role is limited
}

// TestMatrix has the holder of every built-in role, somebody with a limited one and
// somebody with none call every operation that is not for everybody, and compares who
// may with a table that is changed on purpose only. Whoever may not is told so of
// records that there are, and changes none of them.
func TestMatrix(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t)
	admin := s.Admin(t)
	web := admin.Post("admin-roles", M{
		"name": "web", "allows": []string{"service:*", "identity:read", "config:read", "terminator:*"}, "onlyAttributes": []string{"web"},
	}).Want(http.StatusCreated).ID()
	columns := []*column{
		{name: "admin"}, {name: "viewer"}, {name: "auditor"}, {name: "helpdesk"}, {name: "operator"}, {name: "policy-author"},
		{name: "web", change: M{"adminRoles": []string{web}}, some: true}, {name: "none", change: M{}},
	}
	for _, c := range columns {
		c.enter(t, s)
	}
	places := furnish(t, s)
	var got bytes.Buffer
	fmt.Fprintf(&got, "%-28s %s operation\n", "power", header(columns))
	all := needs(s)
	for _, name := range slices.SortedFunc(maps.Keys(all), cmpPath) {
		fmt.Fprintf(&got, "%-28s", all[name])
		for _, c := range columns {
			fmt.Fprintf(&got, " %-*s", c.width(), c.call(t, s, name, all[name], places))
		}
		fmt.Fprintf(&got, " %s\n", name)
	}
	compare(t, "matrix.golden", got.Bytes())
}

// enter makes somebody who has the column's role, and logs them in.
func (col *column) enter(t *testing.T, s *servertest.Server) {
	t.Helper()
	if col.change == nil {
		col.change = M{"adminRoles": []string{col.name}}
	}
	body := M{"name": col.name, "type": "User", "isAdmin": false}
	maps.Copy(body, col.change)
	admin := s.Admin(t)
	id := admin.Post("identities", body).Want(http.StatusCreated).ID()
	admin.Post("authenticators", M{"identityId": id, "method": "updb", "username": col.name + "-user", "password": "a good password"}).Want(http.StatusCreated)
	col.caller = s.Login(t, col.name+"-user", "a good password")
	col.power = power.OfID(s.State().Snapshot(), id)
}

// furnish makes a record of many kinds, and returns the id of one by its collection.
func furnish(t *testing.T, s *servertest.Server) map[string]string {
	t.Helper()
	admin := s.Admin(t)
	for path, body := range map[string]M{
		"services":                     {"name": "s", "encryptionRequired": true},
		"edge-routers":                 {"name": "e", "isTunnelerEnabled": true},
		"transit-routers":              {"name": "r"},
		"posture-checks":               {"name": "p", "typeId": "MFA"},
		"service-policies":             {"name": "p", "type": "Dial", "semantic": "AnyOf"},
		"edge-router-policies":         {"name": "p", "semantic": "AnyOf"},
		"service-edge-router-policies": {"name": "p", "semantic": "AnyOf"},
		"role-bindings":                {"name": "b", "semantic": "AnyOf", "roleId": "viewer"},
		"config-types":                 {"name": "c", "schema": M{}},
		"cas": {
			"name": "c", "certPem": servertest.Certificate(t, true), "isAuthEnabled": true, "isAutoCaEnrollmentEnabled": false,
			"isOttCaEnrollmentEnabled": false, "identityRoles": []string{},
		},
	} {
		admin.Post(path, body).Want(http.StatusCreated)
	}
	admin.Post("identities", M{"name": "i", "type": "User", "isAdmin": false, "enrollment": M{"ott": true}}).Want(http.StatusCreated)
	places := map[string]string{}
	for name := range needs(s) {
		_, path, _ := strings.Cut(name, " ")
		collection, _, one := strings.Cut(path, "/{id}")
		if !one || places[collection] != "" {
			continue
		}
		if a := admin.Get(collection + "?limit=1"); a.Status == http.StatusOK && len(a.List()) > 0 {
			places[collection], _ = a.List()[0]["id"].(string)
		}
	}
	return places
}

// call has the caller call an operation, and tells what came of it: yes, -, or some for
// a role that is about some records.
func (col *column) call(t *testing.T, s *servertest.Server, name, need string, places map[string]string) string {
	t.Helper()
	method, path, _ := strings.Cut(name, " ")
	over := col.power.Over(need)
	if collection, rest, one := strings.Cut(path, "/{id}"); over.None() && one && places[collection] != "" {
		path = collection + "/" + places[collection] + rest // that it would do it to
	}
	var body any
	if method != http.MethodGet && method != http.MethodDelete {
		body = M{}
	}
	before := s.State().Snapshot()
	a := col.caller.For(t).Do(method, strings.NewReplacer("{", "no-", "}", "").Replace(path), body)
	if a.Status != http.StatusUnauthorized {
		switch {
		case over.None():
			t.Errorf("%s may call %s, which needs %s: %d", col.name, name, need, a.Status)
		case col.some:
			return "some"
		}
		return "yes"
	}
	a.Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	if !over.None() && !col.some {
		t.Errorf("%s is refused %s, which needs %s: %s", col.name, name, need, a.Raw)
	}
	if changed := servertest.Changed(before, s.State().Snapshot()); len(changed) > 0 {
		t.Errorf("%s was refused %s, and changed %v", col.name, name, changed)
	}
	return "-"
}

func header(columns []*column) string {
	var names []string
	for _, c := range columns {
		names = append(names, fmt.Sprintf("%-*s", c.width(), c.name))
	}
	return strings.Join(names, " ")
}

func (col *column) width() int { return max(len(col.name), len("some")) }

// cmpPath orders operations by their paths.
func cmpPath(a, b string) int {
	methodA, pathA, _ := strings.Cut(a, " ")
	methodB, pathB, _ := strings.Cut(b, " ")
	return strings.Compare(pathA+" "+methodA, pathB+" "+methodB)
}

// compare holds what a test found against a file of testdata.
func compare(t *testing.T, name string, got []byte) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("who may call what has changed (-want +got); if that is meant, run with -update:\n%s", diff)
	}
}
