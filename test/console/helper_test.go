package console

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/hotp"

	"netkeep.internal/test/servertest"
)

var regexpToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

func unescaped(text string) string { return html.UnescapeString(text) }

// totp is the one-time code of now.
func totp(t testing.TB, provisioning string) string {
	t.Helper()
	u, err := url.Parse(provisioning)
	if err != nil {
		t.Fatal(err)
	}
	code, err := hotp.GenerateCode(u.Query().Get("secret"), uint64(time.Now().Unix()/30))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// certificateOf enrolls an admin and returns its certificate.
func certificateOf(t testing.TB, s *servertest.Server) tls.Certificate {
	t.Helper()
	c := s.Admin(t)
	id := c.Post("identities", servertest.M{
		"name": servertest.Unique("holder"), "type": "User", "isAdmin": true, "enrollment": servertest.M{"ott": true},
	}).Want(http.StatusCreated).ID()
	token := c.Get("identities/" + id).At("data.enrollment.ott.token").(string)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	csr := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	b := open(t, s)
	resp, err := b.http.Post(s.URL+"/edge/client/v1/enroll/ott?token="+url.QueryEscape(token), "text/plain", strings.NewReader(string(csr)))
	if err != nil {
		t.Fatal(err)
	}
	chain, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("enrolling: %s %s %v", resp.Status, chain, err)
	}
	return servertest.Pair(key, string(chain))
}
