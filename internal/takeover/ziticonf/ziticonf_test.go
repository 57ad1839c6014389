package ziticonf_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/takeover/ziticonf"
	"netkeep.internal/test/zititest"
)

// TestRead reads the settings of networks that were made in the three usual ways.
func TestRead(t *testing.T) {
	for version, want := range map[string]struct {
		id, client, routers string
		signing, anchors    int
		clustered           bool
	}{
		"1.6.0":  {"ctrl-client", "localhost:21280", "localhost:21262", 3, 5, false},
		"1.6.20": {"ctrl1", "localhost:22280", "localhost:22262", 2, 2, false},
		"2.0.3":  {"ctrl1", "localhost:23280", "localhost:23262", 2, 2, true},
	} {
		t.Run(version, func(t *testing.T) {
			dir := zititest.Unpack(t, version)
			s, err := ziticonf.Read(filepath.Join(dir, "ctrl.yml"), "")
			if err != nil {
				t.Fatal(err)
			}
			if s.Database != zititest.Database(dir) || s.Clustered != want.clustered {
				t.Errorf("the database is %s, of several %v", s.Database, s.Clustered)
			}
			if s.ID != want.id {
				t.Errorf("the controller is called %q", s.ID)
			}
			if s.Client.Advertise != want.client || s.Management != s.Client || s.Routers.Advertise != want.routers || !s.OIDC {
				t.Errorf("it is at %+v, %+v, %+v", s.Client, s.Management, s.Routers)
			}
			if len(s.Signing) != want.signing || len(s.Anchors) != want.anchors {
				t.Errorf("%d certificates sign, %d are trusted", len(s.Signing), len(s.Anchors))
			}
			roots, sent := x509.NewCertPool(), x509.NewCertPool()
			for _, ca := range s.Anchors {
				roots.AddCert(ca)
			}
			for _, ca := range s.Server[1:] {
				sent.AddCert(ca)
			}
			if _, err := s.Server[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: sent, DNSName: "localhost", CurrentTime: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}); err != nil {
				t.Errorf("nobody trusts the server: %v", err)
			}
			if len(s.DNSNames) == 0 || len(s.Open) > 0 {
				t.Errorf("names are %v, and open are %v", s.DNSNames, s.Open)
			}
		})
	}
}

// TestBadSettings shows what is said of settings that cannot be used.
func TestBadSettings(t *testing.T) {
	t.Setenv("ZITI_TEST_KEY", "pki/none.key")
	for _, test := range []struct{ what, was, is, says string }{
		{"no YAML", "v: 3", "v: [", "is no settings of a controller"},
		{"more than is read", "v: 3", "v: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), "lists and objects are in each other more than"},
		{"no database", `db:                     "db/ctrl.db"`, "", "it names no database"},
		{"no clients", "binding: edge-client", "binding: health", "no web listener has the API edge-client"},
		{"a file that is not there", "cert: pki/signing.pem", "cert: pki/none.pem", "edge.enrollment.signingCert.cert: stat "},
		{"a file of a variable", "pki/signing-intermediate/keys/signing-intermediate.key", "${ZITI_TEST_KEY}", "none.key: no such file"},
		{"no certificate", "cert: pki/signing.pem", "cert: ctrl.yml", "edge.enrollment.signingCert.cert: there is no certificate in it"},
		{"a key of another", "pki/signing-intermediate/keys/signing-intermediate.key", "pki/ctrl-intermediate/keys/ctrl.key", "edge.enrollment.signingCert.key: it is not the key of the certificate of"},
		{"a key in a device", "pki/signing-intermediate/keys/signing-intermediate.key", "pkcs11://lib?id=1", "it is kept by pkcs11, which this program cannot ask"},
		{"no signer", "signingCert:", "other:", "it names no certificate that signs identities"},
		{"no routers", "listener:             tls:127.0.0.1:21262", "", "where routers connect"},
		{"another transport", "tls:127.0.0.1:21262", "udp:127.0.0.1:21262", "no address that begins with tls:"},
		{"no time", "sessionTimeout: 30m", "sessionTimeout: soon", `edge.api.sessionTimeout: "soon" is no duration`},
	} {
		t.Run(test.what, func(t *testing.T) {
			dir := zititest.Unpack(t, "1.6.0")
			name := filepath.Join(dir, "ctrl.yml")
			text, err := os.ReadFile(name)
			if err != nil || !strings.Contains(string(text), test.was) {
				t.Fatalf("%q is not in it (%v)", test.was, err)
			}
			if err := os.WriteFile(name, []byte(strings.Replace(string(text), test.was, test.is, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := ziticonf.Read(name, ""); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("it says %v, and not %q", err, test.says)
			}
		})
	}
}

// TestOpenKeys shows that keys are named that others may read.
func TestOpenKeys(t *testing.T) {
	dir := zititest.Unpack(t, "1.6.20")
	var keys []string
	err := filepath.WalkDir(filepath.Join(dir, "pki"), func(name string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".key") {
			keys = append(keys, name)
			err = os.Chmod(name, 0o644)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := ziticonf.Read(filepath.Join(dir, "ctrl.yml"), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Open) == 0 || len(s.Open) > len(keys) {
		t.Errorf("of %v these are open: %v", keys, s.Open)
	}
}

// FuzzSettings reads texts as settings: they are refused with a reason, or have all that is
// needed.
func FuzzSettings(f *testing.F) {
	dir := zititest.Unpack(f, "1.6.0")
	for _, version := range zititest.Versions {
		text, err := os.ReadFile(filepath.Join(zititest.Unpack(f, version), "ctrl.yml"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, text := range []string{"", "{", "v: &a [*a]", "db: x\nweb: [{}]", "web: [{apis: [{binding: edge-client}], bindPoints: [{}]}]\nctrl: {listener: tls}", "cluster: {dataDir: ..}", "db: ${HOME}$x$"} {
		f.Add(text)
	}
	name := filepath.Join(dir, "fuzzed.yml")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := ziticonf.Read(name, "")
		if err != nil {
			if s != nil || err.Error() == "" {
				t.Errorf("%v comes with %v", s, err)
			}
			return
		}
		if s.Database == "" || s.ID == "" || s.Client.Listen == "" || s.Routers.Listen == "" || len(s.Signing) == 0 || s.SigningKey == nil || len(s.Server) == 0 || s.ServerKey == nil {
			t.Errorf("settings lack what is needed: %+v", s)
		}
	})
}
