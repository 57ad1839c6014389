// Package token makes and checks JWTs: which signature goes with which key, what
// must be right about a token before anything that it says counts, and when it
// is out of date. What claims mean is for whoever makes or reads them. It imports
// nothing of ours.
package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// MaxLen bounds a token before anything is made of it.
const MaxLen = 16 << 10

// ErrBad says that a token is not acceptable, and not why: who made it up should
// not learn what to make better.
var ErrBad = errors.New("token: it is not acceptable")

// Maker signs tokens with one key. The same claims make the same token wherever
// the key allows that, so that tokens need not be kept.
type Maker struct {
	key    crypto.Signer
	method jwt.SigningMethod
	header string
}

// NewMaker returns a maker that calls its key keyID; nothing if that is empty.
func NewMaker(key crypto.Signer, keyID string) (*Maker, error) {
	method, err := methodOf(key.Public())
	if err != nil {
		return nil, err
	}
	header := map[string]string{"alg": method.Alg(), "typ": "JWT"}
	if keyID != "" {
		header["kid"] = keyID
	}
	text, err := encode(header)
	return &Maker{key, method, text}, err
}

// Make returns a token that says what the claims do, as JSON.
func (m *Maker) Make(claims any) (string, error) {
	said, err := encode(claims)
	if err != nil {
		return "", err
	}
	text := m.header + "." + said
	signature, err := m.method.Sign(text, m.key)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// Read reads what a token says of itself. Nothing of it is to be believed.
func Read(text string, claims any) error {
	parts := strings.Split(text, ".")
	if len(text) > MaxLen || len(parts) != 3 {
		return ErrBad
	}
	said, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ErrBad
	}
	return json.Unmarshal(said, claims)
}

func encode(v any) (string, error) {
	text, err := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(text), err
}

// methodOf is how a key of this kind signs.
func methodOf(pub crypto.PublicKey) (jwt.SigningMethod, error) {
	switch k := pub.(type) {
	case *rsa.PublicKey:
		return jwt.SigningMethodRS256, nil
	case ed25519.PublicKey:
		return jwt.SigningMethodEdDSA, nil
	case *ecdsa.PublicKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return repeatable{jwt.SigningMethodES256}, nil
		case 384:
			return repeatable{jwt.SigningMethodES384}, nil
		case 521:
			return repeatable{jwt.SigningMethodES512}, nil
		}
	}
	return nil, fmt.Errorf("no signing method for a key of type %T", pub)
}

// repeatable signs without a source of randomness: the signature follows from
// the key and what is signed (RFC 6979).
type repeatable struct{ *jwt.SigningMethodECDSA }

func (r repeatable) Sign(text string, key any) ([]byte, error) {
	hash := r.Hash.New()
	hash.Write([]byte(text))
	der, err := key.(crypto.Signer).Sign(nil, hash.Sum(nil), r.Hash)
	if err != nil {
		return nil, err
	}
	var s struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &s); err != nil {
		return nil, err
	}
	signature := make([]byte, 2*r.KeySize)
	s.R.FillBytes(signature[:r.KeySize])
	s.S.FillBytes(signature[r.KeySize:])
	return signature, nil
}

// fits reports whether a method is one for this kind of key, so that a token
// cannot choose how its signature is understood.
func fits(key crypto.PublicKey, method jwt.SigningMethod) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		switch method.(type) {
		case *jwt.SigningMethodRSA, *jwt.SigningMethodRSAPSS:
			return true
		}
	case *ecdsa.PublicKey:
		m, ok := method.(*jwt.SigningMethodECDSA)
		return ok && m.CurveBits == k.Curve.Params().BitSize
	case ed25519.PublicKey:
		_, ok := method.(*jwt.SigningMethodEd25519)
		return ok
	}
	return false
}
