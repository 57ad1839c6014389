package pki

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"netkeep.internal/internal/lang/fault"
)

// maxCSR leaves room for the largest key we accept and a long list of names.
const maxCSR = 32 << 10

const pemRequest = "CERTIFICATE REQUEST"

// ParseCSR reads a certificate request: one PEM block of that type and nothing
// beside it, signed by the key it names, which must be one we would sign. The
// names in it are the caller's wishes; only a [Grant] decides what is issued.
// Errors carry [fault.CodeCSR].
func ParseCSR(text []byte) (*x509.CertificateRequest, error) {
	csr, err := parseCSR(text)
	if err != nil {
		return nil, fault.Wrap(fault.CodeCSR, fmt.Errorf("certificate request: %w", err))
	}
	return csr, nil
}

func parseCSR(data []byte) (*x509.CertificateRequest, error) {
	if len(data) > maxCSR {
		return nil, fmt.Errorf("%d bytes: at most %d are allowed", len(data), maxCSR)
	}
	data = bytes.TrimSpace(data)
	blocks, err := pemBlocks(data, 1)
	if err != nil {
		return nil, err
	}
	if t := blocks[0].Type; t != pemRequest {
		return nil, errors.New("PEM block of another type than " + pemRequest)
	}
	if !bytes.HasPrefix(data, []byte("-----BEGIN ")) || !bytes.HasSuffix(data, []byte("-----END "+pemRequest+"-----")) {
		return nil, errors.New("data beside the PEM block")
	}
	csr, err := x509.ParseCertificateRequest(blocks[0].Bytes)
	if err != nil {
		return nil, err
	}
	// The key is judged first: checking a signature costs what the key's
	// size makes it cost.
	if err := checkPublic(csr.PublicKey); err != nil {
		return nil, err
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, fmt.Errorf("signature: %w", err)
	}
	return csr, nil
}

// NewCSR asks for a certificate of a key, as PEM.
func NewCSR(key crypto.Signer, template x509.CertificateRequest) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		return nil, fmt.Errorf("certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: der}), nil
}

// maxPair is how many certificates lead from an issued one to its authority.
const maxPair = 10

// Pair is a key with the certificate that was issued for it, and what leads
// from there to its authority.
func Pair(key crypto.Signer, chain []byte) (tls.Certificate, error) {
	certs, err := ParseCertificates(chain, maxPair)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("its certificates: %w", err)
	}
	public, ok := certs[0].PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(key.Public()) {
		return tls.Certificate{}, errors.New("its certificate is of another key")
	}
	pair := tls.Certificate{PrivateKey: key, Leaf: certs[0]}
	for _, cert := range certs {
		pair.Certificate = append(pair.Certificate, cert.Raw)
	}
	return pair, nil
}
