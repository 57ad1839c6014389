package pki

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"

	"netkeep/internal/lang/fault"
)

// maxCSR leaves room for the largest key we accept and a long list of names.
const maxCSR = 32 << 10

// ParseCSR reads a certificate request: one PEM block of that type and nothing
// beside it, signed by the key it names, which must be one we would sign. The
// names in it are the caller's wishes; only a [Grant] decides what is issued.
// Errors carry [fault.CodeCSR].
func ParseCSR(pem []byte) (*x509.CertificateRequest, error) {
	csr, err := parseCSR(pem)
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
	const kind = "CERTIFICATE REQUEST"
	if t := blocks[0].Type; t != kind {
		return nil, errors.New("PEM block of another type than " + kind)
	}
	if !bytes.HasPrefix(data, []byte("-----BEGIN ")) || !bytes.HasSuffix(data, []byte("-----END "+kind+"-----")) {
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
