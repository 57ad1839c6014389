package takeover_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/takeover/zitidb"
	"netkeep.internal/test/servertest"
	"netkeep.internal/test/zititest"
)

// TestOldSessions shows a session of the old controller wherever clients of OpenZiti 1.6.0 do
// until they notice that it has ended: they log in again on an answer of 401 with an error in
// JSON, and go on asking, with pauses that grow to minutes, on any other.
func TestOldSessions(t *testing.T) {
	for _, version := range zititest.Versions {
		t.Run(version, func(t *testing.T) {
			n := takeOver(t, version)
			c := n.Nobody(t)
			c.Token = n.facts.Facts.Session.Token
			if c.Token == "" {
				t.Fatal("nobody was logged in")
			}
			for _, r := range []*servertest.Answer{
				c.Get(client + "current-api-session"),
				c.Get(client + "current-api-session/service-updates"),
				c.Get(client + "current-identity"),
				c.Get(client + "services"),
				c.Get(client + "sessions/cmwjk96oa001dnj7dbbhm9icd"),
				c.Post(client+"sessions", M{"serviceId": n.lists["services"][0]["id"], "type": "Dial"}),
			} {
				r.Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
				if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
					t.Errorf("it is answered with %v: %s", r.Header, r.Raw)
				}
			}
		})
	}
}

// TestSessionsGoOn takes over sessions that are in use: what clients hold is good here, as
// long as what it rests on is there, and nothing that is of an admin, of somebody who is at the APIs
// alone, or of somebody who was not there for too long.
func TestSessionsGoOn(t *testing.T) {
	dir := zititest.Unpack(t, "1.6.0")
	const dave, alice, carol, admin, idle = "cmwjk96u0001fnj7djweg0jhs", "cmwjk96oa001dnj7dbbhm9icd", "cmwjk8rsg000fnj7d4r5xwr72", "cmwjk97gk001jnj7d5gus7h6g", "cmwjk95r00017nj7d36cpt6kb"
	for _, id := range []string{dave, alice, carol, admin} {
		zititest.Change(t, zititest.Database(dir), zititest.Put{Path: []string{"apiSessions", id}, Key: "lastActivityAt", Value: zititest.Time(t, time.Now().Add(-20*time.Minute))})
	}
	const hosted = "aHostOfDaves0000000001"
	router := zititest.Lists(t, "1.6.0")["edge-routers"][0]["id"].(string)
	for key, value := range map[string]string{"service": "6EsQRvuRrRALBIxFEWATTK", "router": router, "binding": "edge", "address": hosted, "hostId": "YGjFnfH9C"} {
		zititest.Change(t, zititest.Database(dir), zititest.Put{Path: []string{"terminators", hosted}, Key: key, Value: zititest.Text(value)})
	}
	zititest.Change(t, zititest.Database(dir), zititest.Put{Path: []string{"terminators", hosted}, Key: "createdAt", Value: zititest.Time(t, time.Now())})
	tokens, grants := map[string]string{}, map[string]string{}
	db, err := zitidb.Open(zititest.Database(dir))
	if err != nil {
		t.Fatal(err)
	}
	for s := range zitidb.APISessions.All(db) {
		tokens[s.ID] = s.Token
	}
	for s := range zitidb.Sessions.All(db) {
		if s.APISessionID == dave {
			grants[s.ID] = s.Token
		}
	}
	db.Close()
	n := takeOverFrom(t, dir, "1.6.0")
	c := n.Nobody(t)
	for id, name := range map[string]string{dave: "dave", alice: "alice"} {
		c.Token = tokens[id]
		if got := c.Get(client + "current-api-session").Want(http.StatusOK).Data(); got["id"] != id || got["token"] != tokens[id] {
			t.Errorf("the session of %s is %v", name, got)
		}
		if got := c.Get(client + "current-identity").Want(http.StatusOK).Data(); got["name"] != name {
			t.Errorf("%s is %v", name, got)
		}
	}
	for _, id := range []string{carol, admin, idle} {
		c.Token = tokens[id]
		c.Get(client+"current-api-session").Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	}
	c.Token = tokens[dave]
	if len(grants) == 0 {
		t.Error("there was nothing that dave may dial or host")
	}
	service := ""
	for id, token := range grants {
		got := c.Get(client + "sessions/" + id).Want(http.StatusOK).Data()
		if got["token"] != token {
			t.Errorf("a session to host is %v", got)
		}
		service = got["serviceId"].(string)
		if again := c.Post(client+"sessions", M{"serviceId": service, "type": "Bind"}).Want(http.StatusCreated).Data(); again["id"] != id || again["token"] != token {
			t.Errorf("asked for again, it is %v", again)
		}
	}

	// Hosts do not notice, and offer nothing anew.
	manager := n.admin(t)
	manager.Get("/edge/management/v1/terminators/" + hosted).Want(http.StatusOK)

	// They end with what they rest on, as all do.
	manager.Delete("/edge/management/v1/services/" + service).Want(http.StatusOK)
	left := 0
	for id := range grants {
		if c.Get(client+"sessions/"+id).Status == http.StatusOK {
			left++
		}
	}
	if left != len(grants)-1 {
		t.Errorf("%d sessions to host of %d are left without one of the services", left, len(grants))
	}
	manager.Delete("/edge/management/v1/authenticators/oasFnfHOy").Want(http.StatusOK)
	c.Token = tokens[alice]
	c.Get(client+"current-api-session").Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
}

// TestSessionsOfDevices has somebody whose session goes on use a service that asks for what their
// device reports: they reported it to the old controller, and do so again when they log in.
func TestSessionsOfDevices(t *testing.T) {
	dir := zititest.Unpack(t, "1.6.0")
	const alice = "cmwjk96oa001dnj7dbbhm9icd"
	zititest.Change(t, zititest.Database(dir), zititest.Put{Path: []string{"apiSessions", alice}, Key: "lastActivityAt", Value: zititest.Time(t, time.Now())})
	db, err := zitidb.Open(zititest.Database(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	n := takeOverFrom(t, dir, "1.6.0")
	c, manager := n.Nobody(t), n.admin(t)
	for s := range zitidb.APISessions.All(db) {
		if s.ID == alice {
			c.Token = s.Token
		}
	}
	const management = "/edge/management/v1/"
	make := func(path string, body M) string {
		return manager.Post(management+path, body).Want(http.StatusCreated).ID()
	}
	check := make("posture-checks", M{"name": "domain", "typeId": "DOMAIN", "domains": []string{"net.example"}})
	service := make("services", M{"name": "for devices", "encryptionRequired": true})
	make("service-policies", M{"name": "devices", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#all"}, "serviceRoles": []string{"@" + service}, "postureCheckRoles": []string{"@" + check}})
	c.Get(client + "current-api-session").Want(http.StatusOK)
	c.Post(client+"sessions", M{"serviceId": service, "type": "Dial"}).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	c.Get(client+"current-api-session").Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
}

// TestOldTokens shows a refresh token of the old controller, as clients of OpenZiti's Go SDK
// from 1.2.3 on do that had logged in by OpenID Connect: they log in again on an error whose
// name is a text, and on any other answer ask for a day, with pauses that grow to minutes.
func TestOldTokens(t *testing.T) {
	n := takeOver(t, "1.6.20", func(c *config.Config) { c.OIDC.Enabled = config.On })
	if n.facts.Facts.Refresh == "" {
		t.Fatal("nobody was logged in")
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: n.TLS(), DisableKeepAlives: true}, Timeout: time.Minute}
	resp, err := c.PostForm(n.URL+"/oidc/oauth/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "client_id": {"native"}, "subject_token": {n.facts.Facts.Refresh},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:refresh_token"}, "requested_token_type": {"urn:ietf:params:oauth:token-type:refresh_token"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var said struct {
		Error string `json:"error"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil || resp.StatusCode == http.StatusOK || said.Error != "invalid_grant" {
		t.Errorf("it is answered with %d and %q: %v", resp.StatusCode, said.Error, err)
	}
}

// TestOldClients names those in the plan who hold such tokens, and nobody else.
func TestOldClients(t *testing.T) {
	dir := zititest.Unpack(t, "1.6.20")
	ids := zititest.FactsOf(t, "1.6.20").IDs
	for id, version := range map[string]string{ids["alice"]: "v1.2.2", ids["bob"]: "v1.2.3", ids["dave"]: "1.2.4-patch1"} {
		zititest.Change(t, zititest.Database(dir),
			zititest.Put{Path: []string{"identities", id}, Key: "sdkInfoType", Value: zititest.Text("ziti-sdk-golang")},
			zititest.Put{Path: []string{"identities", id}, Key: "sdkInfoVersion", Value: zititest.Text(version)},
		)
	}
	code, out, errs := netkeep(t, "takeover", "--config", filepath.Join(dir, "ctrl.yml"), "--data", filepath.Join(t.TempDir(), "new"), "--plan")
	_, after, found := strings.Cut(out, "oidc.enabled")
	named, _, _ := strings.Cut(after, "\n\n")
	if code != 0 || !found || strings.Contains(named, ids["alice"]) || !strings.Contains(named, ids["bob"]) || !strings.Contains(named, ids["dave"]) {
		t.Errorf("it ended with %d and said %s %s", code, out, errs)
	}
}
