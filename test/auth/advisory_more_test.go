package auth_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/machine"
)

// A body without an end was read into memory before anybody asked who had sent
// it, by every operation that takes one. Forms are bodies too.
func TestGHSA_j952_6x8x_jmj6(t *testing.T) {
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: shared.TLS(), ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	asked := 0
	ask := func(method, path, contentType string) {
		asked++
		body := &endless{}
		req, err := http.NewRequestWithContext(t.Context(), method, shared.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", contentType)
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
			return
		}
		_ = resp.Body.Close()
		// The console sends a stranger to its login, with nothing of the body read.
		if toLogin := strings.HasPrefix(resp.Header.Get("Location"), "/console/login"); !toLogin && (resp.StatusCode < 400 || resp.StatusCode >= 500) {
			t.Errorf("%s %s: status %d", method, path, resp.StatusCode)
		}
		// What it lets on the way to it at once, which the system's buffers are.
		if got := body.taken.Load(); got > 8<<20 {
			t.Errorf("%s %s: %d bytes were taken from a stranger", method, path, got)
		}
	}
	for _, root := range []string{api.ClientRoot, api.ManagementRoot, api.FabricRoot} {
		for name, op := range shared.Operations(root) {
			if op.RequestBody == nil {
				continue
			}
			method, path, _ := strings.Cut(strings.NewReplacer("{", "", "}", "").Replace(name), " ")
			ask(method, path, "application/json")
		}
	}
	if asked < 100 {
		t.Errorf("only %d operations were asked", asked)
	}
	for _, path := range []string{
		"/oidc/oauth/token", "/oidc/revoke", "/oidc/end_session", "/oidc/authorize", "/oidc/login/username", "/oidc/login/cert", "/oidc/login/ext-jwt",
		"/oidc/login/totp", "/oidc/login/totp/enroll", "/oidc/login/totp/enroll/verify",
		"/console/login", "/console/code", "/console/provider", "/console/services/new", "/console/invite",
	} {
		ask(http.MethodPost, path, "application/x-www-form-urlencoded")
	}
}

// endless is a body that goes on as long as somebody reads.
type endless struct{ taken atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.taken.Add(int64(len(p)))
	return len(p), nil
}

// A time that was missing in what a device reported ended the server.
func TestGHSA_354c_gpg9_j988(t *testing.T) {
	c := enter(t, add(t, nil))
	reports := []M{
		{"typeId": "OS", "type": "Linux", "version": "5.4.0", "build": "1"},
		{"typeId": "DOMAIN", "domain": "corp.example"},
		{"typeId": "MAC", "macAddresses": []any{"01:23:45:67:89:ab"}},
		{"typeId": "PROCESS", "path": "/bin/agent", "isRunning": true, "hash": "aa", "signerFingerprints": []any{"bb"}},
		{"typeId": "ENDPOINT_STATE", "woken": true, "unlocked": true},
		{"typeId": "ENDPOINT_STATE", "woken": "2026-01-02T03:04:05Z", "unlocked": "2026-01-02T03:04:05Z"},
		{"typeId": "ENDPOINT_STATE", "woken": M{"time": "2026-01-02T03:04:05Z"}, "time": "2026-01-02T03:04:05Z"},
	}
	instead := []any{nil, "", "0001-01-01T00:00:00Z", "9999-99-99", 0, -1, 1e300, false, M{}, []any{}, []any{nil}, M{"time": nil}}
	send := func(report M) {
		body := M{"id": "check"}
		for name, value := range report {
			body[name] = value
		}
		for path, body := range map[string]any{"posture-response": body, "posture-response-bulk": []any{body, nil, body}} {
			// The client sees to it that no answer is the server's failure.
			if a := c.Post(api.ClientRoot+"/"+path, body); a.Status == 0 {
				t.Fatalf("%v ended it", report)
			}
		}
	}
	for _, report := range reports {
		send(report)
		for name := range report {
			for _, value := range instead {
				changed := M{}
				for n, v := range report {
					changed[n] = v
				}
				changed[name] = value
				send(changed)
				delete(changed, name)
				send(changed)
			}
		}
	}
	works(t, c)
}

// A filter of 101 terms was answered after ten seconds, with a failure, and kept
// a processor busy for ever.
func TestFilterOfManyTerms(t *testing.T) {
	c := shared.Admin(t)
	filter := func(n int, word, term string) string {
		return "identities?filter=" + url.QueryEscape(strings.TrimSuffix(strings.Repeat(term+word, n), word))
	}
	c.Get(filter(1, " and ", `name != "x"`)).Want(200)
	watch := machine.Begin(t)
	for _, word := range []string{" and ", " or "} {
		for _, term := range []string{"true", `name != "x"`, `(name != "x" or isAdmin = true)`, `anyOf(roleAttributes) != "x"`} {
			c.Get(filter(101, word, term)).Want(200)
		}
		c.Get(filter(501, word, "true")).Fails(400, "INVALID_FILTER", "")
	}
	if took, limit := watch.Took(2 * time.Second); took > limit {
		t.Errorf("a dozen filters took %s, more than %s", took, limit)
	}
}
