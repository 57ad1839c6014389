package authn

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"

	"github.com/go-json-experiment/json"
)

// maxKeys bounds how many keys of an issuer are kept.
const maxKeys = 100

// jwk is one key of a key set.
type jwk struct {
	KID string   `json:"kid"`
	KTY string   `json:"kty"`
	Use string   `json:"use"`
	CRV string   `json:"crv"`
	N   string   `json:"n"`
	E   string   `json:"e"`
	X   string   `json:"x"`
	Y   string   `json:"y"`
	X5C []string `json:"x5c"`
}

// parseKeySet reads the signature keys of a JSON Web Key Set by their id. Keys
// without an id, for another use or of an unknown kind are left out; a key id
// that occurs twice is left out too, since it says nothing.
func parseKeySet(data []byte) (map[string]crypto.PublicKey, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("read a key set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("read a key set: %d keys are more than %d", len(set.Keys), maxKeys)
	}
	keys, twice := map[string]crypto.PublicKey{}, map[string]bool{}
	for _, k := range set.Keys {
		if k.KID == "" || k.Use != "" && k.Use != "sig" {
			continue
		}
		pub, err := k.public()
		if err != nil {
			continue
		}
		_, taken := keys[k.KID]
		twice[k.KID] = twice[k.KID] || taken
		keys[k.KID] = pub
	}
	for kid, yes := range twice {
		if yes {
			delete(keys, kid)
		}
	}
	return keys, nil
}

var errKey = errors.New("authn: the key is not usable")

// public returns the key. A certificate counts more than its raw members.
func (k jwk) public() (crypto.PublicKey, error) {
	if len(k.X5C) > 0 {
		der, err := base64.StdEncoding.DecodeString(k.X5C[0])
		if err != nil {
			return nil, errKey
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, errKey
		}
		return usable(cert.PublicKey)
	}
	switch k.KTY {
	case "RSA":
		n, e := number(k.N), number(k.E)
		if n == nil || e == nil || !e.IsInt64() || e.Int64() > 1<<31-1 {
			return nil, errKey
		}
		return usable(&rsa.PublicKey{N: n, E: int(e.Int64())})
	case "EC":
		return k.ec()
	case "OKP":
		raw, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || k.CRV != "Ed25519" || len(raw) != ed25519.PublicKeySize {
			return nil, errKey
		}
		return ed25519.PublicKey(raw), nil
	}
	return nil, errKey
}

func (k jwk) ec() (crypto.PublicKey, error) {
	curve := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}[k.CRV]
	x, y := number(k.X), number(k.Y)
	if curve == nil || x == nil || y == nil {
		return nil, errKey
	}
	size := (curve.Params().BitSize + 7) / 8
	if len(x.Bytes()) > size || len(y.Bytes()) > size {
		return nil, errKey
	}
	point := append([]byte{4}, append(x.FillBytes(make([]byte, size)), y.FillBytes(make([]byte, size))...)...)
	// Refuses a point that is not on the curve.
	pub, err := ecdsa.ParseUncompressedPublicKey(curve, point)
	if err != nil {
		return nil, errKey
	}
	return pub, nil
}

// usable refuses keys that are too weak or too costly.
func usable(pub crypto.PublicKey) (crypto.PublicKey, error) {
	switch k := pub.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < 2048 || bits > 8192 || k.E < 3 || k.E%2 == 0 {
			return nil, errKey
		}
		return k, nil
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return k, nil
	}
	return nil, errKey
}

func number(text string) *big.Int {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) == 0 || len(raw) > 1024 {
		return nil
	}
	return new(big.Int).SetBytes(raw)
}
