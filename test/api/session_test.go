package api_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/test/servertest"
)

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

const login = "authenticate?method=password"

func TestAuthenticate(t *testing.T) {
	user := shared.AddUser(t, false)
	for _, root := range []string{"", "/edge/client/v1/"} {
		a := shared.Nobody(t).Post(root+login, M{"username": user.Username, "password": user.Password}).Want(200)
		data := a.Data()
		token, _ := data["token"].(string)
		if !uuid.MatchString(token) {
			t.Errorf("token is %q", token)
		}
		for _, name := range []string{"net-session", "zt-session"} {
			if got := a.Header.Get(name); got != token {
				t.Errorf("header %s is %q, want the token", name, got)
			}
		}
		if got := a.Header.Get("expiration-seconds"); got != "1800" {
			t.Errorf("expiration-seconds is %q", got)
		}
		id, _ := data["id"].(string)
		if len(id) != 25 || id[0] != 'c' {
			t.Errorf("session id is %q", id)
		}
		want := M{
			"identityId": user.ID, "ipAddress": "127.0.0.1", "authQueries": []any{}, "configTypes": []any{},
			"isMfaRequired": false, "isMfaComplete": false, "expirationSeconds": 1800.0, "tags": M{},
			"identity": M{
				"_links": M{"self": M{"href": "./identities/" + user.ID}},
				"entity": "identities", "id": user.ID, "name": user.Username,
			},
		}
		for name, value := range want {
			if diff := cmp.Diff(value, data[name]); diff != "" {
				t.Errorf("%s differs (-want +got):\n%s", name, diff)
			}
		}
		checkExpiry(t, data)
	}
}

// checkExpiry compares the times of a session with each other.
func checkExpiry(t *testing.T, session M) {
	t.Helper()
	moment := func(name string) time.Time {
		at, err := time.Parse(time.RFC3339, session[name].(string))
		if err != nil {
			t.Error(err)
		}
		return at
	}
	if got := moment("expiresAt").Sub(moment("cachedLastActivityAt")); got != 30*time.Minute {
		t.Errorf("the session ends %s after its last activity", got)
	}
	if moment("cachedLastActivityAt").Before(moment("createdAt")) {
		t.Error("the last activity is before the beginning")
	}
}

// TestWrongCredentials checks that nothing tells apart what was wrong.
func TestWrongCredentials(t *testing.T) {
	c := shared.Nobody(t)
	user := shared.AddUser(t, false)
	shape := func(a *servertest.Answer) string {
		a.Fails(401, "INVALID_AUTH", "")
		id := a.At("error.requestId").(string)
		return strings.ReplaceAll(string(a.Raw), id, "")
	}
	wrong := shape(c.Post(login, M{"username": user.Username, "password": "not the password"}))
	for _, body := range []M{
		{"username": servertest.Unique("nobody"), "password": user.Password},
		{"username": strings.ToUpper(user.Username), "password": user.Password},
		{"username": user.Username, "password": user.Password + " "},
		{"username": user.Username, "password": strings.ToLower(user.Password)},
	} {
		if got := shape(c.Post(login, body)); got != wrong {
			t.Errorf("%v: answer %s differs from %s", body, got, wrong)
		}
	}
}

func TestAuthenticateBodies(t *testing.T) {
	c := shared.Nobody(t)
	for _, test := range []struct {
		body        any
		code, field string
	}{
		{M{"password": "long enough"}, "COULD_NOT_VALIDATE", "username"},
		{M{"username": "long enough"}, "COULD_NOT_VALIDATE", "password"},
		{M{}, "COULD_NOT_VALIDATE", "username"},
		{nil, "COULD_NOT_VALIDATE", "username"},
		{M{"username": "abc", "password": "long enough"}, "COULD_NOT_VALIDATE", "username"},
		{M{"username": "long enough", "password": "abcd"}, "COULD_NOT_VALIDATE", "password"},
		{M{"username": strings.Repeat("x", 101), "password": "long enough"}, "COULD_NOT_VALIDATE", "username"},
		{M{"username": "long enough", "password": strings.Repeat("x", 101)}, "COULD_NOT_VALIDATE", "password"},
		{M{"username": 7, "password": "long enough"}, "COULD_NOT_PARSE_BODY", "username"},
		{M{"username": "long enough", "password": []any{}}, "COULD_NOT_PARSE_BODY", "password"},
		{servertest.Raw("{"), "COULD_NOT_PARSE_BODY", ""},
	} {
		c.Post(login, test.body).Fails(400, test.code, test.field)
	}
	good := M{"username": servertest.Username, "password": servertest.Password}
	for _, method := range []string{"", "?method=", "?method=nope", "?method=Password", "?method=updb"} {
		c.Post("authenticate"+method, good).Fails(400, "COULD_NOT_VALIDATE", "method")
	}
}

func TestAuthenticateKeepsWhatClientsSay(t *testing.T) {
	user := shared.AddUser(t, false)
	env := M{"arch": "amd64", "os": "linux", "osRelease": "6.1", "osVersion": "1", "hostname": "box", "domain": "example.org"}
	sdk := M{"appId": "app", "appVersion": "1", "branch": "main", "revision": "r", "type": "go", "version": "2"}
	body := M{"username": user.Username, "password": user.Password, "envInfo": env, "sdkInfo": sdk}
	before := shared.Admin(t).Get("identities/" + user.ID).Data()
	shared.Nobody(t).Post(login, body).Want(200)
	shared.Login(t, user.Username, user.Password) // says nothing, changes nothing
	got := shared.Admin(t).Get("identities/" + user.ID).Data()
	if diff := cmp.Diff([]any{env, sdk}, []any{got["envInfo"], got["sdkInfo"]}); diff != "" {
		t.Errorf("environment differs (-want +got):\n%s", diff)
	}
	if got["hasApiSession"] != true {
		t.Error("hasApiSession is not true")
	}
	if got["updatedAt"] != before["updatedAt"] {
		t.Error("a login changed the identity")
	}
	// It goes with the identity, which is nothing to tell an admin.
	plan := list(change("delete", "identity", user.ID, nil))
	for _, c := range shared.Admin(t).Post("changes?plan=true", plan).Want(200).Data()["consequences"].([]any) {
		if c.(M)["kind"] != "authenticator" {
			t.Errorf("a consequence is %v", c)
		}
	}
	shared.Admin(t).Delete("identities/" + user.ID).Want(200)
	if _, still := model.ClientInfos.Get(shared.State().Snapshot(), user.ID); still {
		t.Error("what the client said outlives its identity")
	}
}

func TestAuthenticateConfigTypes(t *testing.T) {
	c := shared.Admin(t)
	typ := resourceAt("config-types").least(t, c)
	id := c.Post("config-types", typ).Want(201).ID()
	for _, test := range []struct{ asked, want []any }{
		{[]any{id}, []any{id}},
		{[]any{typ["name"], id, "unheard of"}, []any{id}},
		{[]any{"host.v1", id}, []any{"NH5p4FpGR", id}},
		{[]any{id, "all"}, []any{"all"}},
		{[]any{}, []any{}},
	} {
		body := M{"username": servertest.Username, "password": servertest.Password, "configTypes": test.asked}
		got := shared.Nobody(t).Post(login, body).Want(200).At("data.configTypes")
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("asked for %v (-want +got):\n%s", test.asked, diff)
		}
	}
}

func TestSessionHeaders(t *testing.T) {
	c := shared.Nobody(t)
	user := shared.AddUser(t, false)
	token, other := shared.Login(t, user.Username, user.Password).Token, shared.Login(t, user.Username, user.Password).Token
	const path = "current-api-session"
	c.With("net-session", token).Get(path).Want(200)
	c.With("zt-session", token).Get(path).Want(200)
	c.With("net-session", token).With("zt-session", token).Get(path).Want(200)

	c.Get(path).Fails(401, "UNAUTHORIZED", "")
	c.With("net-session", token).With("zt-session", other).Get(path).Fails(401, "UNAUTHORIZED", "")
	c.With("zt-session", token).With("net-session", other).Get(path).Fails(401, "UNAUTHORIZED", "")
	c.With("net-session", token, other).Get(path).Fails(401, "UNAUTHORIZED", "")
	c.With("Authorization", "Bearer "+token).Get(path).Fails(401, "UNAUTHORIZED", "")
	c.With("Cookie", "net-session="+token).Get(path).Fails(401, "UNAUTHORIZED", "")
	for _, bad := range []string{"x", token[1:], token + "0", strings.ToUpper(token), "00000000-0000-4000-8000-000000000000"} {
		refused := c.With("net-session", bad).Get(path)
		refused.Fails(401, "UNAUTHORIZED", "")
		if strings.Contains(string(refused.Raw), "carries no session token") {
			t.Errorf("with the token %q it is said that there is none", bad)
		}
		c.With("net-session", bad).Get("/version").Want(200) // needs no session, and so does not mind
	}
}

func TestCurrentSession(t *testing.T) {
	c := shared.Admin(t)
	first := c.Get("current-api-session").Want(200).Data()
	if first["token"] != c.Token {
		t.Errorf("token is %v", first["token"])
	}
	checkExpiry(t, first)
	servertest.Eventually(t, waitTime, "activity of the session", func() bool {
		next := c.Get("/edge/client/v1/current-api-session").Want(200).Data()
		return next["cachedLastActivityAt"].(string) > first["cachedLastActivityAt"].(string) &&
			next["expiresAt"].(string) > first["expiresAt"].(string)
	})
}

func TestLogout(t *testing.T) {
	user := shared.AddUser(t, false)
	c, other := shared.Login(t, user.Username, user.Password), shared.Login(t, user.Username, user.Password)
	a := c.Delete("current-api-session").Want(200)
	if diff := cmp.Diff(M{"data": M{}, "meta": M{}}, a.JSON); diff != "" {
		t.Errorf("answer differs (-want +got):\n%s", diff)
	}
	c.Get("current-api-session").Fails(401, "UNAUTHORIZED", "")
	c.Delete("current-api-session").Fails(401, "UNAUTHORIZED", "")
	other.Get("current-api-session").Want(200)
}

func TestDeletedIdentityLosesItsSession(t *testing.T) {
	user := shared.AddUser(t, true)
	c := shared.Login(t, user.Username, user.Password)
	c.Get("identities").Want(200)
	c.Delete("identities/" + user.ID).Want(200)
	c.Get("identities").Fails(401, "UNAUTHORIZED", "")
	c.Get("current-api-session").Fails(401, "UNAUTHORIZED", "")
	c.Post(login, M{"username": user.Username, "password": user.Password}).Fails(401, "INVALID_AUTH", "")
}

func TestDisabledIdentityLosesItsSession(t *testing.T) {
	user := shared.AddUser(t, true)
	c := shared.Login(t, user.Username, user.Password)
	disable := func(at, until *time.Time) {
		t.Helper()
		err := shared.State().Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
			return model.Identities.Edit(tx, user.ID, func(i *model.Identity) error {
				i.DisabledAt, i.DisabledUntil = at, until
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	past, future := now.Add(-time.Minute), now.Add(time.Hour)
	for _, until := range []*time.Time{nil, &future} {
		disable(&past, until)
		c.Get("identities").Fails(401, "UNAUTHORIZED", "")
		c.Post(login, M{"username": user.Username, "password": user.Password}).Fails(401, "INVALID_AUTH", "")
		if got := shared.Admin(t).Get("identities/" + user.ID).At("data.disabled"); got != true {
			t.Errorf("disabled is %v", got)
		}
	}
	disable(&past, &past)
	shared.Login(t, user.Username, user.Password).Get("identities").Want(200)
}

// TestDisabledForLong disables for more minutes than fit into nanoseconds.
func TestDisabledForLong(t *testing.T) {
	admin, user := shared.Admin(t), shared.AddUser(t, false)
	for minutes, ends := range map[int]bool{
		1: true, 52_560_000: true, 52_560_001: false, 153_722_868: false, 200_000_000: false, 1 << 53: false, 0: false, -200_000_000: false,
	} {
		admin.Post("identities/"+user.ID+"/disable", M{"durationMinutes": minutes}).Want(200)
		got := admin.Get("identities/" + user.ID).Want(200).Data()
		if _, until := got["disabledUntil"]; got["disabled"] != true || until != ends {
			t.Errorf("disabled for %d minutes: disabled is %v, disabledUntil %v", minutes, got["disabled"], got["disabledUntil"])
		}
		shared.Nobody(t).Post(login, M{"username": user.Username, "password": user.Password}).Fails(401, "INVALID_AUTH", "")
	}
	admin.Post("identities/"+user.ID+"/enable", nil).Want(200)
	shared.Login(t, user.Username, user.Password)
}

// TestRightsFollowTheIdentity changes what a live session may do.
func TestRightsFollowTheIdentity(t *testing.T) {
	admin, user := shared.Admin(t), shared.AddUser(t, false)
	c := shared.Login(t, user.Username, user.Password)
	c.Get("identities").Fails(401, "UNAUTHORIZED", "")
	admin.Patch("identities/"+user.ID, M{"isAdmin": true}).Want(200)
	c.Get("identities").Want(200)
	admin.Patch("identities/"+user.ID, M{"isAdmin": false}).Want(200)
	c.Get("identities").Fails(401, "UNAUTHORIZED", "")
}
