package upgrade_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pquerna/otp/totp"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/schema"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/servertest"
	"netkeep.internal/test/upgrade/fixture"
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

// TestNetwork lets everybody in who could get in when a fixture was made.
func TestNetwork(t *testing.T) {
	for _, name := range fixture.All {
		t.Run(name, func(t *testing.T) { letIn(t, name) })
	}
}

func letIn(t *testing.T, name string) {
	s, k := serve(t, name), fixture.Read(t, name)
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
	for _, name := range fixture.All {
		t.Run(name, func(t *testing.T) { isWhole(t, name) })
	}
}

func isWhole(t *testing.T, name string) {
	s := serve(t, name)
	admin := s.Login(t, "admin", fixture.Read(t, name).Password)
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
	// Config types that nobody changed are those of now.
	for _, typ := range schema.BuiltIn() {
		if diff := cmp.Diff(any(typ.Schema), admin.Get("config-types/"+typ.ID).Want(http.StatusOK).At("data.schema")); diff != "" {
			t.Errorf("%s is not the present one (-present +stored):\n%s", typ.Name, diff)
		}
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

// TestSealed finds nothing in an upgraded store that lets somebody in, whoever
// looks at all that it holds, and all of it in memory.
func TestSealed(t *testing.T) {
	for _, name := range fixture.All {
		t.Run(name, func(t *testing.T) {
			s, k := serve(t, name), fixture.Read(t, name)
			secrets := append([]string{k.TOTPSecret}, k.RecoveryCodes...)
			for e := range model.Enrollments.All(s.State().Snapshot()) {
				secrets = append(secrets, e.Token, e.JWT)
			}
			if len(secrets) < 20 {
				t.Fatalf("there are only %d secrets", len(secrets))
			}
			records := 0
			_, err := s.Store().Load(t.Context(), func(r store.Record) error {
				records++
				for _, secret := range secrets {
					if bytes.Contains(r.Value, []byte(secret)) {
						t.Errorf("%s holds a secret", r.Key)
					}
				}
				return nil
			})
			if err != nil || records < 50 {
				t.Errorf("%d records were read: %v", records, err)
			}
			var snapshot bytes.Buffer
			if err := s.Store().Snapshot(t.Context(), &snapshot); err != nil {
				t.Fatal(err)
			}
			for _, secret := range secrets {
				if bytes.Contains(snapshot.Bytes(), []byte(secret)) {
					t.Errorf("a snapshot holds a secret of %d letters", len(secret))
				}
			}
			if name == fixture.Fifth || name == fixture.Sixth {
				return // it was sealed when it was written, and history has nothing else
			}
			if err := s.Store().Follow(t.Context(), 0, func(store.Batch) error { return io.EOF }); !errors.Is(err, store.ErrCompacted) {
				t.Errorf("what was stored before can still be followed: %v", err)
			}
		})
	}
}
