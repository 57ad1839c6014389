package remote

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/pki"
)

// maxAuthorities is how many certificates a controller may say to trust.
const maxAuthorities = 100

// Known reports whether a controller is vouched for by CAs, as PEM, or if there
// are none by those that the machine itself trusts.
func Known(ctx context.Context, address, cas string) (bool, error) {
	at, err := url.Parse(address)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	config, err := trusting(cas)
	if err != nil {
		return false, err
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", at.Host)
	if err == nil {
		return true, conn.Close()
	}
	if _, unverified := errors.AsType[*tls.CertificateVerificationError](err); unverified {
		return false, nil
	}
	return false, Explain(address, err)
}

// trusting is how one connects to who is vouched for by CAs.
func trusting(cas string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if cas != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(cas)) {
			return nil, errors.New("the profile's CA holds no certificate; log in again")
		}
	}
	return config, nil
}

// Authority returns the certificate that vouches for a controller, by what it
// says itself. Only a person who knows its fingerprint can say whether that is
// true.
func Authority(ctx context.Context, address string) (*x509.Certificate, error) {
	return authority(ctx, address)
}

// OwnProtocol is offered in the handshake by who wants to see the certificate that the
// controller has of its network, also if it serves one of another authority.
const OwnProtocol = "netkeep-own"

// OwnProtocols are all that such a client offers: nothing is spoken but HTTP.
var OwnProtocols = []string{OwnProtocol, "http/1.1"}

// OwnAuthority is Authority of the certificate that it has of its network.
func OwnAuthority(ctx context.Context, address string) (*x509.Certificate, error) {
	return authority(ctx, address, OwnProtocols...)
}

func authority(ctx context.Context, address string, protocols ...string) (*x509.Certificate, error) {
	var shown []*x509.Certificate
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         protocols,
		InsecureSkipVerify: true, // nothing is sent but the question whom to trust
		VerifyConnection: func(state tls.ConnectionState) error {
			shown = state.PeerCertificates
			return nil
		},
	}
	c := WithTLS(Account{Address: address}, config)
	defer c.Close()
	var text []byte
	if err := c.Call(ctx, Request{Method: http.MethodGet, Path: "//edge/client/v1/.well-known/est/cacerts"}, &text); err != nil {
		return nil, err
	}
	said, err := pki.ParsePKCS7Text(text, maxAuthorities)
	if err != nil {
		return nil, fmt.Errorf("%s does not say whom to trust (%w); is it a controller? Otherwise give its CA with --ca FILE", address, err)
	}
	return vouching(address, shown, said)
}

// Follow asks a controller that is trusted who vouches for it from now on, and
// returns those, as PEM; the same text if they are the same. Others are believed
// if those who are trusted at present have signed them, and not for the word of
// who has a server's key.
func (c *Client) Follow(ctx context.Context, present string, now time.Time) (string, error) {
	known, err := pki.ParseCertificates([]byte(present), maxAuthorities)
	if err != nil {
		return present, err
	}
	var text []byte
	if err := c.Call(ctx, Request{Method: http.MethodGet, Path: "//edge/client/v1/.well-known/est/cacerts", Stranger: true}, &text); err != nil {
		return present, err
	}
	told, err := pki.ParsePKCS7Text(text, maxAuthorities)
	if err != nil {
		return present, err
	}
	shown := c.shown.Load()
	if shown == nil {
		return present, nil
	}
	next := pki.Vouched(known, told, *shown)
	if _, err := pki.NewRoots(next).VerifyLeaf(*shown, pki.VerifyOptions{Now: now}); err != nil || pki.SameSet(next, pki.SelfSigned(known)) {
		return present, nil // it has a certificate of others, or nothing has changed
	}
	return string(pki.EncodeCertificates(next...)), nil
}

// vouching returns the root among those said from which the shown chain comes.
func vouching(address string, shown, said []*x509.Certificate) (*x509.Certificate, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, cert := range said {
		if cert.CheckSignatureFrom(cert) == nil {
			roots.AddCert(cert)
		} else {
			between.AddCert(cert)
		}
	}
	for _, cert := range shown[1:] {
		between.AddCert(cert)
	}
	host, _, err := net.SplitHostPort(at.Host)
	if err != nil {
		return nil, err
	}
	chains, err := shown[0].Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between})
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return nil, fmt.Errorf("%w: the certificate of %s is of an authority that neither this machine nor the controller names; if it is yours, give its certificate with --ca FILE", ErrUnreachable, address)
	}
	if err != nil {
		return nil, Explain(address, err)
	}
	// While one root takes another's place both vouch for it: the nearer is the
	// one that stays.
	best := slices.MinFunc(chains, func(a, b []*x509.Certificate) int { return len(a) - len(b) })
	return best[len(best)-1], nil
}

// Fingerprint is by what people recognise a certificate.
func Fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// SameFingerprint compares fingerprints as people write them.
func SameFingerprint(a, b string) bool {
	bare := strings.NewReplacer(":", "", " ", "", "sha256", "", "SHA256", "")
	return strings.EqualFold(bare.Replace(a), bare.Replace(b))
}

// PEM is a certificate as a profile keeps it.
func PEM(cert *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}
