package oidc

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/model"
)

// FuzzRequest sends anything to anything below the root. Nobody is let in by that,
// nothing is opened, and what is wrong is never our fault.
func FuzzRequest(f *testing.F) {
	w := newWorld(f)
	id := w.begin()
	const form, text = "application/x-www-form-urlencoded", "application/json"
	for _, at := range []string{"/login/username", "/login/cert", "/login/ext-jwt", "/login/totp", "/login/totp/enroll", "/login/totp/enroll/verify"} {
		f.Add("POST", at, form, "id="+id+"&username=somebody&password=wrong&code=123456")
		f.Add("POST", at+"?authRequestID="+id, text, `{"id":"`+id+`","username":"somebody","password":"wrong","code":"1","configTypes":["all"],"envInfo":{"os":"linux"}}`)
	}
	f.Add("GET", "/authorize?client_id=native&response_type=code&scope=openid&redirect_uri=http://localhost/auth/callback&code_challenge_method=S256&code_challenge="+strings.Repeat("c", 43), form, "")
	f.Add("POST", "/oauth/token", form, "grant_type=authorization_code&client_id=native&code="+id+"&code_verifier="+w.verifier)
	f.Add("POST", "/oauth/token", form, "grant_type=refresh_token&client_id=native&refresh_token=nkr-x.1.y")
	f.Add("POST", "/oauth/token", form, "grant_type=urn:ietf:params:oauth:grant-type:token-exchange&client_id=native&subject_token=x&subject_token_type=urn:ietf:params:oauth:token-type:refresh_token")
	f.Add("POST", "/revoke", form, "client_id=native&token=nkr-x.1.y")
	f.Add("POST", "/end_session", form, "id_token_hint=e30.e30.x")
	f.Add("GET", "/authorize/callback?id="+id, form, "")
	f.Add("GET", "/.well-known/openid-configuration", form, "")
	f.Fuzz(func(t *testing.T, method, at, kind, body string) {
		u, err := url.ParseRequestURI(Root + at)
		if err != nil || u.Host != "" || !slices.Contains([]string{"GET", "POST", "PUT"}, method) || strings.Contains(body+at, itsPassword) {
			return
		}
		out := w.sendBody(method, u.RequestURI(), kind, body)
		if out.Code == http.StatusInternalServerError {
			t.Errorf("%s %s with %q is answered with %d: %s", method, at, body, out.Code, out.Body)
		}
		if strings.Contains(out.Body.String(), "access_token") {
			t.Errorf("%s %s with %q gets a token: %s", method, at, body, out.Body)
		}
		if to, err := url.Parse(out.Header().Get("Location")); err != nil || to.IsAbs() || to.Host != "" {
			t.Errorf("%s %s leads away from here, to %q", method, at, out.Header().Get("Location"))
		}
		for one := range model.APISessions.All(w.State.Snapshot()) {
			t.Errorf("%s %s with %q has opened session %s", method, at, body, one.ID)
		}
	})
}

// FuzzReturn checks that nobody is sent to another machine.
func FuzzReturn(f *testing.F) {
	for _, one := range []string{
		itsRedirect, "openziti://auth/callback", "https://[::1]:8080/auth/callback", "http://localhost@example.com/auth/callback", "http://localhost:80@example.com/auth/callback",
		"http://localhost\\@example.com/auth/callback", "//localhost/auth/callback", "http:localhost/auth/callback", "http://127.0.0.1%2eexample.com/auth/callback",
		"http://localhost/auth/callback#x", "http://localhost/%61uth/callback", "http://LOCALHOST/auth/callback", "http://localhost:/auth/callback",
	} {
		f.Add(one)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if !mayReturn(address) || address == "openziti://auth/callback" {
			return
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatalf("%q may be returned to and is no address: %v", address, err)
		}
		if host := u.Hostname(); host != "localhost" && host != "127.0.0.1" && host != "::1" {
			t.Errorf("%q may be returned to, at %q", address, host)
		}
		if strings.ContainsAny(address, "\\@#? \t\r\n") {
			t.Errorf("%q may be returned to, which others may read otherwise", address)
		}
	})
}

// FuzzAccess changes an access token: nothing counts but what was signed.
func FuzzAccess(f *testing.F) {
	w := newWorld(f)
	good := w.enter().Access
	part := strings.Split(good, ".")
	for _, one := range []string{good, part[0] + "." + part[1] + ".", "eyJhbGciOiJub25lIn0." + part[1] + ".", part[0] + "." + part[1] + "." + part[2] + "=", "nkr-" + good, "..", good + "="} {
		f.Add(one)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, _, ok := w.Sessions.ReadRefresh(text); ok && text != good {
			t.Errorf("%q is taken for a refresh token", text)
		}
	})
}
