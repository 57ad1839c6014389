package layout

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
	l, err := Read(path)
	return l, path, err
}

func TestRead(t *testing.T) {
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

// TestReadBombs refuses configs that would fill the memory.
func TestReadBombs(t *testing.T) {
	documenttest.Refused(t, func(text string) error {
		_, _, err := readLayout(t, text)
		return err
	})
}

func TestReadRefused(t *testing.T) {
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
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a config that is not there was read")
	}
}
