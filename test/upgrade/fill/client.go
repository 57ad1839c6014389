package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"time"

	"github.com/go-json-experiment/json"
)

// M is a JSON object.
type M = map[string]any

// client calls a controller. What goes wrong ends the run: it panics with an
// error, which fill returns.
type client struct {
	url   string
	root  string
	trust *tls.Config
	token string
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func connect(url, caFile string) *client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(caFile)))
	return &client{url: url, root: "/edge/management/v1/", trust: &tls.Config{RootCAs: pool}}
}

// as returns a client of the Client API, with a certificate if there is one.
func (c *client) as(cert *tls.Certificate) *client {
	other := &client{url: c.url, root: "/edge/client/v1/", trust: c.trust.Clone()}
	if cert != nil {
		other.trust.Certificates = []tls.Certificate{*cert}
	}
	return other
}

// login authenticates and keeps the token.
func (c *client) login(method string, body M) *client {
	c.token = c.post("authenticate?method="+method, body)["token"].(string)
	return c
}

func (c *client) post(path string, body any) M {
	return c.send(http.MethodPost, path, "application/json", must(json.Marshal(body)))
}

func (c *client) get(path string) M { return c.send(http.MethodGet, path, "application/json", nil) }

// add creates something and returns its id.
func (c *client) add(path string, body M) string { return c.post(path, body)["id"].(string) }

// send returns the data of an answer, if it has any.
func (c *client) send(method, path, contentType string, body []byte) M {
	req := must(http.NewRequest(method, c.url+c.root+path, bytes.NewReader(body)))
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "application/json")
	if c.token != "" {
		req.Header.Set("net-session", c.token)
	}
	transport := &http.Transport{TLSClientConfig: c.trust}
	defer transport.CloseIdleConnections()
	resp := must((&http.Client{Transport: transport, Timeout: time.Minute}).Do(req))
	defer resp.Body.Close()
	text := must(io.ReadAll(resp.Body))
	if resp.StatusCode >= http.StatusBadRequest {
		panic(fmt.Errorf("%s %s: status %d: %s", method, path, resp.StatusCode, text))
	}
	var answer struct {
		Data any `json:"data"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		panic(fmt.Errorf("%s %s: %w: %s", method, path, err, text))
	}
	data, _ := answer.Data.(M)
	return data
}

// authority is a CA of somebody else.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newKey() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func newAuthority(name string) *authority {
	a := &authority{key: newKey()}
	a.cert = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, a.key)
	return a
}

// sign issues a certificate for a key that outlives all tests.
func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	template.SerialNumber = must(rand.Int(rand.Reader, big.NewInt(1<<62)))
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().AddDate(50, 0, 0)
	parent := a.cert
	if parent == nil {
		parent = template
	}
	return must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key))))
}

func certPEM(cert *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
}

func keyPEM(key *ecdsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(key))}))
}

func csrPEM(key *ecdsa.PrivateKey, template x509.CertificateRequest) string {
	der := must(x509.CreateCertificateRequest(rand.Reader, &template, key))
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}
