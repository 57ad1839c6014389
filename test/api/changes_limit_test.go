package api_test

import (
	"bufio"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// TestChangesSizes sends more than may be, and less.
func TestChangesSizes(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	one := `{"op":"delete","kind":"service","target":"x"}`
	many := func(n int) servertest.Raw {
		return servertest.Raw(`{"changes":[` + strings.Repeat(one+",", n-1) + one + `]}`)
	}
	c.Post("changes", many(10_001)).Fails(400, string(fault.CodeInvalid), "changes")
	c.Post("changes", many(10_000)).Fails(404, string(fault.CodeNotFound), "changes.0.target")
	c.Post("changes", servertest.Raw(`{"changes":[`+strings.Repeat("{},", 1<<20)+`{}]}`)).Fails(400, string(fault.CodeInvalid), "changes")
	deep := strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)
	c.Post("changes", servertest.Raw(`{"changes":[{"op":"create","kind":"service","body":`+deep+`}]}`)).Fails(400, string(fault.CodeBody), "")
	c.Post("changes", servertest.Raw(`{"changes":[{"op":"create","kind":"service","body":{"name":"x","name":"y"}}]}`)).Fails(400, string(fault.CodeBody), "")
	// More than other operations take.
	large := M{"text": strings.Repeat("x", 2<<20)}
	c.Post("changes", list(change("create", "identity", "", M{"name": "large", "type": "User", "isAdmin": false, "appData": large}))).Want(200)

	conn := wire(t, s)
	fmt.Fprintf(conn, "POST %s/changes HTTP/1.1\r\nHost: x\r\nnet-session: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		api.ManagementRoot, c.Token, 64<<20+1)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that is too large: %v, %v", resp, err)
	}
	nobody := wire(t, s)
	fmt.Fprintf(nobody, "POST %s/changes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", api.ManagementRoot, 64<<20)
	resp, err = http.ReadResponse(bufio.NewReader(nobody), nil)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a stranger with a large body is not refused before it comes: %v, %v", resp, err)
	}
}

// TestManyChanges makes more changes than an answer shows: none of them if the
// last is wrong, and all of them otherwise.
func TestManyChanges(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	const most = 1500
	changes := make([]M, most)
	for i := range most - 1 {
		changes[i] = change("create", "identity", "", M{"name": fmt.Sprint("i", i), "type": "User", "isAdmin": false, "roleAttributes": []any{"staff"}, "enrollment": M{"ott": true}})
	}
	policy := M{"name": "all", "type": "Dial", "semantic": "AnyOf", "identityRoles": []any{"#staff"}, "serviceRoles": []any{"@web"}}
	changes[most-1] = change("create", "service-policy", "", policy)
	c.Post("changes", list(changes...)).Fails(400, string(fault.CodeInvalid), fmt.Sprintf("changes.%d.body.serviceRoles", most-1))
	if n := c.Get("identities").Total() + c.Get("enrollments").Total(); n != 1 {
		t.Errorf("there are %d records of a list that was refused", n-1)
	}
	c.Post("services", M{"name": "web", "encryptionRequired": true}).Want(201)
	a := c.Post("changes", list(changes...)).Want(200)
	if got := a.At("data.counts.created"); got != float64(most) {
		t.Errorf("%v were created", got)
	}
	if n, invited := c.Get("identities").Total(), c.Get("enrollments").Total(); n != most || invited != most-1 { // the admin is one
		t.Errorf("there are %d identities and %d enrollments", n, invited)
	}
	if a.At("data.access.gained") != float64(most-1) || a.At("data.access.more") != true || len(a.At("data.access.pairs").([]any)) != 1000 ||
		a.Data()["moreConsequences"] != true || len(a.Data()["consequences"].([]any)) != 1000 {
		t.Errorf("the answer says %v of access, and more consequences: %v", a.At("data.access.gained"), a.Data()["moreConsequences"])
	}
}

// TestManyConsequences plans what has more consequences than an answer shows. One
// more that is not shown is another outcome all the same.
func TestManyConsequences(t *testing.T) {
	c := servertest.Start(t).Admin(t)
	service := func(name string) M {
		return change("create", "service", "", M{"name": name, "encryptionRequired": true, "configs": []any{"where"}})
	}
	made := []M{
		change("create", "config-type", "", M{"name": "place"}),
		change("create", "config", "", M{"name": "where", "configTypeId": "place", "data": M{}}),
	}
	for i := range 1001 {
		made = append(made, service(fmt.Sprintf("s%04d", i)))
	}
	c.Post("changes", list(made...)).Want(200)
	body := list(change("delete", "config", "where", nil))
	plan := c.Post("changes?plan=true", body).Want(200)
	if plan.Data()["moreConsequences"] != true {
		t.Fatalf("the plan is %.500s", plan.Raw)
	}
	body["expect"] = plan.Data()["digest"]
	c.Post("changes", list(service("z"))).Want(200) // after all that are listed
	c.Post("changes", body).Fails(409, string(fault.CodePlan), "")
	c.Delete("services/" + c.Get(`services?filter=name="z"`).List()[0]["id"].(string)).Want(200)
	if done := c.Post("changes", body).Want(200); done.Data()["digest"] != body["expect"] {
		t.Errorf("the outcome is %.500s", done.Raw)
	}
}

// TestManyDeletes deletes many whom one policy names. Were the policy changed
// once for each of them, that would take longer than a request may.
func TestManyDeletes(t *testing.T) {
	c := servertest.Start(t).Admin(t)
	var made, gone []M
	roles := []any{"#staff"}
	for i := range 2000 {
		name := fmt.Sprint("i", i)
		made = append(made, change("create", "identity", "", M{"name": name, "type": "User", "isAdmin": false}))
		gone = append(gone, change("delete", "identity", name, nil))
		roles = append(roles, "@"+name)
	}
	made = append(made, change("create", "service-policy", "", M{"name": "all", "type": "Dial", "semantic": "AnyOf", "identityRoles": roles}))
	policy := idOf(c.Post("changes", list(made...)).Want(200), len(made)-1)
	a := c.Post("changes", list(gone...)).Want(200)
	if got := a.Data()["consequences"].([]any); len(got) != 1 || got[0].(M)["name"] != "all" || got[0].(M)["outcome"] != "changed" {
		t.Errorf("the consequences are %v", got)
	}
	if left := c.Get("service-policies/" + policy).At("data.identityRoles").([]any); len(left) != 1 || c.Get("identities").Total() != 1 {
		t.Errorf("the policy names %d", len(left))
	}
}

// TestPlanLeavesNoTrace plans everything that would make something: tokens,
// keys, lines of log.
func TestPlanLeavesNoTrace(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	signer := M{"name": "issuer", "enabled": true, "issuer": "https://issuer.example", "audience": nil, "jwksEndpoint": "https://issuer.example/keys"}
	body := list(
		change("create", "identity", "", M{"name": "bob", "type": "User", "isAdmin": false, "enrollment": M{"ott": true}}),
		change("create", "edge-router", "", M{"name": "edge"}),
		change("create", "ext-jwt-signer", "", signer),
	)
	count := func() (all int) { // times would also tell of a login that is noted meanwhile
		for _, path := range []string{"enrollments", "identities", "edge-routers", "external-jwt-signers", "authenticators"} {
			all += c.Get(path).Total()
		}
		return all
	}
	before := count()
	plan := c.Post("changes?plan=true", body).Want(200)
	if n := count(); n != before || s.Logged("has no audience") {
		t.Errorf("after a plan there are %d records instead of %d, or something in the log", n, before)
	}
	if regexp.MustCompile(`eyJ[\w-]+\.eyJ`).Match(plan.Raw) {
		t.Errorf("a plan shows a token: %s", plan.Raw)
	}
	c.Post("changes", body).Want(200)
	if n := c.Get("enrollments").Total(); n != 2 || !s.Logged("has no audience") {
		t.Errorf("then there are %d enrollments, or the log does not warn", n)
	}
}

// TestChangesInOrder has changes that follow from each other, and from what is
// gone again.
func TestChangesInOrder(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	service := func(name string) M { return M{"name": name, "encryptionRequired": true} }
	a := c.Post("changes", list(
		change("create", "service", "", service("a")),
		change("patch", "service", "a", M{"name": "b"}),
		change("create", "service", "", service("a")),
		change("delete", "service", "b", nil),
		change("create", "service", "", service("b")),
		change("delete", "service", "a", nil),
	)).Want(200)
	if got := outcomes(a); got != "created changed created deleted created deleted" {
		t.Errorf("the outcomes are %s", got)
	}
	if left := c.Get("services").List(); len(left) != 1 || left[0]["name"] != "b" || left[0]["id"] != idOf(a, 4) {
		t.Errorf("there is %v", left)
	}
	if got := a.Data()["consequences"].([]any); len(got) > 0 {
		t.Errorf("what the list asked for is called a consequence: %v", got)
	}
	admin := c.Get("current-identity").ID()
	c.Post("changes", list(change("patch", "identity", admin, M{"isAdmin": false}))).Want(200)
	c.Get("identities").Want(200) // the first admin stays one
}

// TestChangesAtOnce has several lists made at the same time as single changes.
// Each is made as a whole.
func TestChangesAtOnce(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	id := c.Post("services", M{"name": "web", "encryptionRequired": true}).Want(201).ID()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 5 {
				name := fmt.Sprintf("i-%d-%d", i, j)
				body := list(
					change("create", "identity", "", M{"name": name, "type": "User", "isAdmin": false}),
					change("create", "service-policy", "", M{"name": name, "type": "Dial", "semantic": "AnyOf", "identityRoles": []any{"@" + name}, "serviceRoles": []any{"@web"}}),
				)
				plan := c.Post("changes?plan=true", body)
				if plan.Status != 200 {
					t.Errorf("%s: %s", name, plan.Raw)
					continue
				}
				body["expect"] = plan.Data()["digest"]
				if a := c.Post("changes", body); a.Status != 200 && a.Status != http.StatusTooManyRequests {
					t.Errorf("%s: %s", name, a.Raw)
				}
				c.Patch("services/"+id, M{"terminatorStrategy": []string{"random", "sticky"}[j%2]})
			}
		})
	}
	all.Wait()
	if people, policies := c.Get("identities").Total()-1, c.Get("service-policies").Total(); people != policies || people == 0 {
		t.Errorf("there are %d people and %d policies", people, policies)
	}
}
