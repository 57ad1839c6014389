package pki

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Sealer seals what is stored, with keys that are not: AES-256-GCM, bound to
// the place where it is stored. The nonce is a keyed digest of place and text.
// So nothing is sealed twice under one nonce, and what is equal at one place is
// sealed alike by every controller of the network. It is safe for use by several
// goroutines.
type Sealer struct {
	keys func() []sealKey // the first seals, and all open
}

// firstSealMark begins what was sealed with the first secret of a network. What
// another sealed names it.
const firstSealMark = "sealed1."

// What the keys of seals are derived for.
const (
	sealPurpose  = "seals"
	noncePurpose = "nonces of seals"
)

var errSeal = errors.New("it was not sealed with these keys for this place")

// Sealer returns the sealer of this keystore: one that opens what another
// process with the same keystore sealed. It follows the keystore.
func (ks *Keystore) Sealer() *Sealer {
	return &Sealer{func() []sealKey { return ks.secrets.Load().seals }}
}

// Seal returns a text of letters, digits, dots, dashes and underscores.
func (s *Sealer) Seal(place string, plain []byte) []byte {
	key := s.keys()[0]
	mac := hmac.New(sha256.New, key.nonceKey)
	fmt.Fprintf(mac, "%d %s", len(place), place) // where the place ends is told
	mac.Write(plain)
	nonce := mac.Sum(nil)[:key.aead.NonceSize()]
	sealed := key.aead.Seal(nonce, nonce, plain, []byte(place))
	return base64.RawURLEncoding.AppendEncode([]byte(key.mark), sealed)
}

// Open returns what was sealed for a place.
func (s *Sealer) Open(place string, sealed []byte) ([]byte, error) {
	for _, key := range s.keys() {
		text, is := strings.CutPrefix(string(sealed), key.mark)
		if !is {
			continue
		}
		raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
		n := key.aead.NonceSize()
		if err != nil || len(raw) < n {
			return nil, errSeal
		}
		plain, err := key.aead.Open(nil, raw[:n], raw[n:], []byte(place))
		if err != nil {
			return nil, errSeal
		}
		return plain, nil
	}
	return nil, errSeal
}
