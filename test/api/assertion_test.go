package api_test

import (
	"strings"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// TestAssertions breaks an assertion over every way to write: each refuses with the
// assertion and who breaks it, and none leaves a trace. Who says so is let through.
func TestAssertions(t *testing.T) {
	c := servertest.Start(t).Admin(t)
	eve := c.Post("identities", M{"name": "eve", "type": "User", "isAdmin": false, "roleAttributes": []string{"contractors"}}).Want(201).ID()
	c.Post("services", M{"name": "payroll", "encryptionRequired": true, "roleAttributes": []string{"finance"}}).Want(201)
	staff := c.Post("service-policies", M{"name": "staff", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#staff"}, "serviceRoles": []string{"#finance"}}).Want(201).ID()
	guard := c.Post("assertions", M{"name": "stay out", "expect": "never", "identityRoles": []string{"#contractors"}, "serviceRoles": []string{"#finance"}}).Want(201).ID()

	wide := M{"name": "wide", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#contractors"}, "serviceRoles": []string{"#all"}}
	list := M{"changes": []any{M{"op": "create", "kind": "service-policy", "body": wide}}}
	refused := func(a *servertest.Answer) {
		t.Helper()
		a.Fails(409, "ASSERTION_BROKEN", "assertion")
		if !strings.Contains(string(a.Raw), `\"stay out\" would not hold: eve may dial payroll`) {
			t.Errorf("it is not said who gains what: %s", a.Raw)
		}
	}
	refused(c.Post("service-policies", wide))
	refused(c.Post("service-policies?override=false", wide))
	refused(c.Patch("service-policies/"+staff, M{"identityRoles": []string{"#all"}}))
	refused(c.Patch("identities/"+eve, M{"roleAttributes": []string{"contractors", "staff"}}))
	refused(c.Post("changes", list))
	c.Post("service-policies?override=perhaps", wide).Fails(400, "COULD_NOT_VALIDATE", "override")

	plan := c.Post("changes?plan=true", list).Want(200)
	if plan.At("data.assertions.0.name") != "stay out" || plan.At("data.assertions.0.id") != guard || plan.At("data.assertions.0.count") != 1.0 {
		t.Errorf("a plan says %s", plan.Raw)
	}
	list["expect"] = plan.At("data.digest")
	refused(c.Post("changes", list))
	if n := c.Get("service-policies").Total(); n != 1 {
		t.Errorf("what was refused left a trace: %d policies", n)
	}
	if check := c.Get("assertions/check").Want(200); check.At("data.broken") != 0.0 || check.At("data.assertions.0.holds") != true {
		t.Errorf("it does not hold: %s", check.Raw)
	}

	c.Post("changes?override=true", list).Want(200)
	check := c.Get("assertions/check").Want(200)
	if check.At("data.broken") != 1.0 || check.At("data.assertions.0.listed.0.policy") != "wide" {
		t.Errorf("it holds: %s", check.Raw)
	}
	entry := c.Get("audit-entries?filter=" + query(`event = "assertion-overridden"`)).Want(200).List()
	if len(entry) != 1 || entry[0]["targetId"] != guard || entry[0]["operation"] != "createServicePolicy" {
		t.Errorf("the audit log says %v", entry)
	}
	servertest.Eventually(t, time.Minute, "what was refused is in the audit log", func() bool {
		refusals := c.Get("audit-entries?filter=" + query(`event = "assertion-refused"`)).Want(200).List()
		return len(refusals) > 0 && refusals[0]["targetId"] == guard && refusals[0]["outcome"] == "refused"
	})
	c.Delete("assertions/" + guard).Want(200)
	c.Patch("identities/"+eve, M{"roleAttributes": []string{"contractors", "staff"}}).Want(200)
}
