package pki

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// Sealer seals what is stored, with keys that are not: AES-256-GCM, bound to
// the place where it is stored. The nonce is a keyed digest of place and text.
// So nothing is sealed twice under one nonce, and what is equal at one place is
// sealed alike by every controller of the network. It is safe for use by several
// goroutines.
type Sealer struct {
	aead     cipher.AEAD
	nonceKey []byte
}

// sealMark begins whatever was sealed, and says how.
const sealMark = "sealed1."

var errSeal = errors.New("it was not sealed with these keys for this place")

// Sealer returns the sealer of this keystore: one that opens what another
// process with the same keystore sealed.
func (ks *Keystore) Sealer() (*Sealer, error) {
	key, err := ks.MACKey("seals")
	if err != nil {
		return nil, err
	}
	nonceKey, err := ks.MACKey("nonces of seals")
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("preparing seals: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("preparing seals: %w", err)
	}
	return &Sealer{aead, nonceKey}, nil
}

// Seal returns a text of letters, digits, dots, dashes and underscores.
func (s *Sealer) Seal(place string, plain []byte) []byte {
	mac := hmac.New(sha256.New, s.nonceKey)
	fmt.Fprintf(mac, "%d %s", len(place), place) // where the place ends is told
	mac.Write(plain)
	nonce := mac.Sum(nil)[:s.aead.NonceSize()]
	sealed := s.aead.Seal(nonce, nonce, plain, []byte(place))
	return base64.RawURLEncoding.AppendEncode([]byte(sealMark), sealed)
}

// Open returns what was sealed for a place.
func (s *Sealer) Open(place string, sealed []byte) ([]byte, error) {
	if len(sealed) < len(sealMark) || string(sealed[:len(sealMark)]) != sealMark {
		return nil, errSeal
	}
	raw, err := base64.RawURLEncoding.Strict().AppendDecode(nil, sealed[len(sealMark):])
	n := s.aead.NonceSize()
	if err != nil || len(raw) < n {
		return nil, errSeal
	}
	plain, err := s.aead.Open(nil, raw[:n], raw[n:], []byte(place))
	if err != nil {
		return nil, errSeal
	}
	return plain, nil
}
