package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
	"time"

	"netkeep/internal/tool/remote"
)

// credentials are an identity's file, understood.
type credentials struct {
	file    string
	address string // of the controller, with the scheme
	root    string // path of the Client API
	tls     *tls.Config
}

// clientRoot is where the Client API is if the file does not say.
const clientRoot = "/edge/client/v1"

// load reads an identity's file. The controller would refuse a certificate
// whose time is over or has not come, and could not say why.
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
	switch leaf := pair.Leaf; {
	case now.After(leaf.NotAfter):
		return nil, fmt.Errorf("the certificate in %s ended at %s: enroll the identity again, unless this machine's clock is wrong (it says %s)",
			path, moment(leaf.NotAfter), moment(now))
	case now.Before(leaf.NotBefore):
		return nil, fmt.Errorf("the certificate in %s begins at %s, and this machine's clock says %s: set the clock",
			path, moment(leaf.NotBefore), moment(now))
	}
	c := &credentials{
		file: path, address: "https://" + at.Host, root: strings.TrimSuffix(at.Path, "/"),
		tls: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
	}
	if c.root == "" {
		c.root = clientRoot
	}
	if id.ID.CA != "" {
		c.tls.RootCAs = x509.NewCertPool()
		if !c.tls.RootCAs.AppendCertsFromPEM([]byte(id.ID.CA)) {
			return nil, fmt.Errorf("the CA in %s holds no certificate; restore the file, or enroll the identity again", path)
		}
	}
	return c, nil
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
