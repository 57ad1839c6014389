package auth_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/test/servertest"
)

// stage is a network in which somebody tries to get more power than they have.
type stage struct {
	t      *rapid.T
	mine   []*model.AdminRole // what the attacker was given
	bodies []*servertest.Client
	selves []string // whom each of these is
	people []string // attackers, victims and bystanders
	roles  []string
	holds  []string // bindings
	attrs  []string // that bindings look for
	policy string
	router string

	token, signer, service, authority string            // of others
	hidden                            map[string]string // what there is to refer to, by its kind
	secret                            string            // in the data of a config
}

// setStage makes a random network: roles, those who hold them, by themselves and by
// attributes, and all ways in for each.
func setStage(t *rapid.T, tb testing.TB) *stage {
	s, admin := &stage{t: t}, shared.Admin(tb)
	role := func(label string) string {
		allows := rapid.SliceOfNDistinct(rapid.SampledFrom(grants), 1, 4, rapid.ID).Draw(t, label)
		id := admin.Post("admin-roles", M{"name": servertest.Unique("role"), "allows": allows}).Want(http.StatusCreated).ID()
		s.roles = append(s.roles, id)
		return id
	}
	built := rapid.SampledFrom([]string{"viewer", "auditor", "helpdesk", "operator", "policy-author"})
	own, other := role("attacker"), role("victim")
	s.roles = append(s.roles, "admin", built.Draw(t, "built in"))
	s.attrs = []string{servertest.Unique("attr"), servertest.Unique("attr")}
	for i, id := range []string{own, other} {
		b := M{"name": servertest.Unique("binding"), "roleId": id, "semantic": "AnyOf", "identityRoles": []string{"#" + s.attrs[i]}}
		s.holds = append(s.holds, admin.Post("role-bindings", b).Want(http.StatusCreated).ID())
	}
	invited := M{"ott": true}
	given := []string{own}
	if rapid.Bool().Draw(t, "reads everything") { // as all that is built in does
		given = append(given, built.Draw(t, "attacker's second"))
	}
	attacker := add(tb, M{"adminRoles": given})
	s.people = []string{
		attacker, add(tb, M{"isAdmin": true, "enrollment": invited}), add(tb, M{"roleAttributes": s.attrs[1:], "enrollment": invited}),
		add(tb, M{"adminRoles": []string{built.Draw(t, "victim's")}, "enrollment": invited}), add(tb, M{"enrollment": invited}),
	}
	edit(tb, model.Identities, s.people[1], func(i *model.Identity) { i.AuthPolicyID = model.DefaultAuthPolicy })
	for _, id := range []string{s.people[1], s.people[3]} { // the others are whom the attacker may become
		err := shared.State().Update(tb.Context(), state.Program("test"), func(tx *state.Tx) error {
			return model.MFAs.Create(tx, &model.MFA{IdentityID: id, IsVerified: true})
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	s.policy = addPolicy(tb, func(_, _ M) {})
	s.router = admin.Post("edge-routers", M{"name": servertest.Unique("router"), "isTunnelerEnabled": true}).Want(http.StatusCreated).ID()
	edit(tb, model.Identities, s.router, func(i *model.Identity) { i.AdminRoles = []string{"operator"} })
	s.setWays(tb)
	s.setReferences(tb)
	snap := shared.State().Snapshot()
	i, _ := model.Identities.Get(snap, attacker)
	s.mine, s.bodies = power.RolesOf(snap, i), []*servertest.Client{enter(tb, attacker)}
	s.selves = []string{attacker}
	for _, id := range given { // machines that they answer for
		s.bodies = append(s.bodies, newToken(tb, admin, M{"roleId": id, "ownerId": attacker}).as(tb))
		s.selves = append(s.selves, attacker)
	}
	return s
}

// grants are what random roles are made of: most of what has to do with power.
var grants = []string{
	"*:read", "identity:*", "identity:update", "identity:create", "enrollment:*", "enrollment:read", "authenticator:*", "authenticator:re-enroll",
	"admin-role:*", "role-binding:*", "auth-policy:*", "ca:*", "ext-jwt-signer:*", "edge-router:*", "api-session:*", "identity:reset-mfa", "audit-entry:read", "service:*", "grant:*",
	"token:*", "router:*", "ca:create", "role-binding:create",
	"config:read", "service-config:*", "service-policy:*", "terminator:*", "service:read", "identity:read", "edge-router-policy:*", "posture-check:read",
}

// trick is something that the attacker does.
type trick struct {
	method, path string
	body         any
	becomes      string // whom the attacker can be afterwards, if it is allowed
}

// draw picks what to try next. Bodies are good ones: what is refused is refused for
// want of power.
func (s *stage) draw() trick {
	t := s.t
	pick := func(label string, of []string) string { return rapid.SampledFrom(of).Draw(t, label) }
	who, role, hold, attr := pick("who", s.people), pick("role", s.roles), pick("binding", s.holds), pick("attribute", s.attrs)
	allows := rapid.SliceOfN(rapid.SampledFrom(append([]string{"*", "database:fix"}, grants...)), 1, 3).Draw(t, "allows")
	name, later := servertest.Unique("thing"), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	snap := shared.State().Snapshot()
	way := func(idOf func() string) string {
		if id := idOf(); id != "" {
			return id
		}
		return "none"
	}
	password := way(func() (id string) {
		for a := range model.Authenticators.Select(snap, "identityId", who) {
			id = a.ID
		}
		return id
	})
	invitation := way(func() (id string) {
		for e := range model.Enrollments.Select(snap, "identityId", who) {
			id = e.ID
		}
		return id
	})
	change := func(op, kind, target string, body M) M {
		c := M{"op": op, "kind": kind}
		if target != "" {
			c["target"] = target
		}
		if body != nil {
			c["body"] = body
		}
		return M{"changes": []any{c}}
	}
	switch rapid.IntRange(0, 3).Draw(t, "way") {
	case 0:
		return s.drawWay(who, role, attr)
	case 1:
		return s.drawReference(who)
	}
	primary, secondary := allowAll()
	all := []trick{
		{method: "POST", path: "identities", body: M{"name": name, "type": "User", "isAdmin": rapid.Bool().Draw(t, "admin"), "enrollment": M{"ott": true}}},
		{method: "POST", path: "identities", body: M{"name": name, "type": "User", "isAdmin": false, "roleAttributes": []string{attr}, "enrollment": M{"ott": true}}},
		{method: "POST", path: "identities", body: M{"name": name, "type": "User", "isAdmin": false, "adminRoles": []string{role}}},
		{method: "PATCH", path: "identities/" + who, body: M{"adminRoles": []string{role}}},
		{method: "PATCH", path: "identities/" + who, body: M{"roleAttributes": []string{attr}}},
		{method: "PATCH", path: "identities/" + who, body: M{"isAdmin": true}},
		{method: "PATCH", path: "identities/" + who, body: M{"externalId": name}},
		{method: "PATCH", path: "identities/" + who, body: M{"authPolicyId": s.policy}},
		{method: "POST", path: "grants", body: M{"identityId": who, "attribute": attr, "reason": "because", "validUntil": later}},
		{method: "POST", path: "changes", body: change("create", "grant", "", M{"identityId": who, "attribute": attr, "reason": "because", "validUntil": later})},
		{method: "DELETE", path: "identities/" + who + "/mfa"},
		{method: "POST", path: "identities/" + who + "/disable", body: M{"durationMinutes": 5}},
		{method: "POST", path: "admin-roles", body: M{"name": name, "allows": allows}},
		{method: "PATCH", path: "admin-roles/" + role, body: M{"allows": allows}},
		{method: "DELETE", path: "admin-roles/" + role},
		{method: "POST", path: "role-bindings", body: M{"name": name, "roleId": role, "semantic": "AnyOf", "identityRoles": []string{"@" + who}}},
		{method: "POST", path: "role-bindings", body: M{"name": name, "roleId": role, "semantic": "AllOf", "identityRoles": []string{"#" + attr}}},
		{method: "PATCH", path: "role-bindings/" + hold, body: M{"roleId": role}},
		{method: "PATCH", path: "role-bindings/" + hold, body: M{"identityRoles": []string{"@" + who}}},
		{method: "DELETE", path: "role-bindings/" + hold},
		{method: "POST", path: "authenticators", body: M{"identityId": who, "method": "updb", "username": name, "password": "a good password"}, becomes: who},
		{method: "PATCH", path: "authenticators/" + password, body: M{"password": "another password"}, becomes: who},
		{method: "POST", path: "authenticators/" + password + "/re-enroll", body: M{"expiresAt": later}},
		{method: "DELETE", path: "authenticators/" + password},
		{method: "POST", path: "enrollments", body: M{"identityId": who, "method": "ott", "expiresAt": later}},
		{method: "POST", path: "enrollments/" + invitation + "/refresh", body: M{"expiresAt": later}},
		{method: "DELETE", path: "enrollments/" + invitation},
		{method: "GET", path: "enrollments?limit=500"}, {method: "GET", path: "enrollments/" + invitation}, {method: "GET", path: "identities/" + who + "/enrollments"},
		{method: "GET", path: "identities/" + who}, {method: "GET", path: "edge-routers/" + s.router}, {method: "GET", path: "audit-entries?limit=50"},
		{method: "POST", path: "edge-routers/" + s.router + "/re-enroll", body: M{}},
		{method: "PATCH", path: "auth-policies/default", body: M{"name": "Default"}},
		{method: "PUT", path: "auth-policies/" + s.policy, body: M{"name": name, "primary": primary, "secondary": secondary}},
		{method: "POST", path: "external-jwt-signers", body: M{"name": name, "enabled": true, "issuer": "https://" + name, "audience": name, "jwksEndpoint": "https://127.0.0.1/keys"}},
		{method: "POST", path: "changes", body: change("patch", "identity", who, M{"adminRoles": []string{role}})},
		{method: "POST", path: "changes", body: change("patch", "identity", who, M{"roleAttributes": []string{attr}})},
		{method: "POST", path: "changes", body: change("create", "role-binding", "", M{"name": name, "roleId": role, "semantic": "AnyOf", "identityRoles": []string{"@" + who}})},
		{method: "POST", path: "changes?plan=true", body: change("patch", "admin-role", role, M{"allows": allows})},
		{method: "POST", path: "changes", body: change("delete", "role-binding", hold, nil)},
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(t, "what")]
}

// within reports whether a power is within what somebody had and what the attacker was
// given, whoever has it.
func (s *stage) within(now power.Set, had []*model.AdminRole) bool {
	return power.OfRoles(slices.Concat(had, s.mine)...).Covers(now)
}

// TestNobodyGainsPower has somebody with random roles do whatever they may, and be
// whomever they can be: nobody of the network ever gets, and nobody loses, a power that
// the attacker was not given, and no way in of anybody more powerful is changed or told.
func TestNobodyGainsPower(t *testing.T) {
	t.Parallel()
	end, allowed := time.Now().Add(20*time.Second), 0
	rapid.Check(t, func(rt *rapid.T) {
		if time.Now().After(end) {
			return // the rest is for another day
		}
		s := setStage(rt, t)
		for range 25 {
			before := shared.State().Snapshot()
			did := s.draw()
			as := rapid.IntRange(0, len(s.bodies)-1).Draw(rt, "as")
			a := s.bodies[as].For(t).Do(did.method, did.path, did.body)
			s.told(before, did, a)
			s.toldConfig(before, s.selves[as], did, a)
			if a.Status >= 300 {
				continue
			}
			allowed++
			after := shared.State().Snapshot()
			s.judge(before, after, did)
			s.judgeWays(before, after, did)
			s.judgeReferences(before, after, s.selves[as], did)
			if did.becomes != "" {
				s.become(t, did.becomes)
			}
		}
	})
	if allowed == 0 {
		t.Error("nothing was ever allowed, so that nothing was shown")
	}
}

// told fails if an answer tells the attacker how to be somebody with more power.
func (s *stage) told(snap *state.Snapshot, did trick, a *servertest.Answer) {
	for _, on := range []*state.Snapshot{snap, shared.State().Snapshot()} {
		for e := range model.Enrollments.All(on) {
			if e.Token != "" && strings.Contains(string(a.Raw), e.Token) && !s.within(power.Behind(on, e), nil) {
				s.t.Fatalf("%s %s tells the invitation of %s", did.method, did.path, e.Subject())
			}
		}
	}
}

// judge fails if a change gave or took a power that the attacker was not given.
func (s *stage) judge(before, after *state.Snapshot, did trick) {
	what := fmt.Sprintf("%s %s with %v", did.method, did.path, did.body)
	for _, id := range append(slices.Clone(s.people), s.router) {
		was, had := model.Identities.Get(before, id)
		is, has := model.Identities.Get(after, id)
		var roles []*model.AdminRole
		if had {
			roles = power.RolesOf(before, was)
		}
		if has && !(had && was.Admin()) && !s.within(power.Of(after, is), roles) {
			s.t.Fatalf("%s gives %s a power that nobody who has it gave", what, id)
		}
		if s.within(power.OfID(before, id), nil) {
			continue
		}
		// A binding of a role that the attacker has may go, whomever it was for.
		if !has || is.Admin() != was.Admin() || !is.Admin() && !s.within(power.Of(before, was), power.RolesOf(after, is)) {
			s.t.Fatalf("%s takes a power that the attacker has not from %s", what, id)
		}
		if now, then := waysOf(after, id), waysOf(before, id); !slices.Equal(now, then) {
			s.t.Fatalf("%s changes how %s gets in: %v, not %v", what, id, now, then)
		}
	}
	for i := range model.Identities.All(after) { // those who are new
		if _, had := model.Identities.Get(before, i.ID); !had && !s.within(power.Of(after, i), nil) && slices.Contains(s.made(did), i.Name) {
			s.t.Fatalf("%s makes %s with a power that the attacker has not", what, i.Name)
		}
	}
}

// made are the names of what an trick may have made.
func (s *stage) made(did trick) []string {
	body, _ := did.body.(M)
	name, _ := body["name"].(string)
	return []string{name}
}

// waysOf tells how an identity gets in.
func waysOf(snap *state.Snapshot, id string) (ways []string) {
	for a := range model.Authenticators.Select(snap, "identityId", id) {
		ways = append(ways, fmt.Sprint(a.ID, a.Username, a.PasswordRev, a.Fingerprint))
	}
	for e := range model.Enrollments.Select(snap, "identityId", id) {
		ways = append(ways, e.ID+e.Token)
	}
	for e := range model.Enrollments.Select(snap, "edgeRouterId", id) {
		ways = append(ways, e.ID+e.Token)
	}
	if m, ok := model.MFAOf(snap, id); ok {
		ways = append(ways, m.ID)
	}
	if i, ok := model.Identities.Get(snap, id); ok {
		ways = append(ways, i.ExternalID, i.AuthPolicyID, fmt.Sprint(i.DisabledAt))
	}
	return ways
}

// become has the attacker be somebody else as well.
func (s *stage) become(t *testing.T, id string) {
	if i, ok := model.Identities.Get(shared.State().Snapshot(), id); !ok || i.DisabledAt != nil || len(s.bodies) > 5 {
		return
	}
	s.bodies, s.selves = append(s.bodies, enter(t, id)), append(s.selves, id)
}
