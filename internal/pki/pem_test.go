package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/fault"
)

func TestParseCertificates(t *testing.T) {
	s, root := newSigner(t)
	certs := []*x509.Certificate{signerCert(s), root.cert}
	text := EncodeCertificates(certs...)
	commented := slices.Concat([]byte("# the signing CA\n"), EncodeCertificates(signerCert(s)), []byte("\nsubject=root\n"), EncodeCertificates(root.cert), []byte("end"))
	for _, data := range [][]byte{text, commented, bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))} {
		got, err := ParseCertificates(data, 2)
		if err != nil || !slices.EqualFunc(got, certs, (*x509.Certificate).Equal) {
			t.Errorf("read %d certificates: %v", len(got), err)
		}
	}
}

func TestParseCertificatesRefuses(t *testing.T) {
	good := EncodeCertificates(newAuthority(t).cert)
	block, _ := pem.Decode(good)
	encode := func(b pem.Block) []byte { return pem.EncodeToMemory(&b) }
	for name, tt := range map[string]struct {
		data []byte
		code fault.Code
	}{
		"empty":        {nil, fault.CodePEM},
		"text":         {[]byte("hello"), fault.CodePEM},
		"too many":     {slices.Repeat(good, 3), fault.CodePEM},
		"too large":    {append(slices.Clone(good), strings.Repeat("\n", maxPEM)...), fault.CodePEM},
		"one damaged":  {slices.Concat(bytes.Replace(good, []byte("\n"), []byte("\n!"), 1), good), fault.CodePEM},
		"unfinished":   {slices.Concat(good, good[:len(good)/2]), fault.CodePEM},
		"headers":      {encode(pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes, Headers: map[string]string{"A": "b"}}), fault.CodePEM},
		"key":          {slices.Concat(good, encode(pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}})), fault.CodePEMType},
		"garbage":      {slices.Concat(good, encode(pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}})), fault.CodeDER},
		"trailing DER": {encode(pem.Block{Type: "CERTIFICATE", Bytes: append(slices.Clone(block.Bytes), 0)}), fault.CodeDER},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseCertificates(tt.data, 2)
			if !fault.Is(err, tt.code) {
				t.Errorf("error %v has code %s, want %s", err, fault.CodeOf(err), tt.code)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	// The value is what `openssl x509 -fingerprint -sha1` prints for it.
	const cert = `-----BEGIN CERTIFICATE-----
MIIBgTCCASegAwIBAgIUQU4RdXjjYNFxMjT3KHLgLA7l8PEwCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLZmluZ2VycHJpbnQwHhcNMjYxMTE1MDk1NTAwWhcNMzYxMTEy
MDk1NTAwWjAWMRQwEgYDVQQDDAtmaW5nZXJwcmludDBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABKEsq6NwDPG6t5YNiKMgUTaSH4jDPQjl5X3RtBl7PW/gWJKRLt9G
Spli14IVCunw5ikpkd540DUQxB/5dZqtih6jUzBRMB0GA1UdDgQWBBR8T4pVKvHu
rbICNkzvsFsnUDoekzAfBgNVHSMEGDAWgBR8T4pVKvHurbICNkzvsFsnUDoekzAP
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIAaV+g6ejfEIDC6O2ErD
cXF0LbdplmRgw7vs8qSPdKf1AiEAwhvUOz7+vZvnZYc8S0Vb2Earw1G6zGmAwm2M
1cHW7dU=
-----END CERTIFICATE-----
`
	c := must(ParseCertificates([]byte(cert), 1))(t)[0]
	if got, want := Fingerprint(c), "d849014e1cd8ffeff7d485e13051ecf6a55fdbb9"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzParseCertificates checks that accepted text holds as many certificates
// as it opens, and that they read back the same.
func FuzzParseCertificates(f *testing.F) {
	s, root := newSigner(f)
	f.Add(EncodeCertificates(root.cert))
	f.Add(EncodeCertificates(signerCert(s), root.cert))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"))
	f.Fuzz(func(t *testing.T, data []byte) {
		certs, err := ParseCertificates(data, 3)
		if err != nil {
			if c := fault.CodeOf(err); c != fault.CodePEM && c != fault.CodePEMType && c != fault.CodeDER {
				t.Errorf("error with code %s: %v", c, err)
			}
			return
		}
		if n := bytes.Count(data, []byte("-----BEGIN")); len(certs) == 0 || len(certs) > 3 || len(certs) > n {
			t.Errorf("%d certificates from %d blocks", len(certs), n)
		}
		again, err := ParseCertificates(EncodeCertificates(certs...), 3)
		if err != nil || !slices.EqualFunc(again, certs, (*x509.Certificate).Equal) {
			t.Errorf("does not read back: %v", err)
		}
	})
}
