package pki

import (
	"bytes"
	"crypto/sha1" // an identifier that clients know, not a proof of anything
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"

	"netkeep.internal/internal/lang/fault"
)

// maxPEM bounds PEM text before it is looked at: about twenty certificates with
// very large RSA keys.
const maxPEM = 128 << 10

const pemCertificate = "CERTIFICATE"

// Fingerprint names a certificate as the API does: the SHA-1 of its DER as 40
// lower-case hexadecimal digits. It identifies; it proves nothing.
func Fingerprint(cert *x509.Certificate) string {
	sum := sha1.Sum(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// EncodeCertificates returns the certificates as PEM, in the order given.
func EncodeCertificates(certs ...*x509.Certificate) []byte {
	var buf bytes.Buffer
	for _, c := range certs {
		buf.Write(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: c.Raw}))
	}
	return buf.Bytes()
}

// ParseCertificates reads between one and limit certificates from PEM text, in
// the order given. Text around the blocks is allowed, as many tools write it;
// blocks of any other type, and blocks that are damaged, are not.
func ParseCertificates(data []byte, limit int) ([]*x509.Certificate, error) {
	blocks, err := pemBlocks(data, limit)
	if err != nil {
		return nil, fault.Wrap(fault.CodePEM, err)
	}
	certs := make([]*x509.Certificate, len(blocks))
	for i, b := range blocks {
		if b.Type != pemCertificate {
			return nil, fault.New(fault.CodePEMType, fmt.Sprintf("PEM block %d is not a certificate", i+1))
		}
		certs[i], err = x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fault.Wrap(fault.CodeDER, fmt.Errorf("certificate %d: %w", i+1, err))
		}
	}
	return certs, nil
}

// pemBlocks splits PEM text into at least one and at most limit blocks. The
// decoder passes over what it cannot read; counting the opening lines shows
// when it has.
func pemBlocks(data []byte, limit int) ([]*pem.Block, error) {
	if len(data) > maxPEM {
		return nil, fmt.Errorf("PEM text of %d bytes: at most %d are allowed", len(data), maxPEM)
	}
	n := bytes.Count(data, []byte("-----BEGIN "))
	switch {
	case n == 0:
		return nil, fmt.Errorf("no PEM block found")
	case n > limit:
		return nil, fmt.Errorf("%d PEM blocks: at most %d allowed", n, limit)
	}
	blocks := make([]*pem.Block, 0, n)
	for b, rest := pem.Decode(data); b != nil; b, rest = pem.Decode(rest) {
		if len(b.Headers) != 0 {
			return nil, fmt.Errorf("PEM block %d has headers, which are not allowed", len(blocks)+1)
		}
		blocks = append(blocks, b)
	}
	if len(blocks) != n {
		return nil, fmt.Errorf("%d of %d PEM blocks are damaged", n-len(blocks), n)
	}
	return blocks, nil
}
