package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/fault"
)

func csrPEM(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	der := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: name("me")}, key))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func TestParseCSR(t *testing.T) {
	ed := must(must(Ed25519.generator())(t)())(t)
	for _, key := range []crypto.Signer{ecKey(t), must(rsaKey())(t), ed} {
		good := csrPEM(t, key)
		for _, form := range [][]byte{good, bytes.TrimSpace(good), slices.Concat([]byte("\n "), good, []byte("\r\n\n")), bytes.ReplaceAll(good, []byte("\n"), []byte("\r\n"))} {
			csr, err := ParseCSR(form)
			if err != nil {
				t.Errorf("%T: %v", key, err)
			} else if !SamePublic(csr.PublicKey, key.Public()) || csr.Subject.CommonName != "me" {
				t.Errorf("%T: read %v", key, csr.Subject)
			}
		}
	}
}

func TestParseCSRRefuses(t *testing.T) {
	good := csrPEM(t, ecKey(t))
	block, _ := pem.Decode(good)
	encode := func(b pem.Block) []byte { return pem.EncodeToMemory(&b) }
	badSignature := slices.Clone(block.Bytes)
	badSignature[len(badSignature)-1] ^= 1
	p224 := must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))(t)
	short := must(rsa.GenerateKey(rand.Reader, 1024))(t)
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"empty":         {nil, "no PEM block"},
		"text":          {[]byte("hello"), "no PEM block"},
		"DER":           {block.Bytes, "no PEM block"},
		"two":           {slices.Concat(good, good), "at most 1"},
		"trailing":      {append(slices.Clone(good), "x"...), "beside"},
		"leading":       {append([]byte("x\n"), good...), "beside"},
		"certificate":   {encode(pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}), "another type"},
		"other name":    {encode(pem.Block{Type: "NEW CERTIFICATE REQUEST", Bytes: block.Bytes}), "another type"},
		"headers":       {encode(pem.Block{Type: block.Type, Bytes: block.Bytes, Headers: map[string]string{"A": "b"}}), "headers"},
		"damaged":       {bytes.Replace(good, []byte("-----END"), []byte("----END"), 1), "damaged"},
		"trailing DER":  {encode(pem.Block{Type: block.Type, Bytes: append(slices.Clone(block.Bytes), 0)}), "trailing data"},
		"garbage DER":   {encode(pem.Block{Type: block.Type, Bytes: []byte("garbage")}), "certificate request: "},
		"bad signature": {encode(pem.Block{Type: block.Type, Bytes: badSignature}), "signature"},
		"P-224":         {csrPEM(t, p224), "must be on"},
		"RSA 1024":      {csrPEM(t, short), "1024 bits"},
		"too large":     {append(slices.Clone(good), strings.Repeat("\n", maxCSR)...), "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseCSR(tt.data)
			wantError(t, err, tt.want)
			if !fault.Is(err, fault.CodeCSR) {
				t.Errorf("code %s", fault.CodeOf(err))
			}
		})
	}
}

// FuzzParseCSR checks that whatever is accepted is one signed request with a
// key that we would sign, and reads back the same.
func FuzzParseCSR(f *testing.F) {
	good := csrPEM(f, ecKey(f))
	f.Add(good)
	f.Add(csrPEM(f, must(rsaKey())(f)))
	f.Add(append(slices.Clone(good), good...))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----"))
	f.Fuzz(func(t *testing.T, data []byte) {
		csr, err := ParseCSR(data)
		if err != nil {
			if !fault.Is(err, fault.CodeCSR) {
				t.Errorf("error without its code: %v", err)
			}
			return
		}
		if err := csr.CheckSignature(); err != nil {
			t.Errorf("accepted with a bad signature: %v", err)
		}
		if err := checkPublic(csr.PublicKey); err != nil {
			t.Errorf("accepted with a bad key: %v", err)
		}
		again, err := ParseCSR(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr.Raw}))
		if err != nil || !bytes.Equal(again.Raw, csr.Raw) {
			t.Errorf("does not read back: %v", err)
		}
	})
}

// TestPair joins a key with its own certificate, and with no other.
func TestPair(t *testing.T) {
	key := ecKey(t)
	csr := must(ParseCSR(must(NewCSR(key, x509.CertificateRequest{Subject: name("me")}))(t)))(t)
	if csr.Subject.CommonName != name("me").CommonName {
		t.Errorf("asked for %s", csr.Subject)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: csr.Subject}
	der := must(x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key))(t)
	text := EncodeCertificates(must(x509.ParseCertificate(der))(t))
	if pair, err := Pair(key, text); err != nil || pair.Leaf == nil || len(pair.Certificate) != 1 {
		t.Errorf("%v, %v", pair, err)
	}
	if _, err := Pair(ecKey(t), text); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("with another key: %v", err)
	}
	if _, err := Pair(key, nil); err == nil {
		t.Error("no certificate is one")
	}
}
