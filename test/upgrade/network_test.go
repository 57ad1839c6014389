package upgrade_test

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"netkeep/internal/ops/config"
	"netkeep/test/servertest"
	"netkeep/test/upgrade/fixture"
)

type M = servertest.M

// serve runs a controller on a fixture's data.
func serve(t *testing.T, name string) *servertest.Server {
	t.Helper()
	dir := t.TempDir()
	fixture.Restore(t, name, filepath.Join(dir, "data"))
	s, err := servertest.Open(dir, func(c *config.Config) {
		c.Session.Timeout = 100 * 365 * 24 * time.Hour // sessions of then are still good
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestNetwork lets everybody in who could get in when the fixture was made.
func TestNetwork(t *testing.T) {
	s, k := serve(t, fixture.First), fixture.Read(t, fixture.First)
	const client = "/edge/client/v1/"
	admin := s.Login(t, "admin", k.Password)
	if n := admin.Get("identities").Want(http.StatusOK).Total(); n != 10 {
		t.Errorf("%d identities are listed", n)
	}
	s.Nobody(t).Post("authenticate?method=password", M{"username": "admin", "password": "a password for tests"}).Want(http.StatusUnauthorized)

	// One who has a session keeps it, with the sessions that it holds.
	old := s.Nobody(t)
	old.Token = k.SessionToken
	if got := old.Get(client + "current-identity").Want(http.StatusOK).Data(); got["name"] != "person" {
		t.Errorf("the old session is of %v", got["name"])
	}
	if n := old.Get(client + "sessions").Want(http.StatusOK).Total(); n != 2 {
		t.Errorf("the old session holds %d sessions", n)
	}
	if n := old.Get(client + "services").Want(http.StatusOK).Total(); n != 2 {
		t.Errorf("the old session sees %d services", n)
	}

	// Second factors are what they were.
	code, err := totp.GenerateCode(k.TOTPSecret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{code, k.RecoveryCodes[0]} {
		c := s.Login(t, "person", k.Password)
		c.Get(client + "services").Want(http.StatusUnauthorized)
		c.Post(client+"authenticate/mfa", M{"code": code}).Want(http.StatusOK)
		c.Get(client + "services").Want(http.StatusOK)
	}

	// So are certificates, of our own CA and of a registered one.
	for name, pair := range map[string][2]string{"phone": {k.PhoneCert, k.PhoneKey}, "partner/visitor": {k.PartnerCert, k.PartnerKey}} {
		cert, err := tls.X509KeyPair([]byte(pair[0]), []byte(pair[1]))
		if err != nil {
			t.Fatal(err)
		}
		who := s.Nobody(t).Presenting(&cert).Post(client+"authenticate?method=cert", M{}).Want(http.StatusOK)
		if got := who.At("data.identity.name"); got != name {
			t.Errorf("the certificate of %s is that of %v", name, got)
		}
	}
}

// TestWhole has an integrity scan find nothing, and every list answer as the
// specification says, which the client checks.
func TestWhole(t *testing.T) {
	s := serve(t, fixture.First)
	admin := s.Login(t, "admin", fixture.Read(t, fixture.First).Password)
	ready, err := http.Get("http://" + s.Metrics().String() + "/health/ready")
	if err != nil {
		t.Fatal(err)
	}
	if ready.Body.Close(); ready.StatusCode != http.StatusOK {
		t.Errorf("it is not ready: %s", ready.Status)
	}
	admin.Post("database/check-data-integrity", nil).Want(http.StatusAccepted)
	var report M
	servertest.Eventually(t, time.Minute, "the end of the scan", func() bool {
		report = admin.Get("database/data-integrity-results").Want(http.StatusOK).Data()
		return report["inProgress"] == false
	})
	if found := report["results"].([]any); len(found) > 0 || report["error"] != nil && report["error"] != "" {
		t.Errorf("the scan found %v", report)
	}
	for _, path := range []string{
		"api-sessions", "auth-policies", "authenticators", "cas", "config-types", "configs", "edge-router-policies", "edge-routers", "enrollments",
		"external-jwt-signers", "identities", "identity-types", "posture-check-types", "posture-checks", "routers", "service-edge-router-policies",
		"service-policies", "services", "sessions", "terminators",
	} {
		if admin.Get(path).Want(http.StatusOK).Total() == 0 {
			t.Errorf("%s has no entry", path)
		}
	}
}
