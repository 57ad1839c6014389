package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

func TestErrorEnvelope(t *testing.T) {
	c := shared.Admin(t)
	a := c.Post("identities", M{"name": "", "type": "User", "isAdmin": false}).Want(400)
	requestID, _ := a.At("error.requestId").(string)
	reason, _ := a.At("error.cause.reason").(string)
	message, _ := a.At("error.message").(string)
	want := M{
		"error": M{
			"code": "COULD_NOT_VALIDATE", "message": message, "requestId": requestID,
			"cause": M{"field": "name", "reason": reason, "value": ""},
		},
		"meta": M{"apiEnrollmentVersion": "0.0.1", "apiVersion": "0.0.1"},
	}
	if diff := cmp.Diff(want, a.JSON); diff != "" {
		t.Errorf("envelope differs (-want +got):\n%s", diff)
	}
	if message == "" || reason == "" || !ident.MatchString(requestID) {
		t.Errorf("message %q, reason %q, request id %q", message, reason, requestID)
	}
	if again := c.Get("nowhere").At("error.requestId"); again == requestID {
		t.Errorf("two requests have the id %v", again)
	}
	if !shared.Logged(requestID) {
		t.Errorf("the log does not have the request id %s", requestID)
	}
	absent := c.Post("identities", M{"type": "User", "isAdmin": false})
	if got := absent.At("error.cause.value"); got != "<nil>" {
		t.Errorf("the value of an absent member is %v", got)
	}
}

// TestErrorsRepeatLittle checks that an error does not send back what may be
// large or secret.
func TestErrorsRepeatLittle(t *testing.T) {
	c := shared.Admin(t)
	a := c.Post("identities", M{"name": strings.Repeat("x", 500_000), "type": "User", "isAdmin": false}).Want(400)
	if len(a.Raw) > 1000 {
		t.Errorf("the error has %d bytes", len(a.Raw))
	}
	secret := "hunt"
	a = c.Post("authenticate?method=password", M{"username": "admin", "password": secret}).
		Fails(400, "COULD_NOT_VALIDATE", "password")
	if strings.Contains(string(a.Raw), secret) {
		t.Errorf("the error repeats the password: %s", a.Raw)
	}
}

// TestAnswersAreNotKept asks for secrets, for errors and for public documents.
// The client of all tests looks at every answer; this says where it matters.
func TestAnswersAreNotKept(t *testing.T) {
	user, admin := shared.AddUser(t, false), shared.Admin(t)
	c := shared.Login(t, user.Username, user.Password)
	invited := admin.Post("identities", M{"name": servertest.Unique("invited"), "type": "User", "isAdmin": false, "enrollment": M{"ott": true}})
	for what, a := range map[string]*servertest.Answer{
		"a session token":      c.Get("current-api-session").Want(200),
		"an enrollment token":  admin.Get("identities/" + invited.Want(201).ID()).Want(200),
		"a new second factor":  c.Post("current-identity/mfa", nil).Want(201),
		"codes of the factor":  c.Get("current-identity/mfa").Want(200),
		"a picture of it":      c.Get("current-identity/mfa/qr-code").Want(200),
		"an error":             c.Get("identities").Want(401),
		"a path that is not":   c.Get("nowhere").Want(404),
		"the trust bundle":     c.Get("/.well-known/est/cacerts").Want(200),
		"a specification":      c.Get("specs/edge-client/spec").Want(200),
		"one's own invitation": shared.Nobody(t).Post("/enroll/ott?token=00000000-0000-4000-8000-000000000000", M{}).Want(400),
	} {
		if got := a.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control of %s is %q", what, got)
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	c := shared.Admin(t)
	for _, path := range []string{
		"nowhere", "identities/x/nowhere", "/nowhere", "/edge", "/edge/other/v1/version", "/edge/client/v1/identities",
		"/edge/client/v2/version", "/edge/management/v1x/version", "/fabric", "/fabric/v1/nowhere", "/fabric/v2/routers", "specs/nope", "specs/nope/spec",
	} {
		c.Get(path).Fails(404, "NOT_FOUND", "")
	}
	for _, method := range []string{"DELETE", "PUT", "TRACE", "FOO"} {
		c.Do(method, "identities", nil).Fails(405, "METHOD_NOT_ALLOWED", "")
	}
	c.Post("identities/x", M{}).Fails(405, "METHOD_NOT_ALLOWED", "")
	c.Post("version", M{}).Fails(405, "METHOD_NOT_ALLOWED", "")
}

func TestContentTypes(t *testing.T) {
	c := shared.Admin(t)
	body := func() M { return resourceAt("identities").least(t, c) }
	for _, good := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON"} {
		c.With("Content-Type", good).Post("identities", body()).Want(201)
	}
	for _, bad := range []string{"text/plain", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data", "json", ";;"} {
		c.With("Content-Type", bad).Post("identities", body()).Fails(400, "COULD_NOT_VALIDATE", "Content-Type")
	}
	c.With("Content-Type").Post("identities", body()).Fails(400, "COULD_NOT_VALIDATE", "Content-Type")
}

func TestMalformedBodies(t *testing.T) {
	c := shared.Admin(t)
	id := create(t, c, "identities", nil)
	name := servertest.Unique("malformed")
	least := fmt.Sprintf(`"name":%q,"type":"User","isAdmin":false`, name)
	for _, body := range []string{
		`{`, `}`, `[]`, `7`, `"text"`, `null`, `true`, `{"name"}`, `{'name':1}`, `{"a":1,}`, `{"a":1} {}`, `{"a":1}x`,
		`{"a":NaN}`, `{"a":01}`, "{\"a\":\"\x01\"}", "\xef\xbb\xbf{}", "{\"a\":\"\xff\"}", `{"a":"\ud800"}`,
		`{` + least + `,"name":"twice"}`,
		`{` + least + `,"tags":{"a":"1","a":"2"}}`,
		`{` + least + `,"appData":{"deep":[{"a":1,"a":2}]}}`,
		`{` + least + `,"appData":` + strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_000) + `}`,
		`{` + least + `,"unheardOf":` + strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000) + `}`,
	} {
		for _, a := range []*servertest.Answer{
			c.Post("identities", servertest.Raw(body)),
			c.Put("identities/"+id, servertest.Raw(body)),
			c.Patch("identities/"+id, servertest.Raw(body)),
		} {
			if a.Status != 400 || a.At("error.code") != "COULD_NOT_PARSE_BODY" {
				t.Errorf("body %.60q: status %d: %s", body, a.Status, a.Raw)
			}
		}
	}
	if n := c.Get("identities?filter=" + query(`name = "%s"`, name)).Total(); n != 0 {
		t.Errorf("a refused body left %d records", n)
	}
	for _, body := range []any{nil, servertest.Raw("")} {
		c.Post("identities", body).Fails(400, "COULD_NOT_VALIDATE", "body")
		c.Patch("identities/"+id, body).Fails(400, "COULD_NOT_VALIDATE", "body")
	}
}

// TestDeepBodies sends what is deep but still JSON: some of it is taken, and
// nothing makes a list that cannot be read.
func TestDeepBodies(t *testing.T) {
	c := shared.Admin(t)
	typ := create(t, c, "config-types", M{"schema": M{"type": "object", "properties": M{"a": M{"$ref": "#"}}}})
	for _, depth := range []int{50, 120, 130, 5000, 9990} {
		data := strings.Repeat(`{"a":`, depth) + `{"text":"[[[\"{{{\\"}` + strings.Repeat(`}`, depth)
		config := fmt.Sprintf(`{"name":%q,"configTypeId":%q,"data":%s}`, servertest.Unique("config"), typ, data)
		identity := fmt.Sprintf(`{"name":%q,"type":"User","isAdmin":false,"appData":%s}`, servertest.Unique("identity"), data)
		schema := fmt.Sprintf(`{"name":%q,"schema":%s}`, servertest.Unique("type"), strings.ReplaceAll(data, `"a"`, `"not"`))
		if depth <= 120 {
			c.Post("identities", servertest.Raw(identity)).Want(201)
		} else {
			c.Post("identities", servertest.Raw(identity)).Fails(400, "COULD_NOT_PARSE_BODY", "")
		}
		for path, body := range map[string]string{"configs": config, "config-types": schema} {
			// They have narrower limits of their own.
			if a := c.Post(path, servertest.Raw(body)); a.Status != 400 && depth > 50 {
				t.Errorf("%s, depth %d: status %d", path, depth, a.Status)
			}
		}
	}
	for _, path := range []string{"identities", "configs", "config-types"} {
		c.Get(path + "?limit=-1").Want(200)
	}
}

// TestRootAliases asks at the paths that older clients know.
func TestRootAliases(t *testing.T) {
	c := shared.Admin(t)
	want := c.Get("/edge/client/v1/version").Want(200)
	for _, path := range []string{
		"/", "/version", "/edge/v1/version", "/edge/v1", "/edge/v1/", "/edge/client/v1", "/edge/client/v1/",
		"/edge/management/v1", "/edge/management/v1/", "/edge/management/v1/version",
	} {
		if diff := cmp.Diff(want.JSON, c.Get(path).Want(200).JSON); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", path, diff)
		}
	}
	session := M{"username": servertest.Username, "password": servertest.Password}
	for _, path := range []string{"/authenticate", "/edge/v1/authenticate", "/edge/client/v1/authenticate"} {
		a := shared.Nobody(t).Post(path+"?method=password", session).Want(200)
		c := shared.Nobody(t)
		c.Token = a.Header.Get("net-session")
		c.Get("/current-api-session").Want(200)
		c.Get("identities").Want(200) // a session of one API is one of the other
	}
}

func TestVersion(t *testing.T) {
	data := shared.Nobody(t).Get("/version").Want(200).Data()
	place := func(root string) M {
		return M{"v1": M{"path": root, "apiBaseUrls": []any{shared.URL + root}, "version": api.Version}}
	}
	want := M{
		"edge": place(api.ClientRoot), "edge-client": place(api.ClientRoot), "edge-management": place(api.ManagementRoot),
	}
	if diff := cmp.Diff(want, data["apiVersions"]); diff != "" {
		t.Errorf("apiVersions differ (-want +got):\n%s", diff)
	}
	if text, _ := data["version"].(string); !regexp.MustCompile(`^v\d+\.\d+\.\d+$`).MatchString(text) {
		t.Errorf("version is %q", text)
	}
	for _, name := range []string{"revision", "buildDate", "runtimeVersion"} {
		if text, _ := data[name].(string); text == "" {
			t.Errorf("%s is empty", name)
		}
	}
	protocols := shared.Nobody(t).Get("/protocols").Want(200).Data()
	if diff := cmp.Diff(M{"https": M{"address": shared.Address()}}, protocols); diff != "" {
		t.Errorf("protocols differ (-want +got):\n%s", diff)
	}
}

func TestResponseHeaders(t *testing.T) {
	c := shared.Admin(t)
	var instance string
	for _, a := range []*servertest.Answer{
		c.Get("/version"), c.Get("identities"), c.Get("identities/nope"), c.Get("nowhere"), c.Post("services", M{}),
		c.Post("services", resourceAt("services").least(t, c)), shared.Nobody(t).Get("identities"),
	} {
		if got := a.Header.Values("Content-Type"); len(got) != 1 || got[0] != "application/json" {
			t.Errorf("status %d: content types %v", a.Status, got)
		}
		if got := a.Header.Get("Content-Length"); got != fmt.Sprint(len(a.Raw)) {
			t.Errorf("status %d: content length %q of %d bytes", a.Status, got, len(a.Raw))
		}
		id := a.Header.Get("ziti-instance-id")
		if id == "" || instance != "" && id != instance {
			t.Errorf("instance id %q follows %q", id, instance)
		}
		instance = id
		if a.Header.Get("ziti-ctrl-address") != "" {
			t.Error("the answer redirects to another controller")
		}
	}
	other := servertest.Start(t).Nobody(t).Get("/version").Header.Get("ziti-instance-id")
	if other == instance {
		t.Errorf("two processes have the instance id %s", other)
	}
	if got := c.Get("identities").Header.Get("expiration-seconds"); got != "1800" {
		t.Errorf("expiration-seconds is %q", got)
	}
	if got := c.Get("identities").Header.Get("expires-at"); !regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d.* \+0000 UTC$`).MatchString(got) {
		t.Errorf("expires-at is %q", got)
	}
}

func TestHead(t *testing.T) {
	c := shared.Admin(t)
	id := create(t, c, "identities", nil)
	for _, path := range []string{"/version", "identities/" + id, "identities/nope", "specs/edge-client/spec"} {
		get, head := c.Get(path), c.Do(http.MethodHead, path, nil)
		if head.Status != get.Status || len(head.Raw) != 0 {
			t.Errorf("%s: HEAD answers %d with %d bytes, GET %d", path, head.Status, len(head.Raw), get.Status)
		}
		for _, name := range []string{"Content-Type", "Content-Length"} {
			if head.Header.Get(name) != get.Header.Get(name) {
				t.Errorf("%s: %s is %q, that of GET %q", path, name, head.Header.Get(name), get.Header.Get(name))
			}
		}
	}
	c.Do(http.MethodHead, "authenticate", nil).Want(405)
}

func TestCORS(t *testing.T) {
	c := shared.Nobody(t).With("Origin", "https://console.example.org")
	for _, path := range []string{"identities", "/version", "nowhere"} {
		a := c.With("Access-Control-Request-Method", "POST").Do(http.MethodOptions, path, nil).Want(200)
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin":  "*",
			"Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
		} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		allowed := strings.ToLower(a.Header.Get("Access-Control-Allow-Headers"))
		for _, name := range []string{"content-type", "accept", "authorization", "net-session", "zt-session"} {
			if !strings.Contains(allowed, name) {
				t.Errorf("%s: header %s is not among %q", path, name, allowed)
			}
		}
		if got := a.Header.Get("Access-Control-Allow-Credentials"); got != "" {
			t.Errorf("%s: credentials are allowed: %q", path, got)
		}
	}
	if got := c.Get("/version").Header.Get("Access-Control-Allow-Origin"); got != "*" {
		t.Errorf("a simple request allows the origin %q", got)
	}
	shared.Nobody(t).Do(http.MethodOptions, "identities", nil).Want(200)
}
