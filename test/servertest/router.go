package servertest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/pki"
	"netkeep.internal/test/scripted"
)

// Router is an enrolled edge router with what it needs to connect.
type Router struct {
	ID, Name string
	Cert     tls.Certificate
	Server   *Server // that it connects to
}

// AddRouter creates an edge router and enrolls it, with what more it says then.
func (s *Server) AddRouter(t testing.TB, more ...M) *Router {
	t.Helper()
	return s.EnrollRouter(t, s.Admin(t).Post("edge-routers", M{"name": Unique("router")}).Want(201).ID(), more...)
}

// EnrollRouter enrolls an edge router that there is.
func (s *Server) EnrollRouter(t testing.TB, id string, more ...M) *Router {
	t.Helper()
	r := &Router{ID: id, Name: s.Admin(t).Get("edge-routers/" + id).Want(200).Data()["name"].(string), Server: s}
	r.Enroll(t, more...)
	return r
}

// Enroll uses the invitation that the router has.
func (r *Router) Enroll(t testing.TB, more ...M) {
	t.Helper()
	jwt := r.Server.Admin(t).Get("edge-routers/" + r.ID).Want(200).Data()["enrollmentToken"].(string)
	key, csr := r.Request(t)
	body := M{"certCsr": csr, "serverCertCsr": csr}
	for _, m := range more {
		maps.Copy(body, m)
	}
	answer := r.Server.Nobody(t).Post("/edge/client/v1/enroll/erott?token="+url.QueryEscape(jwt), body).Want(200)
	r.Cert = Pair(key, answer.Data()["cert"].(string))
}

// Request makes a key and asks for a certificate of it.
func (r *Router) Request(t testing.TB) (key *ecdsa.PrivateKey, csr string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: r.ID}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// Pair is a key with its certificate and what leads from that to the root.
func Pair(key *ecdsa.PrivateKey, chain string) tls.Certificate {
	cert := tls.Certificate{PrivateKey: key}
	for rest := []byte(chain); ; {
		block, more := pem.Decode(rest)
		if block == nil {
			return cert
		}
		cert.Certificate, rest = append(cert.Certificate, block.Bytes), more
	}
}

// Fingerprint is that of the certificate that it connects with.
func (r *Router) Fingerprint(t testing.TB) string {
	t.Helper()
	leaf, err := x509.ParseCertificate(r.Cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return pki.Fingerprint(leaf)
}

// Options are those of a well-behaved router.
func (r *Router) Options() scripted.Options {
	cfg := r.Server.TLS()
	cfg.Certificates = []tls.Certificate{r.Cert}
	return scripted.Options{
		Address: strings.TrimPrefix(r.Server.URL, "https://"), TLS: cfg, ID: r.ID, Now: time.Now, Edge: "127.0.0.1:3022",
	}
}

// Connect is [Connect] with its options, changed.
func (r *Router) Connect(t testing.TB, change ...func(*scripted.Options)) *scripted.Router {
	t.Helper()
	opt := r.Options()
	for _, f := range change {
		f(&opt)
	}
	return Connect(t, opt)
}

// Connect has a router connect and waits until it knows everything.
func Connect(t testing.TB, opt scripted.Options) *scripted.Router {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := scripted.Connect(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Await(ctx, func(k scripted.Known) bool { return k.Synced > 0 }); err != nil {
		t.Fatalf("a router that connects gets to know nothing: %v", err)
	}
	return c
}
