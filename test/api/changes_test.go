package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/test/servertest"
)

// change is one of a list; its target is left out if empty, as is its body if
// nil.
func change(op, kind, target string, body M) M {
	m := M{"op": op, "kind": kind}
	if target != "" {
		m["target"] = target
	}
	if body != nil {
		m["body"] = body
	}
	return m
}

// list is the body of a request.
func list(changes ...M) M { return M{"changes": changes} }

// outcomes are the outcomes that an answer lists, one after the other.
func outcomes(a *servertest.Answer) string {
	var all []string
	for _, c := range a.Data()["changes"].([]any) {
		all = append(all, c.(M)["outcome"].(string))
	}
	return strings.Join(all, " ")
}

// idOf is the id of what came of a change.
func idOf(a *servertest.Answer, i int) string {
	return a.At(fmt.Sprintf("data.changes.%d.id", i)).(string)
}

// TestChanges makes a whole network in one list, by names of what the list
// itself creates, then changes it and takes it away again.
func TestChanges(t *testing.T) {
	c := servertest.Start(t).Admin(t)
	a := c.Post("changes", list(
		change("create", "config-type", "", M{"name": "port", "schema": M{}}),
		change("create", "configs", "", M{"name": "web-eu", "configTypeId": "port", "data": M{"port": 80}}),
		change("create", "config", "", M{"name": "web-us", "configTypeId": "port", "data": M{"port": 81}}),
		change("create", "service", "", M{"name": "web", "encryptionRequired": true, "configs": []any{"web-eu"}, "roleAttributes": []any{"site"}}),
		change("create", "auth-policy", "", M{"name": "strict", "primary": M{"cert": M{"allowed": true, "allowExpiredCerts": false},
			"updb":   M{"allowed": false, "minPasswordLength": 5, "requireSpecialChar": false, "requireNumberChar": false, "requireMixedCase": false, "maxAttempts": 0, "lockoutDurationMinutes": 0},
			"extJwt": M{"allowed": false, "allowedSigners": []any{}}}, "secondary": M{"requireTotp": false}}),
		change("create", "identity", "", M{"name": "bob", "type": "User", "isAdmin": false, "authPolicyId": "strict", "serviceHostingCosts": M{"web": 7}, "enrollment": M{"ott": true}}),
		change("create", "service-policy", "", M{"name": "dial", "type": "Dial", "semantic": "AnyOf", "identityRoles": []any{"@bob"}, "serviceRoles": []any{"@web"}}),
		change("create", "service-config", "", M{"identityId": "bob", "serviceId": "web", "configId": "web-us"}),
	)).Want(200)
	if got, want := outcomes(a), strings.TrimSpace(strings.Repeat("created ", 8)); got != want {
		t.Errorf("the outcomes are %s", got)
	}
	typ, config, service, policy, bob := idOf(a, 0), idOf(a, 1), idOf(a, 3), idOf(a, 4), idOf(a, 5)
	for path, want := range map[string]M{
		"configs/" + config:              {"name": "web-eu", "configTypeId": typ},
		"services/" + service:            {"name": "web", "configs": []any{config}},
		"identities/" + bob:              {"name": "bob", "authPolicyId": policy, "serviceHostingCosts": M{service: 7.0}},
		"service-policies/" + idOf(a, 6): {"identityRoles": []any{"@" + bob}, "serviceRoles": []any{"@" + service}},
	} {
		got := c.Get(path).Want(200).Data()
		for name, value := range want {
			if diff := cmp.Diff(value, got[name]); diff != "" {
				t.Errorf("%s has another %s (-want +got):\n%s", path, name, diff)
			}
		}
	}
	if own := c.Get("identities/" + bob + "/service-configs").Want(200).List(); len(own) != 1 || own[0]["configId"] != idOf(a, 2) {
		t.Errorf("bob has %v", own)
	}
	if diff := cmp.Diff(M{"gained": 1.0, "lost": 0.0, "more": false, "pairs": []any{
		M{"identityId": bob, "identity": "bob", "serviceId": service, "service": "web", "type": "Dial", "change": "gained"}}}, a.Data()["access"]); diff != "" {
		t.Errorf("the access differs (-want +got):\n%s", diff)
	}
	enrollment := c.Get("enrollments").List()
	if diff := cmp.Diff([]any{M{"kind": "enrollment", "id": enrollment[0]["id"], "name": "", "outcome": "created"}}, a.Data()["consequences"]); diff != "" {
		t.Errorf("the consequences differ (-want +got):\n%s", diff)
	}

	a = c.Post("changes", list(
		change("patch", "service", "web", M{"name": "site", "roleAttributes": []any{"site", "new"}}),
		change("update", "identity", bob, M{"name": "bob", "type": "User", "isAdmin": false, "authPolicyId": "strict", "serviceHostingCosts": M{"site": 7}}),
		change("create", "service-config", "", M{"identityId": "bob", "serviceId": "site", "configId": "web-us"}),
		change("create", "service-config", "", M{"identityId": bob, "serviceId": "site", "configId": "web-eu"}),
		change("delete", "service-config", bob+"."+service+"."+typ, nil),
	)).Want(200)
	if got, want := outcomes(a), "changed unchanged unchanged changed deleted"; got != want {
		t.Errorf("the outcomes are %s, want %s", got, want)
	}
	if diff := cmp.Diff([]any{
		M{"name": "name", "before": "web", "after": "site"},
		M{"name": "roleAttributes", "before": []any{"site"}, "after": []any{"new", "site"}},
	}, a.At("data.changes.0.fields")); diff != "" {
		t.Errorf("the fields differ (-want +got):\n%s", diff)
	}

	c.Post("changes", list(change("delete", "service", "site", nil), change("delete", "auth-policy", "strict", nil))).
		Fails(409, string(fault.CodeReferenced), "changes.1.target")
	a = c.Post("changes", list(change("delete", "service", "site", nil))).Want(200)
	if diff := cmp.Diff([]any{
		M{"kind": "identity", "id": bob, "name": "bob", "outcome": "changed"},
		M{"kind": "service-policy", "id": a.At("data.consequences.1.id"), "name": "dial", "outcome": "changed"},
	}, a.Data()["consequences"]); diff != "" {
		t.Errorf("the consequences differ (-want +got):\n%s", diff)
	}
}

// TestChangesErrors has the last of several changes wrong: it is named, and
// none of them is made.
func TestChangesErrors(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	c.Post("services", M{"name": "there", "encryptionRequired": true}).Want(201)
	router := c.Post("edge-routers", M{"name": "edge", "isTunnelerEnabled": true}).Want(201).ID()
	before := s.State().Snapshot()
	service := M{"name": "x", "encryptionRequired": true}
	for _, tt := range []struct {
		bad    M
		status int
		code   fault.Code
		field  string
	}{
		{change("create", "service", "", M{"name": "there", "encryptionRequired": true}), 400, fault.CodeInvalid, "body.name"},
		{change("create", "service", "", service), 400, fault.CodeInvalid, "body.name"}, // twice in the list
		{change("create", "service", "", M{"encryptionRequired": true}), 400, fault.CodeInvalid, "body.name"},
		{change("create", "service", "", M{"name": "y", "encryptionRequired": true, "configs": []any{"nope"}}), 404, fault.CodeNotFound, "body.configs"},
		{change("create", "service-policy", "", M{"name": "p", "type": "Dial", "semantic": "AnyOf", "serviceRoles": []any{"@nope"}}), 400, fault.CodeInvalid, "body.serviceRoles"},
		{change("create", "service", "y", service), 400, fault.CodeInvalid, "target"},
		{change("create", "service", "", nil), 400, fault.CodeInvalid, "body"},
		{change("create", "servce", "", service), 400, fault.CodeInvalid, "kind"},
		{change("create", "api-session", "", M{}), 400, fault.CodeInvalid, "kind"},
		{change("drop", "service", "there", nil), 400, fault.CodeInvalid, "op"},
		{change("patch", "service-config", "x", M{}), 400, fault.CodeInvalid, "op"},
		{change("patch", "service", "", M{}), 400, fault.CodeInvalid, "target"},
		{change("patch", "service", "nope", M{}), 404, fault.CodeNotFound, "target"},
		{change("patch", "service", "there", nil), 400, fault.CodeInvalid, "body"},
		{change("patch", "service", "there", M{"name": ""}), 400, fault.CodeInvalid, "body.name"},
		{change("patch", "router", "edge", M{"cost": 1}), 409, fault.CodeForeignRouter, "target"},
		{change("patch", "edge-router-policy", router, M{"name": "mine"}), 400, fault.CodeUnchangeable, "target"},
		{change("delete", "edge-router-policy", router, nil), 400, fault.CodeUndeletable, "target"},
		{change("delete", "service", "there", M{}), 400, fault.CodeInvalid, "body"},
		{change("delete", "service", router, nil), 404, fault.CodeNotFound, "target"},
		{change("delete", "identity", "edge", nil), 400, fault.CodeUndeletable, "target"},
		{change("delete", "identity", "Default Admin", nil), 400, fault.CodeUndeletable, "target"},
		{change("delete", "auth-policy", "default", nil), 409, fault.CodeReferenced, "target"},
		{change("create", "identity", "", M{"name": "i", "type": "User", "isAdmin": false, "enrollment": M{"ottca": "nope"}}), 400, fault.CodeReference, "body.caId"},
		{change("create", "identity", "", M{"name": "i", "type": "User", "isAdmin": false, "externalIdIssuers": []any{"nope"}}), 404, fault.CodeNotFound, "body.externalIdIssuers"},
	} {
		for _, path := range []string{"changes?plan=true", "changes"} {
			c.Post(path, list(change("create", "service", "", service), change("delete", "service", "x", nil), change("create", "service", "", service), tt.bad)).
				Fails(tt.status, string(tt.code), "changes.3."+tt.field)
		}
	}
	for _, body := range []any{M{"changes": []any{}}, M{}, M{"changes": 1}, M{"changes": []any{1}}} {
		if a := c.Post("changes", body); a.Status != 400 {
			t.Errorf("%v: status %d", body, a.Status)
		}
	}
	if changed := servertest.Changed(before, s.State().Snapshot()); len(changed) > 0 {
		t.Errorf("something was written: %v", changed)
	}
}

// TestChangesUnchanged sends what there is: nothing is written, and no time is
// new.
func TestChangesUnchanged(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	body := M{"name": "web", "encryptionRequired": true, "roleAttributes": []any{"a", "b"}}
	id := c.Post("services", body).Want(201).ID()
	before, at := s.State().Snapshot(), c.Get("services/"+id).At("data.updatedAt")
	a := c.Post("changes", list(
		change("update", "service", "web", M{"name": "web", "roleAttributes": []any{"b", "a", "b"}}),
		change("patch", "services", id, M{"name": "web"}),
		change("patch", "services", id, M{}),
	)).Want(200)
	if got := outcomes(a); got != "unchanged unchanged unchanged" {
		t.Errorf("the outcomes are %s", got)
	}
	if len(servertest.Changed(before, s.State().Snapshot())) > 0 || c.Get("services/"+id).At("data.updatedAt") != at {
		t.Error("something was written")
	}
}

// TestChangesFromNothing gives a field a value that had none, which answers
// call null.
func TestChangesFromNothing(t *testing.T) {
	c := shared.Admin(t)
	name := servertest.Unique("ext")
	c.Post("identities", M{"name": name, "type": "User", "isAdmin": false}).Want(201)
	a := c.Post("changes?plan=true", list(change("patch", "identity", name, M{"externalId": name}))).Want(200)
	if diff := cmp.Diff([]any{M{"name": "externalId", "before": nil, "after": name}}, a.At("data.changes.0.fields")); diff != "" {
		t.Errorf("the fields differ (-want +got):\n%s", diff)
	}
}

// TestChangesPlan plans, and makes what was planned: only if it still is what
// comes of it.
func TestChangesPlan(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	c.Post("identities", M{"name": "bob", "type": "User", "isAdmin": false, "roleAttributes": []any{"staff"}}).Want(201)
	body := list(
		change("create", "service", "", M{"name": "web", "encryptionRequired": true}),
		change("create", "edge-router", "", M{"name": "edge", "isTunnelerEnabled": true}),
		change("create", "service-policy", "", M{"name": "dial", "type": "Dial", "semantic": "AnyOf", "identityRoles": []any{"#staff"}, "serviceRoles": []any{"@web"}}),
		change("patch", "identity", "bob", M{"serviceHostingCosts": M{"web": 3}}),
	)
	before := s.State().Snapshot()
	plan := c.Post("changes?plan=true", body).Want(200)
	if plan.Data()["applied"] != false || idOf(plan, 0) != "" || outcomes(plan) != "created created created changed" {
		t.Errorf("the plan is %s", plan.Raw)
	}
	if diff := cmp.Diff([]any{M{"name": "serviceHostingCosts", "before": M{}, "after": M{"web": 3.0}}}, plan.At("data.changes.3.fields")); diff != "" {
		t.Errorf("the fields differ (-want +got):\n%s", diff)
	}
	if len(servertest.Changed(before, s.State().Snapshot())) > 0 {
		t.Error("a plan wrote something")
	}
	if again := c.Post("changes?plan=true", body).Want(200); string(again.Raw) != string(plan.Raw) {
		t.Errorf("another plan of the same is another:\n%s\n%s", plan.Raw, again.Raw)
	}
	body["expect"] = plan.Data()["digest"]

	ann := c.Post("identities", M{"name": "ann", "type": "User", "isAdmin": false, "roleAttributes": []any{"staff"}}).Want(201).ID()
	now := s.State().Snapshot()
	c.Post("changes", body).Fails(409, string(fault.CodePlan), "")
	if len(servertest.Changed(now, s.State().Snapshot())) > 0 {
		t.Error("a plan that does not hold was made")
	}
	c.Patch("identities/"+ann, M{"roleAttributes": []any{"guest"}}).Want(200) // elsewhere
	done := c.Post("changes", body).Want(200)
	if done.Data()["applied"] != true || done.Data()["digest"] != body["expect"] || idOf(done, 0) == "" {
		t.Errorf("it came to %s", done.Raw)
	}
	c.Get("services/" + idOf(done, 0)).Want(200)
	c.Post("changes", body).Fails(400, string(fault.CodeInvalid), "changes.0.body.name") // they are there by now
}

// TestChangesAmbiguous has a name that is the id of another.
func TestChangesAmbiguous(t *testing.T) {
	c := servertest.Start(t).Admin(t)
	service := func(name string) M { return M{"name": name, "encryptionRequired": true} }
	first := c.Post("services", service("first")).Want(201).ID()
	policy := M{"name": "p", "type": "Dial", "semantic": "AnyOf", "serviceRoles": []any{"@" + first}}
	c.Post("changes?plan=true", list(change("create", "service-policy", "", policy))).Want(200)
	second := c.Post("services", service(first)).Want(201).ID()
	c.Post("changes", list(change("create", "service-policy", "", policy))).Fails(400, string(fault.CodeInvalid), "changes.0.body.serviceRoles")
	c.Post("changes", list(change("delete", "service", first, nil))).Fails(400, string(fault.CodeInvalid), "changes.0.target")
	a := c.Post("changes", list(
		change("patch", "service", second, M{"name": "second"}),
		change("create", "service-policy", "", policy),
	)).Want(200)
	if got := c.Get("service-policies/" + idOf(a, 1)).At("data.serviceRoles.0"); got != "@"+first {
		t.Errorf("the policy is about %v", got)
	}
	c.Post("changes", list(change("create", "identity", "", M{"name": "i", "type": "User", "isAdmin": false,
		"serviceHostingCosts": M{"first": 1, first: 2}}))).Fails(400, string(fault.CodeInvalid), "changes.0.body.serviceHostingCosts")
}

// TestChangesTakeOver has a name that belongs to records of two kinds until a
// later change of the list deletes one: what stays is meant.
func TestChangesTakeOver(t *testing.T) {
	c := servertest.Start(t).Admin(t)
	signer := c.Post("ext-jwt-signers", M{"name": "it", "issuer": "https://it.example", "audience": "us", "enabled": true,
		"jwksEndpoint": "https://it.example/keys"}).Want(201).ID()
	identity := change("create", "identity", "", M{"name": "i", "type": "User", "isAdmin": false, "externalIdIssuers": []any{"it"}})
	ca := change("create", "ca", "", M{"name": "it", "certPem": servertest.Certificate(t, true), "identityRoles": []any{},
		"isAuthEnabled": true, "isAutoCaEnrollmentEnabled": false, "isOttCaEnrollmentEnabled": false})
	c.Post("changes", list(ca, identity)).Fails(400, string(fault.CodeInvalid), "changes.1.body.externalIdIssuers")
	a := c.Post("changes", list(ca, identity, change("delete", "ext-jwt-signer", signer, nil))).Want(200)
	if got := c.Get("identities/" + idOf(a, 1)).At("data.externalIdIssuers.0"); got != idOf(a, 0) {
		t.Errorf("the identity is known to %v, the ca is %v", got, idOf(a, 0))
	}
}

// TestChangesIgnored names what nobody read, wherever it is.
func TestChangesIgnored(t *testing.T) {
	c := shared.Admin(t)
	a := c.Post("changes?plan=true", M{"expct": "x", "changes": []any{
		change("create", "service", "", M{"name": servertest.Unique("s"), "encryptionRequired": true, "permissions": []any{}, "rolAttributes": []any{}}),
	}}).Want(200)
	if got, want := a.Header.Get(ignored), `"expct";near="expect", "changes.0.body.rolAttributes";near="changes.0.body.roleAttributes"`; got != want {
		t.Errorf("the header is %s, want %s", got, want)
	}
}
