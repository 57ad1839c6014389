package enroll

import (
	"context"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/url"
	"strings"

	"netkeep.internal/internal/lang/method"
	"netkeep.internal/internal/pki"
)

// Names are those that a router is reached under.
type Names struct {
	DNS    []string `yaml:"dns"`
	IPs    []string `yaml:"ip"`
	Emails []string `yaml:"email"`
	URIs   []string `yaml:"uri"`
}

// Add takes one more host: an IP address or a name.
func (n *Names) Add(host string) {
	if net.ParseIP(host) != nil {
		n.IPs = append(n.IPs, host)
	} else {
		n.DNS = append(n.DNS, host)
	}
}

// template is a certificate request for the names.
func (n Names) template(commonName string) (x509.CertificateRequest, error) {
	t := x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName}, DNSNames: n.DNS, EmailAddresses: n.Emails}
	for _, text := range n.IPs {
		ip := net.ParseIP(strings.TrimSpace(text))
		if ip == nil {
			return t, &net.ParseError{Type: "IP address", Text: text}
		}
		t.IPAddresses = append(t.IPAddresses, ip)
	}
	for _, text := range n.URIs {
		u, err := url.Parse(text)
		if err != nil {
			return t, err
		}
		t.URIs = append(t.URIs, u)
	}
	return t, nil
}

// Router is what a router is started with, as PEM each.
type Router struct {
	Key, Cert, ServerCert, CA []byte
}

// Router enrolls a router with a key, for which the controller issues two
// certificates: one to call with and one to be called under. With digests it is
// one that compares digests, and is never to know a token that nobody has shown
// it; routers of others need tokens.
func (c *Controller) Router(ctx context.Context, key crypto.Signer, names Names, digests bool) (*Router, error) {
	if err := c.wrongWay(method.ErOTT, method.TrOTT); err != nil {
		return nil, err
	}
	template, err := names.template(c.inv.Subject)
	if err != nil {
		return nil, err
	}
	// One key serves for both, as routers expect.
	csr, err := pki.NewCSR(key, template)
	if err != nil {
		return nil, err
	}
	var got certs
	if err := c.enrollJSON(ctx, map[string]any{"certCsr": string(csr), "serverCertCsr": string(csr), "takesDigests": digests}, &got); err != nil {
		return nil, err
	}
	for _, text := range []string{got.Cert, got.ServerCert} {
		if err := c.issued(text, key); err != nil {
			return nil, err
		}
	}
	r := &Router{Cert: []byte(got.Cert), ServerCert: []byte(got.ServerCert), CA: pki.EncodeCertificates(c.vouches...)}
	r.Key, err = pki.EncodeKey(key)
	return r, err
}
