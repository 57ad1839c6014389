package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func options(c *clock) Options { return Options{Now: c.Now} }

// wantConsistent checks a keystore's files with the standard library alone.
func wantConsistent(t *testing.T, dir string, now time.Time) {
	t.Helper()
	files := contents(t, dir)
	for _, name := range creation {
		if files[name] == "" && name != rootKeyFile {
			t.Fatalf("%s is missing", name)
		}
	}
	for name := range files {
		if strings.HasPrefix(name, tempPrefix) {
			t.Errorf("%s was left behind", name)
		}
	}
	for _, pair := range [][2]string{{rootFile, rootKeyFile}, {intermediateFile, intermediateKeyFile}, {serverFile, serverKeyFile}} {
		if pair[1] == rootKeyFile && files[rootKeyFile] == "" {
			continue
		}
		if _, err := tls.X509KeyPair([]byte(files[pair[0]]), []byte(files[pair[1]])); err != nil {
			t.Errorf("%s and %s: %v", pair[0], pair[1], err)
		}
	}
	if n := len(files[macKeyFile]); n != 32 {
		t.Errorf("%s has %d bytes", macKeyFile, n)
	}
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(files[rootFile]))
	server, rest := pem.Decode([]byte(files[serverFile]))
	intermediates.AppendCertsFromPEM(rest) // what the server would send
	leaf := must(x509.ParseCertificate(server.Bytes))(t)
	for _, name := range []string{"localhost", "127.0.0.1", "[::1]"} {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: intermediates, CurrentTime: now}); err != nil {
			t.Errorf("server as %s: %v", name, err)
		}
	}
}

func TestOpenCreates(t *testing.T) {
	for _, alg := range []Algorithm{"", P256, P384, RSA2048, Ed25519} {
		t.Run(string(alg), func(t *testing.T) {
			c := newClock()
			dir := filepath.Join(t.TempDir(), "a", "keys")
			opt := Options{Now: c.Now, Algorithm: alg, DNSNames: []string{"Ctrl.example", "localhost"}, IPs: []net.IP{net.IPv4(10, 0, 0, 7)}}
			ks := must(Open(dir, opt))(t)
			wantConsistent(t, dir, c.Now())

			if mode := must(os.Stat(dir))(t).Mode().Perm(); mode != 0o700 {
				t.Errorf("directory mode %o", mode)
			}
			for name := range contents(t, dir) {
				if mode := must(os.Stat(filepath.Join(dir, name)))(t).Mode().Perm(); mode != 0o600 {
					t.Errorf("%s mode %o", name, mode)
				}
			}
			wantNames := []string{"localhost", "ctrl.example"}
			if diff := cmp.Diff(wantNames, ks.server.DNSNames); diff != "" {
				t.Errorf("DNS names: %s", diff)
			}
			if n := len(ks.server.IPAddresses); n != 3 {
				t.Errorf("addresses %v", ks.server.IPAddresses)
			}
			if life := ks.Root().NotAfter.Sub(c.Now()); life < 10*365*day {
				t.Errorf("root lives %v", life)
			}
			if in := ks.Intermediate(); !in.MaxPathLenZero || in.MaxPathLen != 0 || !in.IsCA {
				t.Errorf("intermediate path length %d, CA %t", in.MaxPathLen, in.IsCA)
			}
		})
	}
}

func TestAlgorithms(t *testing.T) {
	for alg, want := range map[Algorithm]string{
		"": "P-256", P256: "P-256", P384: "P-384", RSA2048: "2048", RSA3072: "3072", RSA4096: "4096", Ed25519: "ed25519",
	} {
		key := must(must(alg.generator())(t)())(t)
		var got string
		switch k := key.Public().(type) {
		case *ecdsa.PublicKey:
			got = k.Params().Name
		case *rsa.PublicKey:
			got = fmt.Sprint(k.N.BitLen())
		case ed25519.PublicKey:
			got = "ed25519"
		}
		if got != want {
			t.Errorf("%q makes a key of kind %s", alg, got)
		}
		again := must(ParseKey(must(EncodeKey(key))(t)))(t)
		if !SamePublic(again.Public(), key.Public()) {
			t.Errorf("%q does not read back", alg)
		}
	}
}

func TestOpenIsStable(t *testing.T) {
	c := newClock()
	dir := t.TempDir()
	first := must(Open(dir, options(c)))(t)
	before := contents(t, dir)
	c.Add(200 * day)
	again := must(Open(dir, Options{Now: c.Now, Algorithm: Ed25519}))(t)
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("opening changed files: %s", diff)
	}
	if diff := cmp.Diff(first.Inventory(), again.Inventory()); diff != "" {
		t.Errorf("inventory: %s", diff)
	}
	if !bytes.Equal(must(first.MACKey("x"))(t), must(again.MACKey("x"))(t)) {
		t.Error("another MAC key after opening again")
	}
}

func TestOpenRefusesOptions(t *testing.T) {
	c := newClock()
	for name, tt := range map[string]struct {
		opt  Options
		want string
	}{
		"no clock":  {Options{}, "no clock"},
		"algorithm": {Options{Now: c.Now, Algorithm: "DSA"}, "unknown key algorithm"},
		"DNS name":  {Options{Now: c.Now, DNSNames: []string{"not a name"}}, "not a DNS name"},
		"address":   {Options{Now: c.Now, IPs: []net.IP{{1, 2, 3}}}, "not an IP address"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.TempDir(), tt.opt)
			wantError(t, err, tt.want)
		})
	}
}

func TestMACKeysDiffer(t *testing.T) {
	ks := must(Open(t.TempDir(), options(newClock())))(t)
	a, b := must(ks.MACKey("api session"))(t), must(ks.MACKey("other"))(t)
	if len(a) != 32 || bytes.Equal(a, b) || bytes.Equal(a, ks.secrets.Load().first) {
		t.Errorf("keys %x and %x of secret %x", a, b, ks.secrets.Load().first)
	}
}

func TestTrustBundle(t *testing.T) {
	ks := must(Open(t.TempDir(), options(newClock())))(t)
	got := must(ParseCertificates(EncodeCertificates(ks.TrustBundle()...), 2))(t)
	if len(got) != 2 || !got[0].Equal(ks.Intermediate()) || !got[1].Equal(ks.Root()) {
		t.Errorf("bundle of %d certificates", len(got))
	}
	chain := clientChain(t, ks.Signer(), ecKey(t))
	if _, err := NewRoots(ks.TrustBundle()).VerifyLeaf(chain[:1], VerifyOptions{}); err != nil {
		t.Errorf("a leaf alone under the bundle: %v", err)
	}
}

func TestOpenTogether(t *testing.T) {
	c := newClock()
	dir := t.TempDir()
	var wg sync.WaitGroup
	roots := make([]*x509.Certificate, 8)
	for i := range roots {
		wg.Go(func() {
			ks, err := Open(dir, options(c))
			if err != nil {
				t.Error(err)
				return
			}
			roots[i] = ks.Root()
		})
	}
	wg.Wait()
	for _, r := range roots {
		if r == nil || !r.Equal(roots[0]) {
			t.Fatal("keystores opened at the same time have different roots")
		}
	}
	wantConsistent(t, dir, c.Now())
}

func TestOperatorsKeyForms(t *testing.T) {
	ec := ecKey(t)
	rsaKey := must(rsaKey())(t)
	blocks := map[string]*pem.Block{
		"SEC 1":  {Type: "EC PRIVATE KEY", Bytes: must(x509.MarshalECPrivateKey(ec))(t)},
		"PKCS#1": {Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)},
		"PKCS#8": {Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(rsaKey))(t)},
	}
	for name, b := range blocks {
		key := must(ParseKey(pem.EncodeToMemory(b)))(t)
		if !SamePublic(key.Public(), ec.Public()) && !SamePublic(key.Public(), rsaKey.Public()) {
			t.Errorf("%s: another key", name)
		}
	}
	one := pem.EncodeToMemory(blocks["SEC 1"])
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"two":       {slices.Concat(one, one), "more than one"},
		"encrypted": {pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}}), "unencrypted"},
		"garbage":   {pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}), "not a usable private key"},
		"text":      {[]byte("secret"), "not a private key"},
	} {
		_, err := ParseKey(tt.data)
		wantError(t, err, tt.want)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error quotes the file: %v", name, err)
		}
	}
}
