package auth_test

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/certtest"
	"netkeep.internal/test/servertest"
)

// ways are tricks by which somebody gets power later, or by whom they let in: tokens,
// grants that begin by themselves, CAs, signers, requests and routers.
func (s *stage) ways(who, role, attr string) []trick {
	name, soon, later := servertest.Unique("thing"), time.Now().Add(time.Hour).UTC().Format(time.RFC3339), time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339)
	router := M{"name": name, "isTunnelerEnabled": true, "roleAttributes": []string{attr}}
	ca := M{
		"name": name, "certPem": s.authority, "isAuthEnabled": true, "isOttCaEnrollmentEnabled": false, "isAutoCaEnrollmentEnabled": true, "identityRoles": []string{attr},
	}
	upcoming := M{"identityId": who, "attribute": attr, "reason": "because", "validFrom": soon, "validUntil": later}
	asked := M{"attribute": attr, "approvers": attr}
	return []trick{
		{method: "POST", path: "tokens", body: M{"name": name, "roleId": role, "expiresAt": later}},
		{method: "POST", path: "tokens", body: M{"name": name, "roleId": role, "expiresAt": later, "ownerId": who}},
		{method: "PATCH", path: "tokens/" + s.token, body: M{"ownerId": who}},
		{method: "PATCH", path: "tokens/" + s.token, body: M{"expiresAt": soon}},
		{method: "DELETE", path: "tokens/" + s.token},
		{method: "POST", path: "grants", body: upcoming},
		{method: "POST", path: "changes", body: M{"changes": []any{M{"op": "create", "kind": "grant", "body": upcoming}}}},
		{method: "POST", path: "cas", body: ca},
		{method: "POST", path: "changes", body: M{"changes": []any{M{"op": "create", "kind": "ca", "body": ca}}}},
		{method: "POST", path: "role-bindings", body: M{"name": name, "roleId": role, "semantic": "AnyOf", "signerId": s.signer, "claims": M{"sub": "me"}}},
		{method: "PATCH", path: "external-jwt-signers/" + s.signer, body: M{"audience": name}},
		{method: "POST", path: "services", body: M{"name": name, "encryptionRequired": true, "requests": asked}},
		{method: "PATCH", path: "services/" + s.service, body: M{"requests": asked}},
		{method: "POST", path: "edge-routers", body: router},
		{method: "PATCH", path: "edge-routers/" + s.router, body: M{"isTunnelerEnabled": false}},
		{method: "PATCH", path: "identities/" + s.router, body: M{"roleAttributes": []string{attr}}},
		{method: "DELETE", path: "edge-routers/" + s.router},
		{method: "DELETE", path: "transit-routers/" + s.router},
		{method: "POST", path: api.FabricRoot + "/routers", body: M{"name": name, "id": who}},
		{method: "DELETE", path: api.FabricRoot + "/routers/" + s.router},
		{method: "POST", path: "identities/" + who + "/enable"},
	}
}

// setWays makes what belongs to somebody more powerful: a token, a signer, a service.
func (s *stage) setWays(tb testing.TB) {
	admin, name := shared.Admin(tb), servertest.Unique("theirs")
	s.authority = string(certtest.New(tb, nil, func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign }).PEM())
	// Of an admin of this stage: there may be more stages than one identity may have tokens.
	s.token = admin.Post("tokens", M{"name": name, "roleId": "admin", "ownerId": s.people[1], "expiresAt": time.Now().Add(3 * time.Hour).UTC().Format(time.RFC3339)}).Want(http.StatusCreated).ID()
	s.service = admin.Post("services", M{"name": name, "encryptionRequired": true}).Want(http.StatusCreated).ID()
	s.signer = admin.Post("external-jwt-signers", M{
		"name": name, "enabled": true, "issuer": "https://" + name, "audience": name, "jwksEndpoint": "https://127.0.0.1/keys",
	}).Want(http.StatusCreated).ID()
}

// judgeWays fails if a change lets anybody have a power later, or by somebody else's word,
// that the attacker was not given.
func (s *stage) judgeWays(before, after *state.Snapshot, did trick) {
	what := fmt.Sprintf("%s %s with %v", did.method, did.path, did.body)
	body, _ := did.body.(M)
	mine := func(name string) bool { return name != "" && name == body["name"] }
	for t := range model.Tokens.All(after) {
		if _, had := model.Tokens.Get(before, t.ID); !had && mine(t.Name) && !s.within(power.OfToken(after, t), nil) {
			s.t.Fatalf("%s makes a token with a power that the attacker has not", what)
		}
	}
	was, _ := model.Tokens.Get(before, s.token)
	if is, there := model.Tokens.Get(after, s.token); !there || is.OwnerID != was.OwnerID || !is.ExpiresAt.Equal(was.ExpiresAt) {
		s.t.Fatalf("%s changes a token of an admin", what)
	}
	for g := range model.Grants.All(after) {
		if _, had := model.Grants.Get(before, g.ID); !had && slices.Contains(s.people, g.IdentityID) {
			who, there := model.Identities.Get(after, g.IdentityID)
			if !there {
				continue
			}
			then := model.Identities.Def.Clone(who).(*model.Identity)
			then.RoleAttributes = append(slices.Clone(then.RoleAttributes), g.Attribute)
			if !who.Admin() && !s.within(power.Of(after, then), power.RolesOf(before, who)) {
				s.t.Fatalf("%s gives %s a power from later on", what, g.IdentityID)
			}
		}
	}
	offers := func(attribute string) bool {
		return slices.Contains(s.attrs, attribute) && !s.within(power.Of(after, &model.Identity{RoleAttributes: []string{attribute}, SeldomIdentity: &model.SeldomIdentity{}}), nil)
	}
	for ca := range model.CAs.All(after) {
		if mine(ca.Name) && slices.ContainsFunc(ca.IdentityRoles, offers) {
			s.t.Fatalf("%s lets a CA give a power that the attacker has not", what)
		}
	}
	for service := range model.Services.All(after) {
		if (mine(service.Name) || service.ID == s.service) && service.Requests != nil && offers(service.Requests.Attribute) {
			s.t.Fatalf("%s lets people ask for a power that the attacker has not", what)
		}
	}
	for b := range model.RoleBindings.All(after) {
		if role, ok := model.AdminRoles.Get(after, b.RoleID); ok && mine(b.Name) && !s.within(power.OfRoles(role), nil) {
			s.t.Fatalf("%s binds a role that the attacker has not", what)
		}
	}
	if old, _ := model.ExtJWTSigners.Get(before, s.signer); old != nil {
		if now, there := model.ExtJWTSigners.Get(after, s.signer); !there || now.Audience != old.Audience {
			s.t.Fatalf("%s changes whose tokens count", what)
		}
	}
}

// drawWay picks one of the ways.
func (s *stage) drawWay(who, role, attr string) trick {
	return rapid.SampledFrom(s.ways(who, role, attr)).Draw(s.t, "way")
}
