package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// base is when tests take place, unless they say otherwise.
var base = time.Date(2030, 5, 17, 12, 0, 0, 0, time.UTC)

// clock is a time that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: base} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// must returns v and fails the test on an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ecKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

// rsaKey makes one RSA key for all tests, as that is slow.
var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// newAuthority makes a root for tests that need no keystore.
func newAuthority(t testing.TB) authority {
	t.Helper()
	key := ecKey(t)
	return authority{cert: must(newRoot(key, base))(t), key: key}
}

func newSigner(t testing.TB) (*Signer, authority) {
	t.Helper()
	root := newAuthority(t)
	key := ecKey(t)
	cert := must(newIntermediate(root, key, base))(t)
	signing := func() (authority, []*x509.Certificate) {
		return authority{cert: cert, key: key}, []*x509.Certificate{cert}
	}
	return &Signer{ca: signing, now: func() time.Time { return base }, log: slog.New(slog.DiscardHandler)}, root
}

func clientChain(t testing.TB, s *Signer, key crypto.Signer) []*x509.Certificate {
	t.Helper()
	grant := must(ClientGrant("client", nil, time.Hour))(t)
	return must(s.Sign(grant, key.Public()))(t)
}

// MACKey is the current key for a purpose.
func (ks *Keystore) MACKey(purpose string) ([]byte, error) {
	keys, err := ks.MACKeys(purpose)
	return keys.Current, err
}

// contents reads every file of a directory.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, e := range must(os.ReadDir(dir))(t) {
		files[e.Name()] = string(must(os.ReadFile(filepath.Join(dir, e.Name())))(t))
	}
	return files
}

// wantError checks that err is one line and says all of the words.
func wantError(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", words)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error of several lines: %q", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// signerCert is the certificate of who signs.
func signerCert(s *Signer) *x509.Certificate {
	ca, _ := s.ca()
	return ca.cert
}
