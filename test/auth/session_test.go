package auth_test

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

// login is a way in, with what is sent in the body.
type login func(t *testing.T, root string, body M) *servertest.Answer

// logins are all ways in, for one identity.
func logins(t *testing.T) (id string, all map[string]login) {
	t.Helper()
	id, leaf := certified(t, nil)
	password := servertest.Unique("password")
	username, _ := addPassword(t, id, password)
	return id, map[string]login{
		"password": func(t *testing.T, root string, body M) *servertest.Answer {
			body["username"], body["password"] = username, password
			return shared.Nobody(t).Post(root+byPassword, body)
		},
		"cert": func(t *testing.T, root string, body M) *servertest.Answer {
			return shared.Nobody(t).Presenting(leaf.with()).Post(root+byCert, body)
		},
		"ext-jwt": func(t *testing.T, root string, body M) *servertest.Answer {
			return shared.Nobody(t).With("Authorization", "Bearer "+house(t).token(t, M{"sub": id})).Post(root+byJWT, body)
		},
	}
}

// TestWhatClientsSay keeps what clients tell of themselves, however they log
// in.
func TestWhatClientsSay(t *testing.T) {
	id, all := logins(t)
	shown := func() []any {
		got := shared.Admin(t).Get("identities/" + id).Want(200).Data()
		return []any{got["envInfo"], got["sdkInfo"]}
	}
	for name, enter := range all {
		t.Run(name, func(t *testing.T) {
			env := M{"arch": name, "os": "linux", "osRelease": "6.1", "osVersion": "1", "hostname": "box", "domain": "example.org"}
			sdk := M{"appId": name, "appVersion": "1", "branch": "main", "revision": "r", "type": "go", "version": "2"}
			enter(t, "", M{"envInfo": env, "sdkInfo": sdk, "unheard": M{"of": 1}}).Want(200)
			if diff := cmp.Diff([]any{env, sdk}, shown()); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			enter(t, "", M{}).Want(200) // says nothing, changes nothing
			enter(t, "", M{"sdkInfo": M{"type": "c"}}).Want(200)
			if diff := cmp.Diff([]any{env, M{"type": "c"}}, shown()); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigTypes(t *testing.T) {
	id, all := logins(t)
	admin := shared.Admin(t)
	name := servertest.Unique("type")
	typ := admin.Post("config-types", M{"name": name}).Want(201).ID()
	for method, enter := range all {
		t.Run(method, func(t *testing.T) {
			both(t, func(t *testing.T, root string) {
				for _, test := range []struct{ asked, want []any }{
					{[]any{typ}, []any{typ}},
					{[]any{name}, []any{typ}},
					{[]any{name, typ, "unheard of"}, []any{typ}},
					{[]any{typ, "all"}, []any{"all"}},
					{[]any{}, []any{}},
				} {
					if method == "password" && len(test.asked) != 3 {
						continue // one is enough, since each takes a while
					}
					a := enter(t, root, M{"configTypes": test.asked}).Want(200)
					if diff := cmp.Diff(test.want, a.At("data.configTypes")); diff != "" {
						t.Errorf("asked for %v (-want +got):\n%s", test.asked, diff)
					}
					if got := a.At("data.identityId"); got != id {
						t.Errorf("the session is for %v", got)
					}
				}
			})
		})
	}
}

// TestEveryWayGivesASession looks at what each way in answers.
func TestEveryWayGivesASession(t *testing.T) {
	id, all := logins(t)
	for method, enter := range all {
		t.Run(method, func(t *testing.T) {
			both(t, func(t *testing.T, root string) {
				a := enter(t, root, M{}).Want(200)
				token, _ := a.At("data.token").(string)
				for _, header := range []string{"net-session", "zt-session"} {
					if a.Header.Get(header) != token {
						t.Errorf("header %s is not the token", header)
					}
					got := shared.Nobody(t).With(header, token).Get(root + session).Want(200)
					if got.At("data.identityId") != id || got.At("data.token") != token {
						t.Errorf("the session is %s", got.Raw)
					}
					if got.Header.Get("expiration-seconds") != "1800" || got.Header.Get("expires-at") == "" {
						t.Errorf("the headers are %v", got.Header)
					}
				}
				c := shared.Nobody(t).With("net-session", token).With("zt-session", token)
				c.Get(root + "current-identity").Want(200)
				c.Delete(root + session).Want(200)
				c.Get(root+session).Fails(401, "UNAUTHORIZED", "")
			})
		})
	}
}

// TestDisabledIdentity shuts every way in, and every session.
func TestDisabledIdentity(t *testing.T) {
	id, all := logins(t)
	admin := shared.Admin(t)
	var open []*servertest.Client
	for _, enter := range all {
		c := shared.Nobody(t)
		c.Token = enter(t, "", M{}).Want(200).Header.Get("net-session")
		open = append(open, c)
	}
	admin.Post("identities/"+id+"/disable", M{"durationMinutes": 30}).Want(200)
	if n := sessionsOf(id); n != 0 {
		t.Errorf("%d sessions are stored", n)
	}
	for _, c := range open {
		dead(t, c)
	}
	for _, enter := range all {
		enter(t, "", M{}).Fails(401, "INVALID_AUTH", "")
	}
	admin.Post("identities/"+id+"/enable", nil).Want(200)
	for _, enter := range all {
		enter(t, "", M{}).Want(200)
	}
}

// TestOthersTokens checks that nobody sees a token but its owner.
func TestOthersTokens(t *testing.T) {
	c := enter(t, add(t, nil))
	id := c.Get(session).ID()
	for _, a := range []*servertest.Answer{
		shared.Admin(t).Get("api-sessions/" + id), shared.Admin(t).Get(`api-sessions?filter=id%3D%22` + id + `%22`),
	} {
		a.Want(200)
		if got := a.At("data.token"); got != nil && got != "" {
			t.Errorf("an admin sees the token %v", got)
		}
	}
	shared.Admin(t).Get("api-sessions?filter=tokenHash%20%3D%20null").Fails(400, "INVALID_FILTER", "")
	// Filters may name the token, which only the session that asks has for them.
	token := c.Get(session).Data()["token"].(string)
	for filter, want := range map[string]int{`token="` + token + `"`: 0, `token contains "` + token[:2] + `" and id="` + id + `"`: 0, `token=null and id="` + id + `"`: 1} {
		if n := shared.Admin(t).Get("api-sessions?filter=" + url.QueryEscape(filter)).Want(200).Total(); n != want {
			t.Errorf("of %s an admin finds %d, want %d", filter, n, want)
		}
	}
	shared.Admin(t).Get("authenticators?filter=passwordHash%20%3D%20null").Fails(400, "INVALID_FILTER", "")
}
