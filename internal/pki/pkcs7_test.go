package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/smallstep/pkcs7"
)

func TestPKCS7(t *testing.T) {
	s, root := newSigner(t)
	certs := []*x509.Certificate{signerCert(s), root.cert}
	for n := 1; n <= len(certs); n++ {
		msg := must(PKCS7(certs[:n]))(t)
		parsed := must(pkcs7.Parse(msg))(t)
		if !slices.EqualFunc(parsed.Certificates, certs[:n], (*x509.Certificate).Equal) {
			t.Errorf("read back %d certificates, want %d", len(parsed.Certificates), n)
		}
		if len(parsed.Signers) != 0 || len(parsed.Content) != 0 {
			t.Error("not degenerate")
		}

		text := must(PKCS7Text(certs[:n]))(t)
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		for i, line := range lines {
			if last := i == len(lines)-1; len(line) > 64 || line == "" || !last && len(line) != 64 {
				t.Errorf("line %d has %d characters", i+1, len(line))
			}
		}
		got := must(base64.StdEncoding.DecodeString(strings.Join(lines, "")))(t)
		if !bytes.Equal(got, msg) {
			t.Error("the text is another message")
		}
		back := must(ParsePKCS7Text(text, len(certs)))(t)
		if !slices.EqualFunc(back, certs[:n], (*x509.Certificate).Equal) {
			t.Errorf("read back %d certificates, want %d", len(back), n)
		}
	}
	checkWithOpenSSL(t, certs)
	for text, why := range map[string]string{
		"!": "illegal base64", "AAAA": "PKCS#7", "": "PKCS#7", strings.Repeat("A", maxPEM+1): "at most",
		string(must(PKCS7Text(certs))(t)): "between 1 and 1",
	} {
		_, err := ParsePKCS7Text([]byte(text), 1)
		wantError(t, err, why)
	}
	for _, encode := range []func([]*x509.Certificate) ([]byte, error){PKCS7, PKCS7Text} {
		_, err := encode(nil)
		wantError(t, err, "no certificates")
	}
}

// checkWithOpenSSL reads the message with a parser that shares nothing with
// ours, where there is one.
func checkWithOpenSSL(t *testing.T, certs []*x509.Certificate) {
	t.Helper()
	tool, err := exec.LookPath("openssl")
	if err != nil {
		return
	}
	cmd := exec.CommandContext(t.Context(), tool, "pkcs7", "-inform", "DER", "-print_certs")
	cmd.Stdin = bytes.NewReader(must(PKCS7(certs))(t))
	got := must(ParseCertificates(must(cmd.Output())(t), len(certs)))(t)
	if !slices.EqualFunc(got, certs, (*x509.Certificate).Equal) {
		t.Errorf("openssl reads %d certificates", len(got))
	}
}
