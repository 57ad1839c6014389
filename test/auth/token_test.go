package auth_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// machineToken is a machine's.
type machineToken struct{ id, secret string }

// as returns a client that shows the token and has no session.
func (k machineToken) as(t testing.TB) *servertest.Client {
	return shared.Nobody(t).With("Authorization", "Bearer "+k.secret)
}

// tokenBody is a body that makes a token, with some changes.
func tokenBody(change M) M {
	body := M{"name": servertest.Unique("token"), "roleId": "viewer", "expiresAt": time.Now().Add(time.Hour)}
	for name, value := range change {
		body[name] = value
	}
	return body
}

// newToken has somebody make a token.
func newToken(t testing.TB, maker *servertest.Client, change M) machineToken {
	t.Helper()
	made := maker.Post("tokens", tokenBody(change)).Want(http.StatusCreated).Data()
	return machineToken{made["id"].(string), made["token"].(string)}
}

// holder makes an identity with admin roles, and logs it in.
func holder(t testing.TB, change M) (id string, c *servertest.Client) {
	t.Helper()
	id = add(t, change)
	username, _ := addPassword(t, id, "correct horse")
	return id, shared.Login(t, username, "correct horse")
}

func TestTokenWorks(t *testing.T) {
	ci := newToken(t, shared.Admin(t), M{"roleId": "policy-author", "from": []any{"127.0.0.0/8", "::1"}})
	if !strings.HasPrefix(ci.secret, "nkt_") || len(ci.secret) < 60 {
		t.Errorf("the secret is %q", ci.secret)
	}
	service := ci.as(t).Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Want(201).ID()
	ci.as(t).Get("services/" + service).Want(200)
	ci.as(t).Delete("services/" + service).Want(200)
	ci.as(t).Get(api.FabricRoot + "/links").Want(200)
	ci.as(t).Post("identities", M{"name": servertest.Unique("identity"), "type": "User", "isAdmin": false}).Fails(401, "UNAUTHORIZED", "")

	seen := shared.Admin(t).Get("tokens/" + ci.id).Want(200)
	if at, ok := seen.Data()["lastUsedAt"].(string); !ok || at == "" || seen.Data()["lastUsedFrom"] != "127.0.0.1" {
		t.Errorf("its last use is %v from %v", seen.Data()["lastUsedAt"], seen.Data()["lastUsedFrom"])
	}
	if strings.Contains(string(seen.Raw), "nkt_") || strings.Contains(string(seen.Raw), "digest") {
		t.Errorf("the answer holds the secret: %s", seen.Raw)
	}
	entries := shared.Admin(t).Get(`audit-entries?filter=targetId="` + service + `"`).Want(200).List()
	for _, e := range entries {
		if e["actorKind"] != "token" || e["actorId"] != ci.id || !strings.HasSuffix(e["actorName"].(string), " of Default Admin") {
			t.Errorf("the entry says %v %v %v", e["actorKind"], e["actorId"], e["actorName"])
		}
	}
	if len(entries) != 2 {
		t.Errorf("there are %d entries, want 2", len(entries))
	}
}

// TestTokenReadsEverything asks every list of the Management API as a token: none of
// them needs a session.
func TestTokenReadsEverything(t *testing.T) {
	reader := newToken(t, shared.Admin(t), M{"roleId": "viewer"})
	for _, path := range []string{
		"services", "identities", "api-sessions", `api-sessions?filter=token="x"`, "sessions", "edge-routers", "tokens", "status", "summary", "role-bindings",
		"services?asIdentity=" + add(t, nil), "terminators", "enrollments", "authenticators", "audit-entries", "controllers",
	} {
		reader.as(t).Get(path).Want(200)
	}
	id := shared.Admin(t).Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Want(201).ID()
	reader.as(t).Get("services/" + id).Want(200)
	reader.as(t).Get("services/" + id + "?configTypes=all").Want(200)
}

// TestTokenEnds takes from a token all that it rests on.
func TestTokenEnds(t *testing.T) {
	admin := shared.Admin(t)
	for name, test := range map[string]func(t *testing.T, owner string, k machineToken){
		"revoked":    func(t *testing.T, _ string, k machineToken) { admin.Delete("tokens/" + k.id).Want(200) },
		"owner gone": func(t *testing.T, owner string, _ machineToken) { admin.Delete("identities/" + owner).Want(200) },
		"owner off": func(t *testing.T, owner string, _ machineToken) {
			admin.Post("identities/"+owner+"/disable", M{"durationMinutes": 0}).Want(200)
		},
		"role lost": func(t *testing.T, owner string, _ machineToken) {
			admin.Patch("identities/"+owner, M{"adminRoles": []any{}}).Want(200)
		},
		"other address": func(t *testing.T, _ string, k machineToken) {
			admin.Patch("tokens/"+k.id, M{"from": []any{"192.0.2.0/24"}}).Want(200)
		},
		"forbidden": func(t *testing.T, owner string, _ machineToken) {
			policy := addPolicy(t, func(_, secondary M) {})
			admin.Patch("auth-policies/"+policy, M{"machineTokens": "forbid"}).Want(200)
			admin.Patch("identities/"+owner, M{"authPolicyId": policy}).Want(200)
		},
		"second factor": func(t *testing.T, owner string, k machineToken) {
			policy := addPolicy(t, func(_, secondary M) { secondary["requireTotp"] = true })
			admin.Patch("auth-policies/"+policy, M{"machineTokens": "allow"}).Want(200)
			admin.Patch("identities/"+owner, M{"authPolicyId": policy}).Want(200)
			k.as(t).Get("services").Want(200)
			admin.Patch("auth-policies/"+policy, M{"machineTokens": "auto"}).Want(200)
		},
	} {
		t.Run(name, func(t *testing.T) {
			owner, maker := holder(t, M{"adminRoles": []any{"viewer"}})
			admin.Patch("identities/"+owner, M{"adminRoles": []any{"viewer", "policy-author"}}).Want(200)
			k := newToken(t, maker, M{"roleId": "policy-author"})
			k.as(t).Get("services").Want(200)
			events := k.as(t).Stream("events")
			test(t, owner, k)
			k.as(t).Get("services").Fails(401, "UNAUTHORIZED", "")
			events.Ends("UNAUTHORIZED")
		})
	}
}

func TestTokenExpires(t *testing.T) {
	k := newToken(t, shared.Admin(t), M{"expiresAt": time.Now().Add(2 * time.Second)})
	servertest.Eventually(t, time.Minute, "the token ends", func() bool { return k.as(t).Get("services").Status == 401 })
}

// TestTokenForms shows tokens in ways that are none.
func TestTokenForms(t *testing.T) {
	k := newToken(t, shared.Admin(t), M{"roleId": "admin"})
	other := newToken(t, shared.Admin(t), nil)
	bearer := "Bearer " + k.secret
	last := "a"
	if strings.HasSuffix(k.secret, "a") {
		last = "b"
	}
	for name, c := range map[string]*servertest.Client{
		"two headers":     shared.Nobody(t).With("Authorization", bearer, bearer),
		"two tokens":      shared.Nobody(t).With("Authorization", bearer, "Bearer "+other.secret),
		"both names":      shared.Nobody(t).With("Authorization", bearer).With("Authentication", bearer),
		"with a session":  shared.Admin(t).With("Authorization", bearer),
		"a wrong session": shared.Nobody(t).With("Authorization", bearer).With("zt-session", "x"),
		"no scheme":       shared.Nobody(t).With("Authorization", k.secret),
		"another scheme":  shared.Nobody(t).With("Authorization", "Basic "+k.secret),
		"two words":       shared.Nobody(t).With("Authorization", bearer+" "+k.secret),
		"cut short":       shared.Nobody(t).With("Authorization", bearer[:len(bearer)-1]),
		"changed":         shared.Nobody(t).With("Authorization", bearer[:len(bearer)-1]+last),
		"prefix alone":    shared.Nobody(t).With("Authorization", "Bearer nkt_"),
		"as a session":    shared.Nobody(t).With("net-session", k.secret),
	} {
		t.Run(name, func(t *testing.T) { c.For(t).Get("services").Fails(401, "UNAUTHORIZED", "") })
	}
	k.as(t).Get("services").Want(200)
	for _, path := range []string{
		"current-api-session", "current-identity", "current-identity/mfa", "current-identity/authenticators",
		api.ClientRoot + "/services", api.ClientRoot + "/current-identity", api.ClientRoot + "/sessions",
	} {
		k.as(t).Get(path).Fails(401, "UNAUTHORIZED", "")
	}
	k.as(t).Delete(api.ClientRoot+"/services/x").Fails(401, "UNAUTHORIZED", "")
	k.as(t).Get("version").Want(200) // which is for everybody
}

// TestTokenRefused has bodies of which nothing is made.
func TestTokenRefused(t *testing.T) {
	admin := shared.Admin(t)
	totp := addPolicy(t, func(_, secondary M) { secondary["requireTotp"] = true })
	for name, test := range map[string]struct {
		change      M
		field, word string
	}{
		"past":           {M{"expiresAt": time.Now().Add(-time.Minute)}, "expiresAt", "future"},
		"too long":       {M{"expiresAt": time.Now().Add(400 * 24 * time.Hour)}, "expiresAt", "within a year"},
		"no end":         {M{"expiresAt": nil}, "expiresAt", ""},
		"bad range":      {M{"from": []any{"10.0.0.0/33"}}, "from", "10.0.0.0/8"},
		"a name":         {M{"from": []any{"example.com"}}, "from", ""},
		"part of range":  {M{"from": []any{"10.1.2.3/8"}}, "from", "the nearest is 10.0.0.0/8"},
		"unknown role":   {M{"roleId": "policy-auhtor"}, "roleId", "policy-author"},
		"unknown owner":  {M{"ownerId": "nobody"}, "ownerId", ""},
		"second factor":  {M{"ownerId": add(t, M{"authPolicyId": totp})}, "ownerId", "machineTokens"},
		"without a name": {M{"name": ""}, "name", ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := admin.For(t).Post("tokens", tokenBody(test.change))
			if a.Status/100 != 4 || !strings.Contains(string(a.Raw), test.field) || !strings.Contains(string(a.Raw), test.word) || strings.Contains(string(a.Raw), "nkt_") {
				t.Errorf("the answer is %d %s", a.Status, a.Raw)
			}
		})
	}
	k := newToken(t, admin, nil)
	for field, value := range map[string]any{
		"expiresAt": time.Now().Add(-time.Minute), "from": []any{"x"}, "ownerId": "",
	} {
		a := admin.Patch("tokens/"+k.id, M{field: value})
		if a.Status/100 != 4 {
			t.Errorf("%s: the answer is %d %s", field, a.Status, a.Raw)
		}
	}
}

// TestTokenPower has those make and change tokens who may not.
func TestTokenPower(t *testing.T) {
	admin := shared.Admin(t)
	author, c := holder(t, M{"adminRoles": []any{"policy-author"}})
	c.Post("tokens", tokenBody(M{"roleId": "admin"})).Fails(401, "UNAUTHORIZED", "")
	if a := c.Post("tokens", tokenBody(M{"roleId": "operator"})).Fails(401, "UNAUTHORIZED", ""); !strings.Contains(string(a.Raw), "give a role that you have all of, such as policy-author") {
		t.Errorf("it does not say which role it could have: %s", a.Raw)
	}
	boss, _ := holder(t, M{"isAdmin": true})
	c.Post("tokens", tokenBody(M{"roleId": "viewer", "ownerId": boss})).Fails(401, "UNAUTHORIZED", "")
	mine := newToken(t, c, M{"roleId": "policy-author"})
	c.Patch("tokens/"+mine.id, M{"roleId": "admin"}).Fails(401, "UNAUTHORIZED", "")
	c.Patch("tokens/"+mine.id, M{"ownerId": boss}).Fails(401, "UNAUTHORIZED", "")

	// The secret of a token makes no others, whatever the role allows.
	mine.as(t).Post("tokens", tokenBody(M{"ownerId": author})).Fails(401, "UNAUTHORIZED", "")
	mine.as(t).Patch("tokens/"+mine.id, M{"expiresAt": time.Now().Add(300 * 24 * time.Hour)}).Fails(401, "UNAUTHORIZED", "")

	// A token of somebody more powerful is out of reach, and one with nobody's login.
	whole := newToken(t, admin, M{"roleId": "admin", "ownerId": boss})
	c.Delete("tokens/"+whole.id).Fails(401, "UNAUTHORIZED", "")
	viewer, v := holder(t, M{"adminRoles": []any{"viewer"}})
	v.Post("tokens", tokenBody(nil)).Fails(401, "UNAUTHORIZED", "")
	v.Delete("tokens/"+mine.id).Fails(401, "UNAUTHORIZED", "")

	// What it can is what both its role and its owner can, now.
	k := newToken(t, admin, M{"roleId": "admin", "ownerId": viewer})
	k.as(t).Get("services").Want(200)
	k.as(t).Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Fails(401, "UNAUTHORIZED", "")
	k.as(t).Patch("identities/"+viewer, M{"isAdmin": true}).Fails(401, "UNAUTHORIZED", "")

	// An admin's token with less than all gives nobody more than it has.
	part := newToken(t, admin, M{"roleId": "helpdesk", "ownerId": boss})
	part.as(t).Post("identities", M{"name": servertest.Unique("identity"), "type": "User", "isAdmin": true}).Fails(401, "UNAUTHORIZED", "")
	part.as(t).Post("enrollments", M{"identityId": boss, "method": "ott", "expiresAt": time.Now().Add(time.Hour)}).Fails(401, "UNAUTHORIZED", "")

	// It is handed over by who may, and a token may revoke itself.
	admin.Patch("tokens/"+mine.id, M{"ownerId": boss}).Want(200)
	admin.Delete("identities/" + author).Want(200)
	mine.as(t).Get("services").Want(200)
	mine.as(t).Delete("tokens/" + mine.id).Want(200)
	mine.as(t).Get("services").Fails(401, "UNAUTHORIZED", "")
}

// TestTokenNowhere looks for secrets where they must not be.
func TestTokenNowhere(t *testing.T) {
	k := newToken(t, shared.Admin(t), nil)
	k.as(t).Get("services").Want(200)
	shared.Admin(t).Delete("tokens/" + k.id).Want(200)
	k.as(t).Get("services").Fails(401, "UNAUTHORIZED", "")
	entries := shared.Admin(t).Get(`audit-entries?limit=500&filter=targetId="` + k.id + `"`).Want(200)
	if len(entries.List()) < 2 {
		t.Errorf("there are %d entries of the token", len(entries.List()))
	}
	for what, text := range map[string]string{"audit log": string(entries.Raw)} {
		if strings.Contains(text, k.secret) || strings.Contains(text, k.secret[4:40]) {
			t.Errorf("the %s holds the secret", what)
		}
	}
}

// TestTokenSetsPassword has machines set passwords: that of somebody without power by one that
// may, which ends the session that rests on the old one, and that of an admin by nobody less.
func TestTokenSetsPassword(t *testing.T) {
	helpdesk := shared.Admin(t).Post("admin-roles", M{"name": servertest.Unique("desk"), "allows": []any{"authenticator:*", "identity:*"}}).Want(http.StatusCreated).ID()
	id := add(t, M{})
	username, authenticator := addPassword(t, id, "correct horse")
	password := "correct horse"
	for i, role := range []string{"admin", helpdesk} {
		k, before := newToken(t, shared.Admin(t), M{"roleId": role}), shared.Login(t, username, password)
		works(t, before)
		password = fmt.Sprint("battery staple ", i)
		k.as(t).Patch("authenticators/"+authenticator, M{"password": password}).Want(http.StatusOK)
		dead(t, before)
		works(t, shared.Login(t, username, password))
		k.as(t).Put("authenticators/"+authenticator, M{"username": username, "password": password}).Want(http.StatusOK)
	}
	boss := add(t, M{"isAdmin": true})
	username, authenticator = addPassword(t, boss, "correct horse")
	k := newToken(t, shared.Admin(t), M{"roleId": helpdesk})
	k.as(t).Patch("authenticators/"+authenticator, M{"password": "battery staple"}).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	k.as(t).Put("authenticators/"+authenticator, M{"username": username, "password": "battery staple"}).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	works(t, shared.Login(t, username, "correct horse"))
}

// TestTokenEverywhere has a machine with all power ask for everything that can be read:
// nothing takes for granted that whoever asks has a session.
func TestTokenEverywhere(t *testing.T) {
	id, _ := holder(t, M{"enrollment": M{"ott": true}})
	admin := shared.Admin(t)
	service := admin.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Want(201).ID()
	admin.Post("service-policies", M{
		"name": servertest.Unique("policy"), "type": "Dial", "semantic": "AnyOf", "identityRoles": []any{"@" + id}, "serviceRoles": []any{"@" + service},
	}).Want(201)
	session := enter(t, id).Get("current-api-session").Want(200).ID()
	err := shared.State().UpdateSessions(t.Context(), state.Program("test"), func(tx *state.Tx) error { // which takes a router otherwise
		return model.Sessions.Create(tx, &model.Session{APISessionID: session, IdentityID: id, ServiceID: service, Type: model.Dial})
	})
	if err != nil {
		t.Fatal(err)
	}
	all := newToken(t, admin, M{"roleId": "admin"}).as(t)
	asked := 0
	for name := range needs(shared) {
		method, path, _ := strings.Cut(name, " ")
		if method != http.MethodGet || strings.HasSuffix(path, "/events") || strings.HasPrefix(path, api.ClientRoot) {
			continue
		}
		ids := strings.NewReplacer("{identityId}", id, "{serviceId}", service, "{id}", id)
		if strings.Contains(path, "/services/{id}") {
			ids = strings.NewReplacer("{id}", service)
		}
		asked++
		if a := all.Get(ids.Replace(path)); a.Status == http.StatusUnauthorized || a.Status >= http.StatusInternalServerError {
			t.Errorf("%s answers %d: %s", name, a.Status, a.Raw)
		}
	}
	for _, list := range []string{"sessions", `sessions?filter=token="x"`, "api-sessions", `api-sessions?filter=token="x"`} {
		if a := all.Get(list).Want(http.StatusOK); !strings.Contains(list, "?") && a.Total() == 0 {
			t.Errorf("there are no %s, so that nothing was shown", list)
		}
	}
	if asked < 50 {
		t.Errorf("only %d operations were asked", asked)
	}
}
