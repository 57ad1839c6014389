package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/smallstep/pkcs7"
)

// PKCS7 returns the certificates, in the order given, as a degenerate PKCS#7
// message: signed data without content and without signers.
func PKCS7(certs []*x509.Certificate) ([]byte, error) {
	if len(certs) == 0 {
		return nil, errors.New("no certificates to put into PKCS#7")
	}
	var der []byte
	for _, c := range certs {
		der = append(der, c.Raw...)
	}
	msg, err := pkcs7.DegenerateCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("encoding PKCS#7: %w", err)
	}
	return msg, nil
}

// PKCS7Text returns what [PKCS7] returns in base64, in lines of at most 64
// characters, each ended by a line feed.
func PKCS7Text(certs []*x509.Certificate) ([]byte, error) {
	msg, err := PKCS7(certs)
	if err != nil {
		return nil, err
	}
	const width = 64
	text := base64.StdEncoding.AppendEncode(nil, msg)
	var buf bytes.Buffer
	for len(text) > 0 {
		n := min(width, len(text))
		buf.Write(text[:n])
		buf.WriteByte('\n')
		text = text[n:]
	}
	return buf.Bytes(), nil
}

// ParsePKCS7Text returns the certificates in what [PKCS7Text] returns, at least
// one and at most limit. Signers, if there are any, count for nothing: whoever
// asks knows whom it asked.
func ParsePKCS7Text(text []byte, limit int) ([]*x509.Certificate, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("PKCS#7 text of %d bytes: at most %d are allowed", len(text), maxPEM)
	}
	der, err := base64.StdEncoding.DecodeString(string(bytes.Join(bytes.Fields(text), nil)))
	if err != nil {
		return nil, fmt.Errorf("PKCS#7 text: %w", err)
	}
	msg, err := pkcs7.Parse(der)
	if err != nil {
		return nil, fmt.Errorf("PKCS#7: %w", err)
	}
	if n := len(msg.Certificates); n == 0 || n > limit {
		return nil, fmt.Errorf("PKCS#7 with %d certificates: between 1 and %d are expected", n, limit)
	}
	return msg.Certificates, nil
}
