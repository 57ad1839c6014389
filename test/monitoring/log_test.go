package monitoring_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"netkeep.internal/test/servertest"
)

// TestRequestLine finds one line for each request, with all that there is to
// say of it.
func TestRequestLine(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	me := admin.Get("current-identity").Want(http.StatusOK).ID()
	refused := s.Nobody(t).Get("services")
	refused.Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	s.Nobody(t).Get("/nowhere").Want(http.StatusNotFound)
	read := admin.Get("config-types").Want(http.StatusOK)
	servertest.Eventually(t, soon, "the line of the last request", func() bool { return s.Logged(`"operation":"listConfigTypes"`) })
	lines := map[string]M{}
	for _, line := range s.Log() {
		var fields M
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if fields["msg"] == "request" {
			name := fields["operation"].(string)
			if lines[name] != nil && name != "detailSpecBody" {
				t.Errorf("two lines for one request: %s", line)
			}
			lines[name] = fields
		}
	}
	for name, want := range map[string]M{
		"listConfigTypes": {"api": "edge-management", "by": "identity:" + me, "status": 200.0, "bytes": float64(len(read.Raw))},
		"listServices":    {"api": "edge-management", "by": "anonymous", "status": 401.0, "bytes": float64(len(refused.Raw)), "request": refused.At("error.requestId")},
		"unknown":         {"api": "edge-client", "by": "anonymous", "status": 404.0},
	} {
		line := lines[name]
		for key, value := range want {
			if line[key] != value {
				t.Errorf("%s: %s is %v, want %v", name, key, line[key], value)
			}
		}
		if ms, _ := line["ms"].(float64); ms <= 0 || ms > 60_000 || strings.TrimSpace(line["request"].(string)) == "" {
			t.Errorf("%s: it took %v ms, request %v", name, line["ms"], line["request"])
		}
		if line["from"] != "127.0.0.1" {
			t.Errorf("%s: it is from %v", name, line["from"])
		}
	}
}

// TestWhoIsLogged shows that the log of requests tells who came in, who tried
// to, and what was changed.
func TestWhoIsLogged(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	me := admin.Get("current-identity").Want(http.StatusOK).ID()
	phone := admin.Post("identities", M{"name": "phone", "type": "Device", "isAdmin": false, "enrollment": M{"updb": "phone-user"}}).Want(http.StatusCreated).ID()
	admin.Patch("identities/"+phone, M{"name": "phone 2"}).Want(http.StatusOK)
	token := admin.Get("identities/" + phone).At("data.enrollment.updb.token").(string)
	s.Nobody(t).Post("/edge/client/v1/enroll/updb?token="+token, M{"username": "phone-user", "password": "a password of its own"}).Want(http.StatusOK)
	s.Nobody(t).Post("authenticate?method=password", M{"username": "somebody else", "password": "a wrong password"}).Want(http.StatusUnauthorized)
	for operation, want := range map[string]M{
		"createIdentity": {"by": "identity:" + me, "target": phone},
		"patchIdentity":  {"by": "identity:" + me, "target": phone},
		"enrollUpdb":     {"by": "identity:" + phone, "name": "phone 2"},
		"authenticate":   {"by": "anonymous", "tried": "somebody else"},
	} {
		var line M
		servertest.Eventually(t, soon, "the line of "+operation, func() bool {
			line = lastLine(t, s, operation)
			return line != nil
		})
		for key, value := range want {
			if line[key] != value {
				t.Errorf("%s: %s is %v, want %v", operation, key, line[key], value)
			}
		}
	}
	s.Login(t, "phone-user", "a password of its own")
	servertest.Eventually(t, soon, "the line of a login", func() bool { return lastLine(t, s, "authenticate")["by"] == "identity:"+phone })
}

// lastLine is the last line of an operation, nil if there is none.
func lastLine(t *testing.T, s *servertest.Server, operation string) (last M) {
	t.Helper()
	for _, line := range s.Log() {
		var fields M
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if fields["msg"] == "request" && fields["operation"] == operation {
			last = fields
		}
	}
	return last
}
