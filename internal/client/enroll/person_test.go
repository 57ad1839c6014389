package enroll

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/test/certtest"
)

// public is a key of somebody else, to be signed for.
type public struct{ key crypto.PublicKey }

func (p public) Public() crypto.PublicKey { return p.key }

func (public) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("it is somebody else's")
}

// TestPerson enrolls by a token of an identity provider at a controller that issues what it
// should, and at those that do not.
func TestPerson(t *testing.T) {
	authority := func() certtest.Pair {
		return certtest.New(t, nil, func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign })
	}
	own, other := authority(), authority()
	issue := func(by certtest.Pair, key crypto.PublicKey) string {
		cert := certtest.Sign(t, public{key}, &by, func(c *x509.Certificate) {
			c.KeyUsage, c.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		})
		return string(cert.PEM())
	}
	var asked struct {
		CSR string `json:"clientCsr"`
	}
	answer := func(w http.ResponseWriter) {}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != clientRoot+"/enroll/token" || r.Header.Get("Authorization") != "Bearer good" || r.Header.Get("ziti-token-issuer-id") != "signer" {
			t.Errorf("it is asked %s %s %v", r.Method, r.URL, r.Header)
		}
		asked.CSR = ""
		if err := json.UnmarshalRead(r.Body, &asked); err != nil {
			t.Error(err)
		}
		answer(w)
	}))
	defer server.Close()
	certs := func(by certtest.Pair, mine bool) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if asked.CSR == "" {
				_, _ = io.WriteString(w, `{"data":{"name":"ann"},"meta":{}}`)
				return
			}
			key := crypto.PublicKey(other.PublicKey)
			if mine {
				block, _ := pem.Decode([]byte(asked.CSR))
				csr, err := x509.ParseCertificateRequest(block.Bytes)
				if err != nil {
					t.Error(err)
					return
				}
				key = csr.PublicKey
			}
			_ = json.MarshalWrite(w, map[string]any{"data": map[string]string{"name": "ann", "ca": string(own.PEM()), "cert": issue(by, key)}, "meta": map[string]any{}})
		}
	}
	refuse := func(status int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":{"code":"X","message":"groups of the person are not among those that may enroll"},"meta":{}}`)
		}
	}
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	client := remote.WithTLS(remote.Account{Address: server.URL}, &tls.Config{RootCAs: pool})
	p := Person{Client: client, Token: "good", Signer: "signer", CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))}
	dir := t.TempDir()
	file := filepath.Join(dir, "ann.json")

	answer = certs(own, true)
	name, err := p.Enroll(t.Context(), Request{Output: file, Now: time.Now})
	if err != nil || name != "ann" {
		t.Fatalf("%q, %v", name, err)
	}
	id, err := remote.ReadIdentity(file)
	if err != nil || id.API != server.URL+clientRoot || strings.Count(id.ID.CA, "BEGIN") != 2 {
		t.Errorf("the file is %+v, %v", id, err)
	}
	if _, err := tls.X509KeyPair([]byte(id.ID.Cert), []byte(id.ID.Key)); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if name, err := p.Enroll(t.Context(), Request{Now: time.Now}); err != nil || name != "ann" || asked.CSR != "" {
		t.Errorf("without a file: %q, %v", name, err)
	}
	if _, err := p.Enroll(t.Context(), Request{Output: file, Now: time.Now}); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a file that is there: %v", err)
	}
	for says, bad := range map[string]func(http.ResponseWriter){
		"another key than ours": certs(own, false),
		"not from its own":      certs(other, true),
		"have an admin invite":  refuse(http.StatusNotFound),
		"look at the signer":    refuse(http.StatusUnauthorized),
		"not among those that":  refuse(http.StatusConflict),
		"cannot be read": func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"data":{"name":"ann","ca":"","cert":"x"},"meta":{}}`)
		},
	} {
		answer = bad
		if _, err := p.Enroll(t.Context(), Request{Output: filepath.Join(dir, "bad.json"), Now: time.Now}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("there is %v, %v", left, err)
	}
}
