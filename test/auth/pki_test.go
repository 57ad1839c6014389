package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/http"
	"net/url"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/test/certtest"
	"netkeep.internal/test/servertest"
)

// certificate is one with its key.
type certificate struct {
	*x509.Certificate
	key crypto.Signer
}

// text is the certificate as PEM.
func (c certificate) text() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

// with returns what a client presents: this certificate, and others after it.
func (c certificate) with(others ...certificate) *tls.Certificate {
	chain := &tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: c.key}
	for _, other := range others {
		chain.Certificate = append(chain.Certificate, other.Raw)
	}
	return chain
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// template changes what is in a certificate.
type template = certtest.Change

func named(name string) template {
	return func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: name} }
}

func lasting(from, to time.Duration) template {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(to) }
}

func withURI(text string) template {
	return func(c *x509.Certificate) {
		u, err := url.Parse(text)
		if err != nil {
			panic(err) // they are all written here
		}
		c.URIs = append(c.URIs, u)
	}
}

func authority(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign }

func expired(c *x509.Certificate) { lasting(-2*time.Hour, -time.Hour)(c) }

// newRoot makes the CA of somebody else.
func newRoot(t testing.TB, changes ...template) certificate {
	t.Helper()
	return certify(t, newKey(t), nil, append([]template{named(servertest.Unique("ca")), authority}, changes...))
}

// issue makes a certificate that c signs.
func (c certificate) issue(t testing.TB, changes ...template) certificate {
	t.Helper()
	return certify(t, newKey(t), &c, changes)
}

// certify makes a certificate for a key, which signs it itself if by is nil.
func certify(t testing.TB, key crypto.Signer, by *certificate, changes []template) certificate {
	t.Helper()
	var signer *certtest.Pair
	if by != nil {
		signer = &certtest.Pair{Certificate: by.Certificate, Key: by.key}
	}
	all := append([]template{named(servertest.Unique("leaf"))}, changes...)
	return certificate{certtest.Sign(t, key, signer, all...).Certificate, key}
}

// ours has the controller issue a certificate, and returns it with the CA
// that signed it.
func ours(t testing.TB, key crypto.Signer, lifetime time.Duration) (leaf, ca certificate) {
	t.Helper()
	grant, err := pki.ClientGrant(servertest.Unique("client"), []*url.URL{}, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := shared.Keys().Signer().Sign(grant, key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return certificate{chain[0], key}, certificate{Certificate: chain[1]}
}

// addCertificate gives an identity a certificate and returns the
// authenticator.
func addCertificate(t testing.TB, id string, c certificate) string {
	t.Helper()
	a := shared.Admin(t).Post("authenticators", M{"identityId": id, "method": "cert", "certPem": c.text()})
	return a.Want(http.StatusCreated).ID()
}

// certified adds an identity with a certificate of the controller's own.
func certified(t testing.TB, change M) (id string, leaf certificate) {
	t.Helper()
	id = add(t, change)
	leaf, _ = ours(t, newKey(t), time.Hour)
	addCertificate(t, id, leaf)
	return id, leaf
}

// register makes a CA known, and verified, to the controller.
func register(t testing.TB, ca certificate, change M) string {
	t.Helper()
	body := M{
		"name": servertest.Unique("ca"), "certPem": ca.text(), "isAuthEnabled": true, "isAutoCaEnrollmentEnabled": false,
		"isOttCaEnrollmentEnabled": false, "identityRoles": []any{},
	}
	for name, value := range change {
		body[name] = value
	}
	id := shared.Admin(t).Post("cas", body).Want(http.StatusCreated).ID()
	edit(t, model.CAs, id, func(ca *model.CA) { ca.IsVerified = true })
	return id
}

// byName finds external ids in the common name.
func byName() M {
	return M{"location": "COMMON_NAME", "matcher": "ALL", "matcherCriteria": nil, "parser": "NONE", "parserCriteria": nil, "index": 0}
}

// present tries a certificate. It returns nil if even TLS refuses it.
func present(t testing.TB, chain *tls.Certificate) *servertest.Answer {
	t.Helper()
	config := shared.TLS()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return chain, nil }
	conn, err := tls.Dial("tcp", shared.Address(), config)
	if err != nil {
		return nil
	}
	// With TLS 1.3 the client is done before its certificate is looked at: one
	// request shows what became of it.
	_, err = conn.Write([]byte("GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	_ = conn.Close()
	if err != nil {
		return nil
	}
	return shared.Nobody(t).Presenting(chain).Post(byCert, M{})
}
