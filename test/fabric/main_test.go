// Package fabric tests a controller with routers that follow a script: they
// connect as real ones do and carry nothing.
package fabric

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// M is a JSON object.
type M = servertest.M

const (
	management = "/edge/management/v1/"
	client     = "/edge/client/v1/"
	// soon is how long anything may take that happens at once.
	soon = time.Minute
)

// router is an enrolled router.
type router struct{ *servertest.Router }

// addRouter creates an edge router and enrolls it, with what more it says then.
func addRouter(t *testing.T, s *servertest.Server, more ...M) *router {
	t.Helper()
	return &router{s.AddRouter(t, more...)}
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
