package auth_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/test/servertest"
)

// setReferences makes what somebody could lead to without being able to read it.
func (s *stage) setReferences(tb testing.TB) {
	admin, name := shared.Admin(tb), servertest.Unique("hidden")
	hostV1, _ := model.ConfigTypes.Find(shared.State().Snapshot(), "name", "host.v1")
	s.secret = servertest.Unique("secret") + ".example"
	named := func(path string, body M) string {
		body["name"] = name
		return admin.Post(path, body).Want(http.StatusCreated).ID()
	}
	s.hidden = map[string]string{
		model.Configs.Name: named("configs", M{"configTypeId": hostV1.ID, "data": M{"protocol": "tcp", "address": s.secret, "port": 80}}),
		model.CAs.Name: named("cas", M{
			"certPem": servertest.Certificate(tb, true), "isAuthEnabled": true, "isOttCaEnrollmentEnabled": true, "isAutoCaEnrollmentEnabled": false, "identityRoles": []string{},
		}),
		model.PostureChecks.Name: named("posture-checks", M{"typeId": "MFA"}),
		model.Services.Name:      s.service, model.EdgeRouters.Name: s.router, model.ExtJWTSigners.Name: s.signer, model.AuthPolicies.Name: s.policy,
		"name": name,
	}
	s.hidden[model.Identities.Name], s.hidden[model.Routers.Name] = s.people[4], s.router
}

// drawReference picks a write that leads to other records, by their ids or, in a list of
// changes, by their names.
func (s *stage) drawReference(who string) trick {
	name, later, h := servertest.Unique("thing"), time.Now().Add(time.Hour).UTC().Format(time.RFC3339), s.hidden
	config, service, router, ca := h[model.Configs.Name], s.service, s.router, h[model.CAs.Name]
	with := func(body M) M {
		body["name"] = name
		return body
	}
	changed := func(kind string, body M) M {
		return M{"changes": []any{M{"op": "create", "kind": kind, "body": with(body)}}}
	}
	primary, secondary := allowAll()
	primary["extJwt"] = M{"allowed": true, "allowedSigners": []string{s.signer}}
	dial := M{"type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"@" + who}, "serviceRoles": []string{"@" + service}, "postureCheckRoles": []string{"@" + h[model.PostureChecks.Name]}}
	all := []trick{
		{method: "POST", path: "services", body: with(M{"encryptionRequired": true, "configs": []string{config}})},
		{method: "PATCH", path: "services/" + service, body: M{"configs": []string{config}}},
		{method: "POST", path: "changes", body: changed("service", M{"encryptionRequired": true, "configs": []string{h["name"]}})},
		{method: "GET", path: "services/" + service + "?configTypes=all"},
		{method: "GET", path: "services?limit=500&configTypes=all"},
		{method: "POST", path: "identities/" + who + "/service-configs", body: []any{M{"serviceId": service, "configId": config}}},
		{method: "POST", path: "terminators", body: M{"service": service, "router": router, "binding": "transport", "address": "tcp:127.0.0.1:1"}},
		{method: "POST", path: "service-policies", body: with(dial)},
		{method: "POST", path: "edge-router-policies", body: with(M{"semantic": "AnyOf", "identityRoles": []string{"@" + who}, "edgeRouterRoles": []string{"@" + router}})},
		{method: "POST", path: "enrollments", body: M{"identityId": who, "method": "ottca", "caId": ca, "expiresAt": later}},
		{method: "POST", path: "identities", body: with(M{"type": "User", "isAdmin": false, "enrollment": M{"ottca": ca}})},
		{method: "POST", path: "changes", body: changed("identity", M{"type": "User", "isAdmin": false, "enrollment": M{"ottca": h["name"]}})},
		{method: "POST", path: "identities", body: with(M{"type": "User", "isAdmin": false, "authPolicyId": s.policy})},
		{method: "POST", path: "identities", body: with(M{"type": "User", "isAdmin": false, "externalId": name, "externalIdIssuers": []string{ca}})},
		{method: "PATCH", path: "identities/" + who, body: M{"serviceHostingCosts": M{service: 3}}},
		{method: "POST", path: "auth-policies", body: with(M{"primary": primary, "secondary": secondary})},
		{method: "POST", path: "grants", body: M{"identityId": who, "attribute": name, "reason": "because", "validUntil": later}},
	}
	// Those that the attacker's own power lets through to where references are judged.
	could := slices.DeleteFunc(all, func(did trick) bool {
		what, verb := needOf(did)
		return power.OfRoles(s.mine...).Over(what + ":" + verb).None()
	})
	if len(could) == 0 {
		return trick{method: "GET", path: "services"}
	}
	return rapid.SampledFrom(could).Draw(s.t, "reference")
}

// needOf is the power that a write takes which leads somewhere.
func needOf(did trick) (what, verb string) {
	path, _, _ := strings.Cut(did.path, "?")
	if body, _ := did.body.(M); path == "changes" {
		what, _ = body["changes"].([]any)[0].(M)["kind"].(string)
		return what, "create"
	}
	if strings.HasSuffix(path, "service-configs") {
		return model.ServiceConfigs.Name, "create"
	}
	collection, _, _ := strings.Cut(path, "/")
	for _, d := range model.All.Defs {
		if d.Path == collection {
			what = d.Name
		}
	}
	return what, map[string]string{"GET": "read", "POST": "create", "PATCH": "update"}[did.method]
}

// judgeReferences fails if a record leads to one of this stage, as none did before, that
// whoever wrote it may not read. Nobody else writes here.
func (s *stage) judgeReferences(before, after *state.Snapshot, self string, did trick) {
	mine := power.OfID(before, self)
	for _, d := range model.All.Defs {
		if d.Lane != kind.Model || before.Edition(d) == after.Edition(d) {
			continue
		}
		for rec := range after.All(d) {
			old, had := before.Lookup(d, rec.Base().ID)
			if had && old == rec {
				continue
			}
			if !had {
				old = d.New()
			}
			err := model.All.Confine(after, d, old, rec, func(target *kind.Def, to kind.Record, _ bool) bool {
				return to == nil || s.hidden[target.Name] != to.Base().ID || to.Base().ID == self || mine.Over(target.Name+":read").Has(target, to)
			})
			if err != nil {
				s.t.Fatalf("%s %s with %v leads to what its author may not read: %v", did.method, did.path, did.body, err)
			}
		}
	}
}

// toldConfig fails if an answer tells what is in a config to somebody who may not read it.
func (s *stage) toldConfig(before *state.Snapshot, self string, did trick, a *servertest.Answer) {
	if !strings.Contains(string(a.Raw), s.secret) {
		return
	}
	for _, need := range []string{"config:read", "audit-entry:read"} { // the log is about everything
		if power.OfID(before, self).Over(need).Whole() {
			return
		}
	}
	s.t.Fatalf("%s %s with %v tells what is in a config: %s", did.method, did.path, did.body, a.Raw)
}
