// Package cluster_test runs controllers on an etcd server as an operator would
// set one up, with certificates and users.
package cluster_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/servertest"
)

type M = servertest.M

const (
	client     = "/edge/client/v1/"
	fabricRoot = "/fabric/v1/"

	// patience bounds everything that is waited for. The machine may be busy.
	patience = 60 * time.Second
)

// second starts another controller of the network of the first, which invites it.
func second(t *testing.T, first *servertest.Server, change func(*config.Config)) *servertest.Server {
	t.Helper()
	s, err := servertest.Open(t.TempDir(), change, joining(t, first))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// joining has a controller join with a token of another.
func joining(t *testing.T, by *servertest.Server) func(*config.Config) {
	t.Helper()
	token := by.Admin(t).Post("cluster/invitations", nil).Want(http.StatusOK).Data()["token"].(string)
	return func(c *config.Config) { c.Join = token }
}

// closing stops a controller at the test's end, and wants nothing amiss.
func closing(t *testing.T, s *servertest.Server) *servertest.Server {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// stopping stops a controller at the test's end that has reason to complain.
func stopping(t *testing.T, s *servertest.Server) *servertest.Server {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// as returns somebody who has a token at one controller, at another.
func as(t *testing.T, s *servertest.Server, other *servertest.Client) *servertest.Client {
	c := s.Nobody(t)
	c.Token = other.Token
	return c
}

// eventually asks until the answer has a status.
func eventually(t *testing.T, c *servertest.Client, path string, status int) {
	t.Helper()
	servertest.Eventually(t, 30*time.Second, "an answer with the status", func() bool { return c.Get(path).Status == status })
}

// TestTwoControllers has two controllers serve one network: whatever somebody
// has got from one is good at the other, and gone there when it is taken away.
func TestTwoControllers(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a := servertest.Start(t, use)
	b := closing(t, second(t, a, use))

	admin := a.Admin(t)
	eventually(t, as(t, b, admin), "identities", http.StatusOK)
	b.Login(t, servertest.Username, servertest.Password).Get("identities").Want(http.StatusOK)

	id := admin.Post("identities", M{"name": "phone", "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}).Want(http.StatusCreated).ID()
	token := admin.Get("identities/" + id + "/enrollments").Want(http.StatusOK).List()[0]["token"].(string)
	eventually(t, as(t, b, admin), "identities/"+id, http.StatusOK)
	cert := enroll(t, b, token)
	for _, s := range []*servertest.Server{b, a} {
		servertest.Eventually(t, 30*time.Second, "a login with the certificate", func() bool {
			return s.Nobody(t).Presenting(cert).Post(client+"authenticate?method=cert", M{}).Status == http.StatusOK
		})
	}
	a.Nobody(t).With("Content-Type", "text/plain").Post(client+"enroll?method=ott&token="+token, servertest.Raw("x")).Want(http.StatusBadRequest)

	// What the user of etcd may not do is known for what it is.
	if err := a.Store().Compact(t.Context(), a.State().Snapshot().Rev); !etcdstore.Refused(err) {
		t.Error(err)
	}

	refused := admin.Post("database/snapshot", nil).Want(http.StatusConflict)
	if text := string(refused.Raw); !strings.Contains(text, "SNAPSHOT_REFUSED") || !strings.Contains(text, "etcdctl snapshot save") {
		t.Errorf("a snapshot is refused with %s", text)
	}

	login := b.Login(t, servertest.Username, servertest.Password)
	eventually(t, as(t, a, login), "current-identity", http.StatusOK)
	login.Delete("current-api-session").Want(http.StatusOK)
	eventually(t, as(t, a, login), "current-identity", http.StatusUnauthorized)
}

// enroll turns a token into a certificate.
func enroll(t *testing.T, s *servertest.Server, token string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr})
	got := s.Nobody(t).With("Content-Type", "text/plain").Post(client+"enroll?method=ott&token="+token, servertest.Raw(text)).Want(http.StatusOK)
	block, _ := pem.Decode(got.Raw)
	if block == nil {
		t.Fatalf("no certificate: %s", got.Raw)
	}
	return &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}
}

// TestForeignController starts a controller with keys of its own on a network
// that has some. It is refused, and makes none.
func TestForeignController(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	servertest.Start(t, use)
	dir := t.TempDir()
	s, err := servertest.Open(dir, use)
	if err == nil {
		closing(t, s)
		t.Fatal("it started")
	}
	if !strings.Contains(err.Error(), "the store belongs to the network with the root CA") {
		t.Errorf("it says %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "pki")); !os.IsNotExist(err) {
		t.Errorf("it made keys: %v", err)
	}
}

// TestCutOff cuts a controller off from its cluster while another one disables
// somebody. It refuses writes soon, answers from memory for a while, and then
// nobody who is logged in; when it is back it knows.
func TestCutOff(t *testing.T) {
	beside(t)
	// A write gives up after 3 seconds, and long before its request is over; a busy
	// machine takes its time to say so.
	const grace, slow = 8 * time.Second, 30 * time.Second
	etcd := etcdtest.Start(t)
	line := etcd.NewLine(t)
	a := servertest.Start(t, func(c *config.Config) { etcd.Settings(c) })
	b := stopping(t, second(t, a, func(c *config.Config) {
		etcd.Settings(c, line)
		c.Store.Grace, c.Store.Refuse = grace, time.Hour
		c.Timeouts.Request, c.Timeouts.Write = 2*slow, 3*slow
	}))
	user := a.AddUser(t, true)
	servertest.Eventually(t, 30*time.Second, "the user at the other", func() bool {
		return b.Nobody(t).Post("authenticate?method=password", M{"username": user.Username, "password": user.Password}).Status == http.StatusOK
	})
	login := b.Login(t, user.Username, user.Password)
	eventually(t, as(t, a, login), "current-identity", http.StatusOK)

	line.Cut()
	cut := time.Now()
	login.Outage = true
	stranger := b.Nobody(t)
	stranger.Outage = true
	if known := login.Get("current-identity"); time.Since(cut) < grace/2 {
		known.Want(http.StatusOK)
	}
	a.Admin(t).Post("identities/"+user.ID+"/disable", M{"durationMinutes": 0}).Want(http.StatusOK)
	for _, write := range []func() *servertest.Answer{
		func() *servertest.Answer {
			return login.Post("identities", M{"name": "late", "type": "Device", "isAdmin": false})
		},
		func() *servertest.Answer {
			return stranger.Post("authenticate?method=password", M{"username": user.Username, "password": user.Password})
		},
	} {
		start := time.Now()
		answer := write().Want(http.StatusServiceUnavailable)
		if took := time.Since(start); took > slow || answer.Header.Get("Retry-After") == "" {
			t.Errorf("a write was refused after %s, Retry-After %q", took, answer.Header.Get("Retry-After"))
		}
	}
	eventually(t, login, "current-identity", http.StatusServiceUnavailable)
	b.Nobody(t).Get(client + "version").Want(http.StatusOK)

	line.Mend()
	servertest.Eventually(t, 60*time.Second, "the end of the outage", func() bool {
		status := login.Get("current-identity").Status
		if status == http.StatusOK {
			t.Fatal("it believes somebody who was disabled meanwhile")
		}
		return status == http.StatusUnauthorized
	})
	// Requests are answered from the moment on, and it may be said a moment later.
	servertest.Eventually(t, 60*time.Second, "a line of log that the store answers again", func() bool {
		return slices.ContainsFunc(b.Log(), func(line string) bool { return strings.Contains(line, "the store answers again") })
	})
	lines := map[string]int{}
	for _, line := range b.Log() {
		for _, text := range []string{"the store does not answer; what is asked", "the store answers again"} {
			if strings.Contains(line, text) {
				lines[text]++
			}
		}
	}
	for text, n := range lines {
		if n != 1 {
			t.Errorf("%q was logged %d times", text, n)
		}
	}
	if len(lines) != 2 {
		t.Errorf("it logged %v", lines)
	}
	for _, line := range b.Log() {
		if strings.Contains(line, etcdtest.Password) {
			t.Errorf("the password of etcd is logged: %s", line)
		}
	}
}

// TestAdminReset lets the default admin of a network in a cluster in again. The
// lock of the data directory keeps it from a controller that runs.
func TestAdminReset(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	dir := t.TempDir()
	s, err := servertest.Open(dir, use)
	if err != nil {
		t.Fatal(err)
	}
	const fresh = "another password"
	reset := func() error {
		_, err := server.ResetAdmin(t.Context(), s.Config, server.AdminReset{Username: "unused", Password: fresh}, slog.New(slog.DiscardHandler))
		return err
	}
	if err := reset(); err == nil || !strings.Contains(err.Error(), "is in use by another netkeep") {
		t.Errorf("beside a controller: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := reset(); err != nil {
		t.Fatal(err)
	}
	if s, err = servertest.Open(dir, use); err != nil {
		t.Fatal(err)
	}
	closing(t, s)
	s.Nobody(t).Post("authenticate?method=password", M{"username": servertest.Username, "password": servertest.Password}).Want(http.StatusUnauthorized)
	s.Login(t, servertest.Username, fresh).Get("identities").Want(http.StatusOK)
}

// TestControllerList has each of two controllers list both, and say which is gone.
func TestControllerList(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a := servertest.Start(t, use)
	b := second(t, a, use)
	admin := a.Admin(t)
	online := func(list []M) map[string]bool {
		by := map[string]bool{}
		for _, c := range list {
			by[c["id"].(string)] = c["isOnline"].(bool)
		}
		return by
	}
	there := func(s *servertest.Server, want ...bool) {
		t.Helper()
		servertest.Eventually(t, 30*time.Second, "both controllers, as they are", func() bool {
			var got []bool
			for _, is := range online(s.Nobody(t).Get(client + "controllers").Want(http.StatusOK).List()) {
				got = append(got, is)
			}
			slices.SortFunc(got, func(a, b bool) int { return map[bool]int{a: 1}[true] - map[bool]int{b: 1}[true] })
			return slices.Equal(got, want)
		})
	}
	there(a, true, true)
	there(b, true, true)
	for _, c := range admin.Get("controllers").Want(http.StatusOK).List() {
		at := c["apiAddresses"].(M)["edge-client"].([]any)[0].(M)
		if !slices.Contains([]string{"https://" + a.Address() + "/edge/client/v1", "https://" + b.Address() + "/edge/client/v1"}, at["url"].(string)) || at["version"] != "v1" {
			t.Errorf("a controller is said to be at %v", at)
		}
		if text := c["certPem"].(string); !strings.Contains(text, "BEGIN CERTIFICATE") {
			t.Errorf("it has the certificate %q", text)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	there(a, false, true)
}
