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

// TestOldTokens shows a refresh token of the old controller, as clients of OpenZiti's Go SDK
// from 1.2.3 on do that had logged in by OpenID Connect: they log in again on an error whose
// name is a text, and on any other answer ask for a day, with pauses that grow to minutes.
func TestOldTokens(t *testing.T) {
	n := takeOver(t, "1.6.20", func(c *config.Config) { c.OIDC.Enabled = true })
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
