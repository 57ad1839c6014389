package servertest

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// Bear logs somebody in by OpenID Connect. The client that it returns shows its access
// token.
func (s *Server) Bear(t testing.TB, u User) *Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: s.TLS()}
	defer transport.CloseIdleConnections()
	send := func(method, at string, form url.Values) (*url.URL, []byte) {
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+at, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		next, err := url.Parse(resp.Header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		return next, text
	}
	const redirect = "http://localhost:1/auth/callback"
	verifier := strings.Repeat("verifier", 6)
	sum := sha256.Sum256([]byte(verifier))
	begun, _ := send("GET", "/oidc/authorize?"+url.Values{
		"client_id": {"openziti"}, "response_type": {"code"}, "scope": {"openid offline_access"}, "redirect_uri": {redirect},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}.Encode(), nil)
	shown, _ := send("POST", "/oidc/login/username", url.Values{"id": {begun.Query().Get("authRequestID")}, "username": {u.Username}, "password": {u.Password}})
	landed, _ := send("GET", shown.String(), nil)
	_, text := send("POST", "/oidc/oauth/token", url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"openziti"}, "code_verifier": {verifier}, "redirect_uri": {redirect}, "code": {landed.Query().Get("code")},
	})
	var got struct {
		Access string `json:"access_token"`
	}
	if err := json.Unmarshal(text, &got); err != nil || got.Access == "" {
		t.Fatalf("there are no tokens: %s", text)
	}
	return s.Nobody(t).With("Authorization", "Bearer "+got.Access)
}
