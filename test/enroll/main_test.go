// Package enroll_test takes every way into the network, with real keys over
// real TLS, and tries to take each of them wrongly.
package enroll_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

type M = servertest.M

var shared *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, &shared) }

// holder is a client, perhaps with a certificate and a session.
type holder struct {
	t     *testing.T
	cert  *tls.Certificate
	token string
	at    *servertest.Server // shared if nil
}

// reply is what came back.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	raw    []byte
}

// send makes a request of the Client API.
func (h holder) send(method, path, contentType, accept string, body []byte) reply {
	h.t.Helper()
	server := h.at
	if server == nil {
		server = shared
	}
	cfg := server.TLS()
	if h.cert != nil {
		cfg.Certificates = []tls.Certificate{*h.cert}
	}
	transport := &http.Transport{TLSClientConfig: cfg}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequest(method, server.URL+"/edge/client/v1/"+path, bytes.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": contentType, "Accept": accept, "zt-session": h.token} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	server.Heard(req, body, &servertest.Answer{Status: resp.StatusCode, Header: resp.Header, Raw: raw})
	return reply{h.t, resp.StatusCode, resp.Header, raw}
}

func (h holder) post(path string, body any) reply {
	h.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.send(http.MethodPost, path, "application/json", "", data)
}

func (r reply) want(status int) reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("status %d, want %d: %s", r.status, status, r.raw)
	}
	return r
}

func (r reply) fails(status int, code string) {
	r.t.Helper()
	var e struct{ Error struct{ Code string } }
	if err := json.Unmarshal(r.raw, &e); err != nil || r.status != status || e.Error.Code != code {
		r.t.Errorf("status %d, want %d with %s: %s", r.status, status, code, r.raw)
	}
}

func (r reply) data() M {
	r.t.Helper()
	var e struct{ Data M }
	if err := json.Unmarshal(r.raw, &e); err != nil {
		r.t.Fatalf("%v: %s", err, r.raw)
	}
	return e.Data
}

func (r reply) list() []M {
	r.t.Helper()
	var e struct{ Data []M }
	if err := json.Unmarshal(r.raw, &e); err != nil {
		r.t.Fatalf("%v: %s", err, r.raw)
	}
	return e.Data
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newCSR returns a PEM CSR.
func newCSR(t *testing.T, key crypto.Signer, template x509.CertificateRequest) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// authority is a CA of somebody else.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t)}
	a.cert = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: servertest.Unique("ca")}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, a.key.Public())
	return a
}

// sign issues a certificate that is valid for an hour unless the template says
// otherwise.
func (a *authority) sign(template *x509.Certificate, pub crypto.PublicKey) *x509.Certificate {
	a.t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = serial
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent := a.cert
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, pub, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// client returns a certificate for a client with its key.
func (a *authority) client(template x509.Certificate) *tls.Certificate {
	a.t.Helper()
	key := newKey(a.t)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	cert := a.sign(&template, key.Public())
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func (a *authority) pem() string { return encode(a.cert) }

func encode(cert *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

// register adds the CA and, if asked to, verifies it.
func (a *authority) register(c *servertest.Client, verify bool, change M) string {
	a.t.Helper()
	body := M{
		"name": servertest.Unique("ca"), "certPem": a.pem(), "isAuthEnabled": true, "isAutoCaEnrollmentEnabled": true,
		"isOttCaEnrollmentEnabled": true, "identityRoles": []any{"auto"},
	}
	for k, v := range change {
		body[k] = v
	}
	id := c.Post("cas", body).Want(201).ID()
	if verify {
		token := c.Get("cas/" + id).At("data.verificationToken").(string)
		proof := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: token}}, newKey(a.t).Public())
		c.With("Content-Type", "text/plain").Do("POST", "cas/"+id+"/verify", servertest.Raw(encode(proof))).Want(200)
	}
	return id
}

// parse reads the first certificate of a PEM text.
func parse(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("no PEM in %q", text)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// invite adds an identity with an enrollment and returns its id and token.
func invite(t *testing.T, c *servertest.Client, how M) (id, token string) {
	t.Helper()
	id = c.Post("identities", M{"name": servertest.Unique("who"), "type": "Device", "isAdmin": false, "enrollment": how}).Want(201).ID()
	for _, e := range c.Get("identities/" + id).At("data.enrollment").(M) {
		token = e.(M)["token"].(string)
	}
	return id, token
}

func query(pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return "?" + v.Encode()
}

// keys are one of each kind that may enroll.
func keys(t *testing.T) map[string]crypto.Signer {
	t.Helper()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"RSA": rsaKey, "EC": newKey(t), "Ed25519": edKey}
}
