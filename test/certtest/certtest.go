// Package certtest makes certificates for tests, of authorities that nobody knows.
// Nothing outside of tests may import it.
package certtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"testing"
	"time"
)

// Pair is a certificate with its key.
type Pair struct {
	*x509.Certificate
	Key crypto.Signer
}

// Change makes a certificate another one.
type Change func(*x509.Certificate)

// New makes a certificate for a new key. It signs itself if by is nil, and is good for
// an hour before and after now, unless it is changed.
func New(t testing.TB, by *Pair, change ...Change) Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Sign(t, key, by, change...)
}

// Sign is New for a key that there is.
func Sign(t testing.TB, key crypto.Signer, by *Pair, change ...Change) Pair {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "a test's"}, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	for _, f := range change {
		f(template)
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.Certificate, by.Key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return Pair{cert, key}
}

// PEM is the certificate as text.
func (p Pair) PEM() []byte { return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Raw}) }

// Write writes both into files.
func (p Pair) Write(t testing.TB, certFile, keyFile string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(p.Key)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{certFile: p.PEM(), keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
