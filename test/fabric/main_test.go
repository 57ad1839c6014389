// Package fabric tests a controller with routers that follow a script: they
// connect as real ones do and carry nothing.
package fabric

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

	"netkeep/internal/fabric/scripted"
	"netkeep/internal/model"
	"netkeep/internal/pki"
	"netkeep/test/servertest"
)

// M is a JSON object.
type M = servertest.M

const (
	management = "/edge/management/v1/"
	client     = "/edge/client/v1/"
	// soon is how long anything may take that happens at once.
	soon = time.Minute
)

// router is an enrolled router with what it needs to connect.
type router struct {
	id, name string
	cert     tls.Certificate
	server   *servertest.Server
}

// addRouter creates an edge router and enrolls it, with what more it says then.
func addRouter(t *testing.T, s *servertest.Server, more ...M) *router {
	t.Helper()
	r := &router{name: servertest.Unique("router"), server: s}
	admin := s.Admin(t)
	r.id = admin.Post(management+"edge-routers", M{"name": r.name}).Want(201).ID()
	r.enroll(t, more...)
	return r
}

// enroll uses the invitation that the router has.
func (r *router) enroll(t *testing.T, more ...M) {
	t.Helper()
	jwt := r.server.Admin(t).Get(management + "edge-routers/" + r.id).Want(200).Data()["enrollmentToken"].(string)
	key, csr := r.request(t)
	body := M{"certCsr": csr, "serverCertCsr": csr}
	for _, m := range more {
		maps.Copy(body, m)
	}
	answer := r.server.Nobody(t).Post(client+"enroll/erott?token="+url.QueryEscape(jwt), body).Want(200)
	r.cert = pair(key, answer.Data()["cert"].(string))
}

// request makes a key and asks for a certificate of it.
func (r *router) request(t *testing.T) (key *ecdsa.PrivateKey, csr string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: r.id}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// pair is a key with its certificate and what leads from that to the root.
func pair(key *ecdsa.PrivateKey, chain string) tls.Certificate {
	cert := tls.Certificate{PrivateKey: key}
	for rest := []byte(chain); ; {
		block, more := pem.Decode(rest)
		if block == nil {
			return cert
		}
		cert.Certificate, rest = append(cert.Certificate, block.Bytes), more
	}
}

// fingerprint is that of the certificate that it connects with.
func (r *router) fingerprint(t *testing.T) string {
	t.Helper()
	leaf, err := x509.ParseCertificate(r.cert.Certificate[0])
	must(t, err)
	return pki.Fingerprint(leaf)
}

// options are those of a well-behaved router.
func (r *router) options() scripted.Options {
	cfg := r.server.TLS()
	cfg.Certificates = []tls.Certificate{r.cert}
	return scripted.Options{
		Address: strings.TrimPrefix(r.server.URL, "https://"), TLS: cfg, ID: r.id, Now: time.Now,
		Edge: net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 3022},
	}
}

// connect has the router connect and waits until it knows everything.
func (r *router) connect(t *testing.T, change ...func(*scripted.Options)) *scripted.Router {
	t.Helper()
	opt := r.options()
	for _, f := range change {
		f(&opt)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	c, err := scripted.Connect(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	await(t, c, "it knows everything", func(k scripted.Known) bool { return k.Synced > 0 })
	return c
}

// await fails the test unless the router gets to know something in time.
func await(t *testing.T, c *scripted.Router, what string, wanted func(scripted.Known) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if err := c.Await(ctx, wanted); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// network is a service that one user hosts and another dials.
type network struct {
	*servertest.Server
	service      string
	host, dialer *servertest.Client
	// hostUser and dialUser are who they are.
	hostUser, dialUser servertest.User
	// hosting and dialing are tokens of sessions.
	hosting, dialing string
	dialPolicy       string
}

// addNetwork makes a service with everything around it.
func addNetwork(t *testing.T, s *servertest.Server) *network {
	t.Helper()
	n := &network{Server: s}
	admin := s.Admin(t)
	host, dialer := s.AddUser(t, false), s.AddUser(t, false)
	n.service = admin.Post(management+"services", M{"name": servertest.Unique("service"), "encryptionRequired": false}).Want(201).ID()
	everyone := func(path, roles string) {
		admin.Post(management+path, M{
			"name": servertest.Unique("all"), "semantic": "AnyOf", "edgeRouterRoles": []string{"#all"}, roles: []string{"#all"},
		}).Want(201)
	}
	everyone("edge-router-policies", "identityRoles")
	everyone("service-edge-router-policies", "serviceRoles")
	policy := func(typ string, u servertest.User) string {
		return admin.Post(management+"service-policies", M{
			"name": servertest.Unique(typ), "type": typ, "semantic": "AnyOf",
			"identityRoles": []string{"@" + u.ID}, "serviceRoles": []string{"@" + n.service},
		}).Want(201).ID()
	}
	policy(model.Bind, host)
	n.dialPolicy = policy(model.Dial, dialer)
	n.hostUser, n.dialUser = host, dialer
	n.host, n.dialer = login(t, s, host), login(t, s, dialer)
	n.hosting, n.dialing = n.session(t, n.host, model.Bind), n.session(t, n.dialer, model.Dial)
	return n
}

// session returns the token of a new session.
func (n *network) session(t *testing.T, who *servertest.Client, typ string) string {
	t.Helper()
	return who.For(t).Post(client+"sessions", M{"serviceId": n.service, "type": typ}).Want(201).Data()["token"].(string)
}

// login opens a session that routers are told of: one with a certificate.
func login(t *testing.T, s *servertest.Server, u servertest.User) *servertest.Client {
	t.Helper()
	c := s.Login(t, u.Username, u.Password)
	c.Post(client+"current-api-session/certificates", M{"csr": csrOf(t, newKey(t))}).Want(201)
	return c
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

// csrOf asks for a certificate of a key.
func csrOf(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, new(x509.CertificateRequest), key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}
