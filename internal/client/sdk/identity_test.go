package sdk

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/client/remote"
)

var begins = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// identityFile writes an identity's file, changed as a test likes.
func identityFile(t *testing.T, change func(*remote.Identity)) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "somebody"}, NotBefore: begins, NotAfter: begins.AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(typ string, data []byte) string {
		return "pem:" + string(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: data}))
	}
	id := &remote.Identity{API: "https://controller:1280/edge/client/v1"}
	id.ID.Cert, id.ID.CA, id.ID.Key = block("CERTIFICATE", der), block("CERTIFICATE", der), block("PRIVATE KEY", keyDER)
	change(id)
	data, err := id.Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "identity.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestIdentityFile lists what may be wrong with a file, and what is said of it.
func TestIdentityFile(t *testing.T) {
	summer := begins.AddDate(0, 6, 0)
	as := func(*remote.Identity) {}
	for _, test := range []struct {
		name   string
		change func(*remote.Identity)
		now    time.Time
		want   string // empty if it is right
	}{
		{"right", as, summer, ""},
		{"another path", func(i *remote.Identity) { i.API = "https://controller:1280" }, summer, ""},
		{"over, which the controller may not mind", as, begins.AddDate(2, 0, 0), ""},
		{"a clock in the past", as, begins.AddDate(-1, 0, 0), "begins at 2026-01-01 00:00 UTC, and this machine's clock says 2025-01-01 00:00 UTC: set the clock"},
		{"no controller", func(i *remote.Identity) { i.API = "nowhere" }, summer, "names no controller"},
		{"a damaged key", func(i *remote.Identity) { i.ID.Key = i.ID.Key[:60] }, summer, "the certificate or the key"},
		{"a damaged CA", func(i *remote.Identity) { i.ID.CA = "pem:nothing" }, summer, "the CA in"},
		{"no certificate", func(i *remote.Identity) { i.ID.Cert = "" }, summer, "is no file of an identity that has enrolled"},
		{"a password", func(i *remote.Identity) { i.ID.Cert, i.ID.Key = "", "" }, summer, "is of an identity that has a password"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := load(identityFile(t, test.change), test.now)
			switch {
			case test.want != "":
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %q", err, test.want)
				}
			case err != nil:
				t.Error(err)
			case got.address != "https://controller:1280" || got.root != clientRoot:
				t.Errorf("the controller is at %s%s", got.address, got.root)
			}
		})
	}
	if _, err := load(filepath.Join(t.TempDir(), "none"), summer); err == nil || !strings.HasPrefix(err.Error(), "the identity: ") {
		t.Errorf("no file: %v", err)
	}
}
