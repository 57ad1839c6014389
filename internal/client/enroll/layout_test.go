package enroll

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/document/documenttest"
)

func readLayout(t testing.TB, text string) (Layout, string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "router.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := ReadLayout(path)
	return l, path, err
}

func TestReadLayout(t *testing.T) {
	l, path, err := readLayout(t, `v: 3
identity: {cert: a.cert, server_cert: file:///etc/a.server.cert, key: a.key, ca: a.cas}
ctrl: {endpoint: "tls:127.0.0.1:1280"}
edge: {csr: {country: US, sans: {dns: [localhost, edge.example.org], ip: ["127.0.0.1"], email: [ops@example.org], uri: ["https://edge.example.org"]}}}
listeners:
  - {binding: edge, address: "tls:127.0.0.1:3022"}
`)
	if err != nil {
		t.Fatal(err)
	}
	if l.Cert != "a.cert" || l.ServerCert != "/etc/a.server.cert" || l.Key != "a.key" || l.CA != "a.cas" || l.Endpoints != filepath.Join(filepath.Dir(path), "endpoints.yml") {
		t.Errorf("the layout is %+v", l)
	}
	if !slices.Equal(l.Names.DNS, []string{"localhost", "edge.example.org"}) || len(l.Names.IPs)+len(l.Names.Emails)+len(l.Names.URIs) != 3 {
		t.Errorf("the names are %+v", l.Names)
	}
	l, _, err = readLayout(t, `
identity: {cert: c, server_cert: s, key: k, ca: a}
ctrl: {endpointsFile: here.yml}
csr: {sans: {dns: [root]}}
edge: {csr: {sans: {dns: [below]}}}
`)
	if err != nil || l.Endpoints != "here.yml" || !slices.Equal(l.Names.DNS, []string{"root"}) {
		t.Errorf("the layout is %+v, %v", l, err)
	}
}

// TestReadLayoutBombs refuses configs that would fill the memory.
func TestReadLayoutBombs(t *testing.T) {
	documenttest.Refused(t, func(text string) error {
		_, _, err := readLayout(t, text)
		return err
	})
}

func TestReadLayoutRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "identity.key is missing", "identity: [": "no router's config", "identity: 3": "no router's config",
		"identity: {key: 'pkcs11:softhsm'}":                            "identity.key is kept by pkcs11",
		"identity: {key: '${HOME}/k'}":                                 "identity.key is said by a variable",
		"identity: {key: k, cert: 'pem:abc'}":                          "identity.cert is kept by pem",
		"identity: {key: k, cert: c, ca: a}":                           "identity.server_cert is missing",
		"identity: {key: k, cert: c, server_cert: s, ca: 'keychain:'}": "identity.ca is kept by keychain",
	} {
		if _, _, err := readLayout(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	if _, err := ReadLayout(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a config that is not there was read")
	}
	if _, err := (Names{IPs: []string{"nine"}}).template("x"); err == nil {
		t.Error("a word is no IP address")
	}
	if _, err := (Names{URIs: []string{":"}}).template("x"); err == nil {
		t.Error("a colon is no URI")
	}
}

func FuzzRead(f *testing.F) {
	f.Add("eyJhbGciOiJFUzI1NiJ9.eyJlbSI6Im90dCIsImlzcyI6Imh0dHBzOi8vYTo0NDMiLCJqdGkiOiJ4In0.AAAA")
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, text string) {
		inv, err := Read(text)
		if err != nil {
			return
		}
		if !strings.HasPrefix(inv.Controller, "https://") || inv.host == "" || inv.Method == "" {
			t.Errorf("%q was read as %+v", text, inv)
		}
	})
}
