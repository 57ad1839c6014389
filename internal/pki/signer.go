package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"time"
)

// backdate is how far before now a certificate begins, for peers whose clock
// is minutes behind.
const backdate = 10 * time.Minute

const (
	day                  = 24 * time.Hour
	rootLifetime         = 20 * 365 * day
	intermediateLifetime = 15 * 365 * day
	serverLifetime       = 365 * day
)

// Signer issues certificates under the intermediate CA. It is safe for use by
// several goroutines.
type Signer struct {
	// ca is who signs now, and the certificates that go along with what it signs:
	// its own first.
	ca  func() (authority, []*x509.Certificate)
	now func() time.Time
	log *slog.Logger
}

// authority is a CA certificate with its key. The key of a root may be nil: it
// is not needed once the intermediate exists.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// Sign issues a certificate for the holder of pub, saying what the grant
// permits and no more, and returns it followed by the certificate that signed
// it and those that lead from there to a root that peers know. It ends with the signing CA if the grant would outlive that.
func (s *Signer) Sign(g Grant, pub crypto.PublicKey) ([]*x509.Certificate, error) {
	if len(g.usage) == 0 {
		return nil, errors.New("signing certificate: the grant permits nothing")
	}
	if err := checkPublic(pub); err != nil {
		return nil, fmt.Errorf("signing certificate: %w", err)
	}
	ca, along := s.ca()
	leaf, err := ca.issue(&x509.Certificate{
		Subject:               pkix.Name{CommonName: g.commonName},
		DNSNames:              g.dns,
		IPAddresses:           g.ips,
		EmailAddresses:        g.emails,
		URIs:                  g.uris,
		KeyUsage:              leafUsage(pub),
		ExtKeyUsage:           g.usage,
		BasicConstraintsValid: true,
	}, pub, s.now(), g.lifetime)
	if err != nil {
		return nil, fmt.Errorf("signing certificate: %w", err)
	}
	logMade(s.log, leaf)
	return append([]*x509.Certificate{leaf}, along...), nil
}

// logMade tells of a new certificate what it takes to find it again.
func logMade(log *slog.Logger, cert *x509.Certificate) {
	log.Info("certificate made", "subject", cert.Subject.String(), "serial", cert.SerialNumber.Text(16), "notAfter", cert.NotAfter, "fingerprint", Fingerprint(cert))
}

// leafUsage adds key encipherment for RSA alone: other kinds of key cannot do
// it.
func leafUsage(pub crypto.PublicKey) x509.KeyUsage {
	if _, ok := pub.(*rsa.PublicKey); ok {
		return x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	}
	return x509.KeyUsageDigitalSignature
}

// issue fills in what is the same for all certificates, serial number and
// dates, and signs.
func (a authority) issue(t *x509.Certificate, pub crypto.PublicKey, now time.Time, lifetime time.Duration) (*x509.Certificate, error) {
	t.NotBefore, t.NotAfter = now.Add(-backdate), now.Add(lifetime)
	if t.NotBefore.Before(a.cert.NotBefore) {
		t.NotBefore = a.cert.NotBefore
	}
	if t.NotAfter.After(a.cert.NotAfter) {
		t.NotAfter = a.cert.NotAfter
	}
	if !t.NotAfter.After(now) {
		return nil, fmt.Errorf("the signing CA %q expired on %s", a.cert.Subject.CommonName, a.cert.NotAfter.Format(time.DateOnly))
	}
	return certify(t, a.cert, pub, a.key)
}

// newRoot makes the root certificate of a key. The subject follows from the
// key, so that the roots of two networks are never taken for one another.
func newRoot(key crypto.Signer, now time.Time) (*x509.Certificate, error) {
	t, err := caTemplate("Netkeep Root CA", key.Public())
	if err != nil {
		return nil, err
	}
	t.NotBefore, t.NotAfter = now.Add(-backdate), now.Add(rootLifetime)
	return certify(t, t, key.Public(), key)
}

// newIntermediate makes the certificate of the CA that signs everything else.
// It can sign no further CA.
func newIntermediate(root authority, key crypto.Signer, now time.Time) (*x509.Certificate, error) {
	t, err := caTemplate("Netkeep Signing CA", key.Public())
	if err != nil {
		return nil, err
	}
	t.MaxPathLenZero = true
	return root.issue(t, key.Public(), now, intermediateLifetime)
}

func caTemplate(name string, pub crypto.PublicKey) (*x509.Certificate, error) {
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, fmt.Errorf("encoding CA key: %w", err)
	}
	sum := sha256.Sum256(der)
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: name + " " + hex.EncodeToString(sum[:4])},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}, nil
}

// certify signs the template with a fresh 128-bit serial number.
func certify(t, parent *x509.Certificate, pub crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128))
	if err != nil {
		return nil, fmt.Errorf("making serial number: %w", err)
	}
	t.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, t, parent, pub, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
