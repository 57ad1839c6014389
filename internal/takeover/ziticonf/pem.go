package ziticonf

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"strings"
)

// text is what a setting stands for: a path, file: and a path, or pem: and the text
// itself.
func (r *reader) text(value string) (text []byte, file string, err error) {
	scheme, rest, found := strings.Cut(value, ":")
	switch {
	case !found || strings.ContainsAny(scheme, `/\.`) || len(scheme) == 1: // a path, which may begin with a drive
		file = r.path(value)
	case scheme == "pem":
		return []byte(rest), "", nil
	case scheme == "file":
		file = r.path(strings.TrimPrefix(rest, "//"))
	default:
		return nil, "", errors.New("it is kept by " + scheme + ", which this program cannot ask: export it to a file")
	}
	text, err = readFile(file)
	return text, file, err
}

// certs reads certificates, in order. What else is in a file is left out.
func (r *reader) certs(key, value string) (all []*x509.Certificate) {
	if value == "" {
		return nil
	}
	text, _, err := r.text(value)
	if err != nil {
		r.fail("%s: %w", key, err)
		return nil
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			r.fail("%s: %w", key, err)
			return nil
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		r.fail("%s: there is no certificate in it", key)
	}
	return all
}

// key reads the key of a certificate.
func (r *reader) key(key, value string, of *x509.Certificate) crypto.Signer {
	text, file, err := r.text(value)
	if err != nil {
		r.fail("%s: %w", key, err)
		return nil
	}
	if info, err := os.Stat(file); file != "" && err == nil && info.Mode().Perm()&0o077 != 0 {
		r.says.Open = append(r.says.Open, file)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		signer := parseKey(block)
		if signer == nil {
			continue
		}
		public, comparable := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
		if !comparable || !public.Equal(of.PublicKey) {
			r.fail("%s: it is not the key of the certificate of %q", key, of.Subject.CommonName)
			return nil
		}
		return signer
	}
	r.fail("%s: there is no key in it", key)
	return nil
}

// parseKey returns the key in a block, nil if there is none that is known.
func parseKey(block *pem.Block) crypto.Signer {
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key
	}
	switch key, _ := x509.ParsePKCS8PrivateKey(block.Bytes); key := key.(type) {
	case *rsa.PrivateKey:
		return key
	case *ecdsa.PrivateKey:
		return key
	case ed25519.PrivateKey:
		return key
	}
	return nil
}
