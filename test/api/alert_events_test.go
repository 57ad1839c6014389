package api_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/ops/alert"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/certtest"
	"netkeep.internal/test/servertest"
)

// inbox is a receiver over HTTPS that keeps what comes to it signed.
type inbox struct {
	mu   sync.Mutex
	came []M
	ids  []string
}

func (in *inbox) take(r *http.Request, a M) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.came, in.ids = append(in.came, a), append(in.ids, r.Header.Get("Netkeep-Id"))
}

// of are those of an event about somebody, by name.
func (in *inbox) of(event, name string) (all []M) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, a := range in.came {
		if got, _ := a["targetName"].(string); a["event"] == event && strings.Contains(got, name) {
			all = append(all, a)
		}
	}
	return all
}

// await waits until an event was told of somebody, and returns the alert.
func (in *inbox) await(t *testing.T, event, name string) M {
	t.Helper()
	servertest.Eventually(t, time.Minute, event+" of "+name+" is told", func() bool { return len(in.of(event, name)) > 0 })
	return in.of(event, name)[0]
}

// secured is a receiver with a certificate of its own, and the settings that name it.
func secured(t *testing.T, serve http.HandlerFunc) config.Webhook {
	t.Helper()
	dir := t.TempDir()
	srv := httptest.NewTLSServer(serve)
	t.Cleanup(srv.Close)
	for name, text := range map[string]string{
		"secret": hookSecret + "\n", "ca": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config.Webhook{Name: "ops", URL: srv.URL + "/hook", SecretFile: filepath.Join(dir, "secret"), CA: filepath.Join(dir, "ca")}
}

// TestAlertOfEach has each of the usual events happen to a controller, and those that are
// over be over: each comes signed, over HTTPS, once. The controller stops in between and
// goes on where it was.
func TestAlertOfEach(t *testing.T) {
	in, dir := new(inbox), t.TempDir()
	to := secured(t, func(w http.ResponseWriter, r *http.Request) {
		if a, ok := signed(r); ok {
			in.take(r, a)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	run := func(change func(*config.Config), do func(s *servertest.Server)) {
		t.Helper()
		s, err := servertest.Open(dir, func(c *config.Config) { c.Alerts, c.AlertAfter = []config.Webhook{to}, time.Second }, change)
		if err != nil {
			t.Fatal(err)
		}
		do(s)
		if err := s.Stop(context.Background()); err != nil { // not with Close: that a snapshot fails is logged
			t.Error(err)
		}
	}
	run(func(*config.Config) {}, func(s *servertest.Server) {
		admin := s.Admin(t)
		r := s.AddRouter(t)
		if a := in.await(t, "router-offline", r.Name); a["targetKind"] != "router" || a["targetId"] != r.ID || a["outcome"] != "failed" {
			t.Errorf("a router is offline: %v", a)
		}
		r.Connect(t)
		in.await(t, "router-online", r.Name)

		admin.Post("identities", M{"name": "eve", "type": "User", "isAdmin": false, "roleAttributes": []string{"out"}}).Want(201)
		admin.Post("services", M{"name": "payroll", "encryptionRequired": true}).Want(201)
		admin.Post("assertions", M{"name": "stay out", "expect": "never", "identityRoles": []string{"#out"}, "serviceRoles": []string{"#all"}}).Want(201)
		admin.Post("service-policies", M{"name": "wide", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#all"}, "serviceRoles": []string{"#all"}}).Want(409)
		if a := in.await(t, "assertion-refused", "stay out"); a["actor"] != "Default Admin" && a["actor"] != servertest.Username {
			t.Errorf("an assertion refused: %v", a)
		}
		ca := certtest.New(t, nil, func(c *x509.Certificate) {
			c.Subject, c.IsCA, c.KeyUsage, c.NotAfter = pkix.Name{CommonName: "old"}, true, x509.KeyUsageCertSign, time.Now().Add(5*24*time.Hour)
		})
		admin.Post("cas", M{
			"name": "old-ca", "certPem": string(ca.PEM()), "isAuthEnabled": true, "isOttCaEnrollmentEnabled": false, "isAutoCaEnrollmentEnabled": false, "identityRoles": []string{},
		}).Want(201)
	})
	gone := filepath.Join(dir, "gone")
	if err := os.Symlink("/nonexistent/disk", gone); err != nil {
		t.Fatal(err)
	}
	run(func(c *config.Config) { c.AlertDisk, c.Snapshots.Every, c.Snapshots.Dir = 1<<60, time.Hour, gone }, func(*servertest.Server) {
		if a := in.await(t, "snapshot-failed", ""); a["reason"] == nil {
			t.Errorf("a snapshot failed: %v", a)
		}
		if a := in.await(t, "ending-soon", "old-ca"); !strings.Contains(fmt.Sprint(a["reason"]), "it ends at 20") {
			t.Errorf("a CA ends: %v", a)
		}
		if a := in.await(t, "disk-low", ""); !strings.Contains(fmt.Sprint(a["text"]), "less than 1073741824GiB is left for") {
			t.Errorf("a disk is low: %v", a)
		}
	})
	run(func(c *config.Config) { c.AlertDisk = 0 }, func(*servertest.Server) { in.await(t, "disk-enough", "") })

	for _, once := range [][2]string{{"router-online", ""}, {"assertion-refused", ""}, {"ending-soon", "old-ca"}, {"disk-low", ""}, {"disk-enough", ""}} {
		if n := len(in.of(once[0], once[1])); n != 1 {
			t.Errorf("%s %s came %d times", once[0], once[1], n)
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if all := slices.Sorted(slices.Values(in.ids)); len(slices.Compact(all)) != len(in.came) {
		t.Errorf("an alert came twice: %q", in.ids)
	}
	untold := slices.DeleteFunc(alert.Usual(), func(event string) bool {
		return slices.ContainsFunc(in.came, func(a M) bool { return a["event"] == event })
	})
	// Lockouts have a test of their own, and it takes several controllers for one to be gone.
	if want := []string{"controller-gone", "controller-back", "locked-out"}; !slices.Equal(untold, want) {
		t.Errorf("nothing was told of %q, and that is right of %q alone", untold, want)
	}
}
