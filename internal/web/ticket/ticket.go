// Package ticket is what others keep for us between two requests: sealed, so that
// nobody else reads or changes it, and bound to what it is for, so that none is taken
// for another. Any controller opens what one of them sealed, and none remembers it.
// It imports nothing of ours.
package ticket

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"

	"github.com/go-json-experiment/json"
)

// Seal seals tickets for one purpose, and opens them.
type Seal struct {
	// Keys returns the keys that there are: the first seals, and what the others
	// sealed is good too.
	Keys    func() ([][]byte, error)
	Purpose string
	// Most is how long a ticket may be.
	Most int
}

// What can be wrong with a ticket.
var (
	ErrNone  = errors.New("ticket: there is nothing that could be read")
	ErrLarge = errors.New("ticket: there is too much to remember")
)

// Write returns a value as a ticket.
func (s Seal) Write(value any) (string, error) {
	keys, err := s.Keys()
	if err != nil {
		return "", err
	}
	box, err := boxOf(keys[0])
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, box.NonceSize())
	rand.Read(nonce)
	sealed := base64.RawURLEncoding.EncodeToString(box.Seal(nonce, nonce, data, []byte(s.Purpose)))
	if len(sealed) > s.Most {
		return "", ErrLarge
	}
	return sealed, nil
}

// Read reads a ticket that one of the keys sealed into a value.
func (s Seal) Read(text string, into any) error {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) > s.Most {
		return ErrNone
	}
	keys, err := s.Keys()
	if err != nil {
		return err
	}
	for _, key := range keys {
		box, err := boxOf(key)
		if err != nil {
			return err
		}
		if len(data) < box.NonceSize() {
			return ErrNone
		}
		if plain, err := box.Open(nil, data[:box.NonceSize()], data[box.NonceSize():], []byte(s.Purpose)); err == nil {
			return json.Unmarshal(plain, into)
		}
	}
	return ErrNone
}

func boxOf(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
