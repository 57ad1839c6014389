package sdk

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/pki"
)

// credentials are an identity's file, understood.
type credentials struct {
	file    string
	address string   // of the controller, with the scheme
	also    []string // of the other controllers that the file names
	root    string   // path of the Client API
	tls     *tls.Config
	pair    atomic.Pointer[tls.Certificate] // that is shown
	trust   atomic.Pointer[trust]           // nil if those of the system are trusted
	shown   atomic.Pointer[[]*x509.Certificate]
}

// trust is whom one believes: who signs for the network.
type trust struct {
	cas  []*x509.Certificate
	pool *x509.CertPool
}

func newTrust(cas []*x509.Certificate) *trust {
	t := &trust{cas, x509.NewCertPool()}
	for _, ca := range cas {
		t.pool.AddCert(ca)
	}
	return t
}

// config is what connections are made with from now on.
func (c *credentials) config() *tls.Config {
	config := c.tls.Clone()
	if t := c.trust.Load(); t != nil {
		config.RootCAs = t.pool
	}
	return config
}

// maxAuthorities is how many certificates one may be told to trust.
const maxAuthorities = 100

// clientRoot is where the Client API is if the file does not say.
const clientRoot = "/edge/client/v1"

// load reads an identity's file. A certificate whose time has not come is told
// from one that the controller refuses for other reasons; one whose time is
// over may be let in, and renewed.
func load(path string, now time.Time) (*credentials, error) {
	id, err := remote.ReadIdentity(path)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(id.API)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("%s names no controller: %q is no address; enroll the identity again", path, id.API)
	}
	pair, err := tls.X509KeyPair([]byte(id.ID.Cert), []byte(id.ID.Key))
	if err != nil {
		return nil, fmt.Errorf("the certificate or the key in %s is damaged (%v); restore the file, or enroll the identity again", path, err)
	}
	if leaf := pair.Leaf; now.Before(leaf.NotBefore) {
		return nil, fmt.Errorf("the certificate in %s begins at %s, and this machine's clock says %s: set the clock",
			path, moment(leaf.NotBefore), moment(now))
	}
	c := &credentials{
		file: path, address: "https://" + at.Host, also: id.Others(), root: strings.TrimSuffix(at.Path, "/"),
		tls: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	c.pair.Store(&pair)
	c.tls.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.pair.Load(), nil }
	if c.root == "" {
		c.root = clientRoot
	}
	if id.ID.CA != "" {
		cas, err := pki.ParseCertificates([]byte(id.ID.CA), maxAuthorities)
		if err != nil || len(cas) == 0 {
			return nil, fmt.Errorf("the CA in %s holds no certificate; restore the file, or enroll the identity again", path)
		}
		c.trust.Store(newTrust(cas))
	}
	return c, nil
}

// heir is the file that may take the place of the identity's.
func (c *credentials) heir() disk.Heir {
	path := c.file
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return disk.Heir{Path: path + ".next", Of: path}
}

// others are the certificates in the identity's files that are not shown at
// present: another program may have renewed ours, or somebody enrolled again.
func (c *credentials) others(now time.Time) []*tls.Certificate {
	var all []*tls.Certificate
	for _, path := range []string{c.file, c.heir().Path} {
		if other, err := load(path, now); err == nil && !same(other.pair.Load(), c.pair.Load()) {
			all = append(all, other.pair.Load())
		}
	}
	return all
}

// same reports whether two certificates are one.
func same(a, b *tls.Certificate) bool { return a.Leaf.Equal(b.Leaf) }

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
