package signon

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"

	"github.com/go-json-experiment/json"
)

// purpose binds what is sealed here to this use of the key.
var purpose = []byte("netkeep login at a provider")

// MaxSealed is how long what a browser keeps may be: more would not fit into a cookie.
const MaxSealed = 3500

var errSealed = errors.New("signon: there is nothing that could be read")

// seal writes a ticket so that nobody else can read or change it.
func (d *Desk) seal(t Ticket) (string, error) {
	keys, err := d.Keys()
	if err != nil {
		return "", err
	}
	box, err := sealer(keys[0])
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, box.NonceSize())
	rand.Read(nonce)
	sealed := base64.RawURLEncoding.EncodeToString(box.Seal(nonce, nonce, data, purpose))
	if len(sealed) > MaxSealed {
		return "", errors.New("signon: there is too much to remember")
	}
	return sealed, nil
}

// unseal reads a ticket that one of the keys sealed.
func (d *Desk) unseal(text string) (t Ticket, err error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) > MaxSealed {
		return t, errSealed
	}
	keys, err := d.Keys()
	if err != nil {
		return t, err
	}
	for _, key := range keys {
		box, err := sealer(key)
		if err != nil {
			return t, err
		}
		if len(data) < box.NonceSize() {
			return t, errSealed
		}
		if plain, err := box.Open(nil, data[:box.NonceSize()], data[box.NonceSize():], purpose); err == nil {
			return t, json.Unmarshal(plain, &t)
		}
	}
	return t, errSealed
}

func sealer(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
