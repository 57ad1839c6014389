package api_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/test/servertest"
)

// hookSecret is what alerts are signed with.
const hookSecret = "correct-horse-battery-staple"

// signed is the alert of a request, if it is signed.
func signed(r *http.Request) (a M, ok bool) {
	body, err := io.ReadAll(r.Body)
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(append([]byte(r.Header.Get("Netkeep-Timestamp")+"."), body...))
	ok = err == nil && r.Header.Get("Netkeep-Signature") == "v1="+hex.EncodeToString(mac.Sum(nil)) && json.Unmarshal(body, &a) == nil
	return a, ok
}

// hook is a receiver of alerts, with settings that name it.
func hook(t *testing.T, take func(M)) config.Webhook {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(hookSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := signed(r)
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		take(a)
		_, _ = io.WriteString(w, "noted")
	}))
	t.Cleanup(srv.Close)
	return config.Webhook{Name: "ops", URL: srv.URL + "/token-in-the-path", SecretFile: file}
}

// TestAlerts has a receiver told of a lockout, and tried; lists say how it stands with it
// and nothing that is secret.
func TestAlerts(t *testing.T) {
	var mu sync.Mutex
	var came []M
	to := hook(t, func(a M) { mu.Lock(); defer mu.Unlock(); came = append(came, a) })
	s := servertest.Start(t, func(c *config.Config) { c.Alerts = []config.Webhook{to} })
	admin := s.Admin(t)
	if got := admin.Post("alerts/ops/test", nil).Want(http.StatusOK).Data(); got["taken"] != true || got["answer"] != "noted" || got["error"] != "" {
		t.Errorf("a test: %v", got)
	}
	admin.Post("alerts/nobody/test", nil).Fails(http.StatusNotFound, "NOT_FOUND", "")

	user := s.AddUser(t, false)
	policy := admin.Get("auth-policies/default").Want(http.StatusOK).Data()
	updb := policy["primary"].(M)["updb"].(M)
	updb["maxAttempts"], updb["lockoutDurationMinutes"] = 1, 5
	id := admin.Post("auth-policies", M{"name": "strict", "primary": policy["primary"], "secondary": policy["secondary"]}).Want(http.StatusCreated).ID()
	admin.Patch("identities/"+user.ID, M{"authPolicyId": id}).Want(http.StatusOK)
	s.Nobody(t).Post("/edge/client/v1/authenticate?method=password", M{"username": user.Username, "password": "not-the-one-it-has"}).Want(http.StatusUnauthorized)
	servertest.Eventually(t, time.Minute, "the lockout is told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range came {
			if a["event"] == "locked-out" && a["targetName"] == user.Username && a["address"] == "127.0.0.1" {
				return true
			}
		}
		return false
	})
	servertest.Eventually(t, time.Minute, "it is listed", func() bool {
		list := admin.Get("alerts").Want(http.StatusOK)
		if strings.Contains(string(list.Raw), "token-in-the-path") || strings.Contains(string(list.Raw), "horse") {
			t.Fatalf("the list tells secrets: %s", list.Raw)
		}
		return list.At("data.0.delivered") == 1.0 && list.At("data.0.deliveredAt") != nil && list.At("data.0.error") == ""
	})
}

// TestAlertSettings has settings that cannot be meant refused, with what would be right.
func TestAlertSettings(t *testing.T) {
	good := hook(t, func(M) {})
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(c *config.Config, h *config.Webhook)
		want   string
	}{
		"right":           {func(*config.Config, *config.Webhook) {}, ""},
		"to this machine": {func(c *config.Config, _ *config.Webhook) { c.Egress.Strict = true }, "127.0.0.1 is loopback, which egress.strict forbids: name a receiver with a public address, or set egress.strict to false"},
		"to its name":     {func(c *config.Config, h *config.Webhook) { c.Egress.Strict, h.URL = true, "https://LOCALHOST./x" }, "is loopback, which egress.strict forbids"},
		"to a private one": {func(c *config.Config, h *config.Webhook) {
			c.Egress.Strict, h.URL = true, "https://[::ffff:10.0.0.1]/x"
		}, "10.0.0.1 is private, which egress.strict forbids"},
		"to the cloud's":    {func(_ *config.Config, h *config.Webhook) { h.URL = "http://169.254.169.254/x" }, "is link-local"},
		"without a secret":  {func(_ *config.Config, h *config.Webhook) { h.SecretFile = "/nonexistent/secret" }, "alerts: ops: secretFile: open /nonexistent/secret"},
		"with a short one":  {func(_ *config.Config, h *config.Webhook) { h.SecretFile = short }, "has less than 16 characters; openssl rand -hex 32 writes a good one"},
		"of no event":       {func(_ *config.Config, h *config.Webhook) { h.On = []string{"router-ofline"} }, `on: there is no event "router-ofline"; the nearest is router-offline`},
		"of changes":        {func(_ *config.Config, h *config.Webhook) { h.On = []string{"created"} }, `on: there is no event "created"`},
		"of another entry":  {func(_ *config.Config, h *config.Webhook) { h.On = []string{"admin-reset", "assertion-refused"} }, ""},
		"with no CA's file": {func(_ *config.Config, h *config.Webhook) { h.CA = short }, "alerts: ops: ca: " + short + " holds no certificate as PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			c, h := config.Default(), good
			c.Data = filepath.Join(t.TempDir(), "data")
			test.change(&c, &h)
			c.Alerts = []config.Webhook{h}
			switch err := server.Check(c); {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("it says %v, want %s", err, test.want)
			}
		})
	}
}
