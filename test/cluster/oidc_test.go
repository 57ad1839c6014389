package cluster_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/servertest"
)

// TestOIDCAnywhere logs in by OpenID Connect with each step at another controller. A
// code and a refresh token work once at all of them together, and tokens end
// everywhere when their session is gone at one.
func TestOIDCAnywhere(t *testing.T) {
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c); c.OIDC.Enabled = config.On }
	a := servertest.Start(t, use)
	b := closing(t, second(t, a, use))
	u := a.AddUser(t, false)
	ask := func(s *servertest.Server, method, path, token string, form url.Values) (int, http.Header, map[string]any) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		transport := &http.Transport{TLSClientConfig: s.TLS()}
		defer transport.CloseIdleConnections()
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return 0, nil, nil
		}
		defer resp.Body.Close()
		var said map[string]any
		_ = json.NewDecoder(resp.Body).Decode(&said)
		return resp.StatusCode, resp.Header, said
	}
	const redirect = "http://127.0.0.1:1/auth/callback"
	verifier := strings.Repeat("verifier", 6)
	sum := sha256.Sum256([]byte(verifier))
	// login takes all steps but the last, and returns what that sends.
	login := func() url.Values {
		t.Helper()
		_, h, _ := ask(a, "GET", "/oidc/authorize?"+url.Values{
			"client_id": {"openziti"}, "response_type": {"code"}, "scope": {"openid offline_access"}, "state": {"s"}, "redirect_uri": {redirect},
			"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		}.Encode(), "", nil)
		at, _ := url.Parse(h.Get("Location"))
		_, h, _ = ask(b, "POST", "/oidc/login/password", "", url.Values{"id": {at.Query().Get("authRequestID")}, "username": {u.Username}, "password": {u.Password}})
		_, h, _ = ask(a, "GET", h.Get("Location"), "", nil)
		at, _ = url.Parse(h.Get("Location"))
		return url.Values{"grant_type": {"authorization_code"}, "client_id": {"openziti"}, "code_verifier": {verifier}, "code": {at.Query().Get("code")}, "redirect_uri": {redirect}}
	}
	// race asks both controllers for the same, and returns the one good answer.
	race := func(form url.Values) map[string]any {
		t.Helper()
		var won atomic.Pointer[map[string]any]
		var all sync.WaitGroup
		for _, s := range []*servertest.Server{a, b} {
			all.Go(func() {
				if status, _, said := ask(s, "POST", "/oidc/oauth/token", "", form); status == http.StatusOK && won.Swap(&said) != nil {
					t.Error("both controllers gave out tokens")
				}
			})
		}
		all.Wait()
		if won.Load() == nil {
			t.Fatal("no controller gave out tokens")
		}
		return *won.Load()
	}
	got := race(login())
	// Who asked second had stolen it, for all that a controller can know.
	gone := func(token string) {
		t.Helper()
		for _, s := range []*servertest.Server{a, b} {
			servertest.Eventually(t, patience, "the end of a session everywhere", func() bool {
				status, _, _ := ask(s, "GET", client+"current-api-session", token, nil)
				return status == http.StatusUnauthorized
			})
		}
	}
	gone(got["access_token"].(string))
	_, _, got = ask(b, "POST", "/oidc/oauth/token", "", login())
	for _, s := range []*servertest.Server{a, b} {
		_, _, got = ask(s, "POST", "/oidc/oauth/token", "", url.Values{"grant_type": {"refresh_token"}, "client_id": {"openziti"}, "refresh_token": {got["refresh_token"].(string)}})
	}
	if status, _, _ := ask(a, "DELETE", client+"current-api-session", got["access_token"].(string), nil); status != http.StatusOK {
		t.Errorf("the session that was refreshed everywhere ends with %d", status)
	}
	gone(got["access_token"].(string))
}
