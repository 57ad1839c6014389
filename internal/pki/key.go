package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Algorithm names a kind of key to generate. The zero value means P256.
type Algorithm string

// The kinds of key that a keystore can be made with. Their texts are meant for
// configuration files.
const (
	P256    Algorithm = "P-256"
	P384    Algorithm = "P-384"
	RSA2048 Algorithm = "RSA-2048"
	RSA3072 Algorithm = "RSA-3072"
	RSA4096 Algorithm = "RSA-4096"
	Ed25519 Algorithm = "Ed25519"
)

// generator returns the function that makes keys of the kind.
func (a Algorithm) generator() (func() (crypto.Signer, error), error) {
	ec := func(c elliptic.Curve) func() (crypto.Signer, error) {
		return func() (crypto.Signer, error) { return ecdsa.GenerateKey(c, rand.Reader) }
	}
	withRSA := func(bits int) func() (crypto.Signer, error) {
		return func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, bits) }
	}
	switch a {
	case "", P256:
		return ec(elliptic.P256()), nil
	case P384:
		return ec(elliptic.P384()), nil
	case RSA2048:
		return withRSA(2048), nil
	case RSA3072:
		return withRSA(3072), nil
	case RSA4096:
		return withRSA(4096), nil
	case Ed25519:
		return func() (crypto.Signer, error) {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			return key, err
		}, nil
	}
	return nil, fmt.Errorf("unknown key algorithm %q: use P-256, P-384, RSA-2048, RSA-3072, RSA-4096 or Ed25519", string(a))
}

// Generate makes a key of the kind.
func (a Algorithm) Generate() (crypto.Signer, error) {
	generate, err := a.generator()
	if err != nil {
		return nil, err
	}
	return generate()
}

// The upper bound keeps a peer from making us compute with a modulus of its
// choice.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// checkPublic refuses keys that are too weak to stand for anyone, and kinds of
// key that we do not sign.
func checkPublic(pub crypto.PublicKey) error {
	switch k := pub.(type) {
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < minRSABits || n > maxRSABits {
			return fmt.Errorf("RSA key of %d bits: must have %d to %d", n, minRSABits, maxRSABits)
		}
		if k.E < 3 || k.E%2 == 0 {
			return errors.New("RSA key with an unusable exponent")
		}
		return nil
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return nil
		}
		return errors.New("elliptic curve key: must be on P-256, P-384 or P-521")
	case ed25519.PublicKey:
		return nil
	}
	return fmt.Errorf("unsupported kind of public key %T", pub)
}

// SamePublic reports whether both are the same public key.
func SamePublic(a, b crypto.PublicKey) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

const pemPrivateKey = "PRIVATE KEY"

// EncodeKey returns a private key as PEM, unencrypted.
func EncodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPrivateKey, Bytes: der}), nil
}

// ParseKey reads one private key. Besides our own form it takes the two older
// ones, since operators bring keys made with other tools. Its errors never
// quote the input.
func ParseKey(data []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(data)
	if block == nil {
		return nil, errors.New("not a private key in PEM form")
	}
	if next, _ := pem.Decode(rest); next != nil {
		return nil, errors.New("more than one PEM block")
	}
	key, err := parseKeyDER(block)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("unsupported kind of private key %T", key)
	}
	if err := checkPublic(signer.Public()); err != nil {
		return nil, err
	}
	return signer, nil
}

func parseKeyDER(block *pem.Block) (key any, err error) {
	switch block.Type {
	case pemPrivateKey:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("PEM block of type %q: expected an unencrypted private key", block.Type)
	}
	if err != nil {
		return nil, errors.New("not a usable private key")
	}
	return key, nil
}

// Usable says why nothing may rest on the key of a certificate, nil if something may.
func Usable(cert *x509.Certificate) error { return checkPublic(cert.PublicKey) }
