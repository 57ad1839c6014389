package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netkeep.internal/test/servertest"
)

// drawer draws changes of a few records. It knows which of them are there, and
// asks for another once in a while.
type drawer struct {
	*rapid.T
	there map[string]bool
}

func (d drawer) pick(what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(d.T, what)
}

func (d drawer) some(what string, from ...string) []any {
	all := []any{}
	for _, text := range rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, 2, rapid.ID[string]).Draw(d.T, what) {
		if d.there[strings.TrimPrefix(text, "@")] || text[0] == '#' || text[0] > 'w' || d.rarely() {
			all = append(all, text)
		}
	}
	return all
}

func (d drawer) rarely() bool { return rapid.IntRange(0, 19).Draw(d.T, "rarely") == 7 }

// change draws one.
func (d drawer) change() M {
	kind := d.pick("kind", "identity", "service", "service-policy", "service-config")
	if kind == "service-config" {
		return change("create", kind, "", M{"identityId": d.pick("whose", "i0", "i1"), "serviceId": d.pick("of", "s0", "s1"), "configId": d.pick("which", "c0", "c1")})
	}
	name := map[string]string{"identity": "i", "service": "s", "service-policy": "p"}[kind] + d.pick("name", "0", "1", "2")
	body := d.body(kind, name)
	op := d.pick("op", "update", "patch", "patch", "delete")
	if d.there[name] == d.rarely() {
		op = "create"
	}
	switch op {
	case "create":
		d.there[name] = true
		return change(op, kind, "", body)
	case "delete":
		delete(d.there, name)
		return change(op, kind, name, nil)
	case "patch":
		for _, member := range slices.Sorted(maps.Keys(body)) {
			if rapid.Bool().Draw(d.T, "without "+member) {
				delete(body, member)
			}
		}
	}
	return change(op, kind, name, body)
}

func (d drawer) body(kind, name string) M {
	switch kind {
	case "identity":
		body := M{"name": name, "type": "User", "isAdmin": false, "roleAttributes": d.some("attributes", "x", "y")}
		if costly := d.pick("costly", "s0", "s1", "s2"); d.there[costly] {
			body["serviceHostingCosts"] = M{costly: 3}
		}
		return body
	case "service":
		return M{"name": name, "encryptionRequired": true, "roleAttributes": d.some("attributes", "x", "y"), "configs": d.some("configs", "c0")}
	}
	return M{
		"name": name, "type": d.pick("type", "Dial", "Bind"), "semantic": d.pick("semantic", "AnyOf", "AllOf"),
		"identityRoles": d.some("identities", "#x", "#y", "@i0", "@i1", "@i2"), "serviceRoles": d.some("services", "#x", "#y", "@s0", "@s1", "@s2"),
	}
}

// allowed is who of the few may use what, as the policies' own advice has it.
func allowed(c *servertest.Client) map[string]bool {
	may := map[string]bool{}
	for _, i := range c.Get("identities?limit=100").List() {
		for _, s := range c.Get("services?limit=100").List() {
			advice := c.Get(fmt.Sprintf("identities/%s/policy-advice/%s", i["id"], s["id"])).Data()
			for typ, member := range map[string]string{"Dial": "isDialAllowed", "Bind": "isBindAllowed"} {
				if advice[member] == true && i["isDefaultAdmin"] != true {
					may[fmt.Sprint(i["id"], " ", s["id"], " ", typ)] = true
				}
			}
		}
	}
	return may
}

// present are the names of what is there.
func present(c *servertest.Client) map[string]bool {
	there := map[string]bool{}
	for _, path := range []string{"identities", "services", "service-policies", "configs"} {
		for _, rec := range c.Get(path + "?limit=100").List() {
			there[rec["name"].(string)] = true
		}
	}
	return there
}

// totals is how many records there are of each kind.
func totals(c *servertest.Client) map[string]int {
	n := map[string]int{}
	for kind, path := range map[string]string{"identity": "identities", "service": "services", "service-policy": "service-policies"} {
		n[kind] = c.Get(path).Total()
	}
	return n
}

// TestPlanIsOutcome plans lists of changes at random and then makes them. What
// a plan says is what comes of it, in what the answer of the write says and in
// what everybody sees afterwards; what a plan refuses is refused.
func TestPlanIsOutcome(t *testing.T) {
	s := servertest.Start(t)
	all := s.Admin(t)
	typ := all.Post("config-types", M{"name": "ct"}).Want(201).ID()
	for _, name := range []string{"c0", "c1"} {
		all.Post("configs", M{"name": name, "configTypeId": typ, "data": M{}}).Want(201)
	}
	made, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		c := all
		d := drawer{rt, present(c)}
		var changes []M
		for range rapid.IntRange(1, 6).Draw(rt, "changes") {
			changes = append(changes, d.change())
		}
		body := list(changes...)
		rev := s.State().Snapshot()
		plan := c.Post("changes?plan=true", body)
		if plan.Status != 200 {
			refused++
			c.Post("changes", body).Fails(plan.Status, plan.At("error.code").(string), plan.At("error.cause.field").(string))
			if len(servertest.Changed(rev, s.State().Snapshot())) > 0 {
				rt.Fatal("a list was refused and something written")
			}
			return
		}
		made++
		if len(servertest.Changed(rev, s.State().Snapshot())) > 0 {
			rt.Fatal("a plan wrote something")
		}
		before, had := allowed(c), totals(c)
		body["expect"] = plan.Data()["digest"]
		done := c.Post("changes", body)
		if done.Status != 200 {
			rt.Fatalf("what was planned is refused: %s\n%s", done.Raw, plan.Raw)
		}
		sameOutcome(rt, plan.Data(), done.Data())
		sameTotals(rt, had, totals(c), done.Data())
		sameAccess(rt, before, allowed(c), done.At("data.access").(M))
	})
	t.Logf("%d lists were made and %d refused", made, refused)
	if made == 0 || refused == 0 {
		t.Errorf("%d lists were made and %d refused: that is no test", made, refused)
	}
}

// sameOutcome compares a plan with what came of it, new ids aside.
func sameOutcome(t *rapid.T, plan, done M) {
	if plan["applied"] != false || done["applied"] != true {
		t.Errorf("applied is %v, then %v", plan["applied"], done["applied"])
	}
	for _, member := range []string{"digest", "counts", "moreConsequences"} {
		if diff := cmp.Diff(plan[member], done[member]); diff != "" {
			t.Errorf("%s differs (-plan +done):\n%s", member, diff)
		}
	}
	for _, member := range []string{"changes", "consequences"} {
		for i, p := range plan[member].([]any) {
			planned, is := p.(M), done[member].([]any)[i].(M)
			if planned["kind"] != is["kind"] || planned["name"] != is["name"] || planned["outcome"] != is["outcome"] || planned["id"] != "" && planned["id"] != is["id"] {
				t.Errorf("%v was planned, and %v came of it", planned, is)
			}
		}
	}
}

// sameTotals holds what an answer says was created and deleted against how
// many records there are.
func sameTotals(t *rapid.T, had, has map[string]int, done M) {
	for _, member := range []string{"changes", "consequences"} {
		for _, e := range done[member].([]any) {
			kind := e.(M)["kind"].(string)
			if _, counted := had[kind]; !counted {
				continue
			}
			switch e.(M)["outcome"] {
			case "created":
				had[kind]++
			case "deleted":
				had[kind]--
			}
		}
	}
	if diff := cmp.Diff(had, has); diff != "" {
		t.Errorf("there are not as many records as the answer says (-said +there):\n%s", diff)
	}
}

// sameAccess holds what an answer says of access against what policies say
// before and after.
func sameAccess(t *rapid.T, before, after map[string]bool, said M) {
	want, got := map[string]string{}, map[string]string{}
	for pair := range after {
		if !before[pair] {
			want[pair] = "gained"
		}
	}
	for pair := range before {
		if !after[pair] {
			want[pair] = "lost"
		}
	}
	for _, p := range said["pairs"].([]any) {
		pair := p.(M)
		if strings.HasPrefix(pair["identity"].(string), "i") {
			got[fmt.Sprint(pair["identityId"], " ", pair["serviceId"], " ", pair["type"])] = pair["change"].(string)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the access differs (-is +said):\n%s", diff)
	}
}
