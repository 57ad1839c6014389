package pki

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// The secrets that can be rotated, as files and commands name them. Until one is,
// it is the one that the network began with.
const (
	SessionSecret = "session" // tokens of sessions
	SealSecret    = "seal"    // what is sealed in the store
)

// Secrets are the names of those.
var Secrets = [...]string{SessionSecret, SealSecret}

// purposes is which of them keys for a purpose are derived from. All others are of
// the secret that the network began with, and never change.
var purposes = map[string]string{
	"api session tokens": SessionSecret, "session tokens": SessionSecret, "ID tokens": SessionSecret, "logins at providers": SessionSecret,
	sealPurpose: SealSecret, noncePurpose: SealSecret,
}

const secretSize = 32

// The files of a secret.
func secretFile(name string) string       { return name + secretSuffix }
func nextSecretFile(name string) string   { return "next-" + name + secretSuffix }
func formerSecretFile(name string) string { return "former-" + name + secretSuffix }

// Turn is a secret while one takes the other's place.
type Turn struct {
	// Current is what is made anew with, Former what was before, and Next what will
	// be. What was made with any of them is good. The latter two may be nil.
	Current, Former, Next []byte
}

// All are those that there are, the current one first.
func (t Turn) All() (list [][]byte) {
	for _, s := range [][]byte{t.Current, t.Former, t.Next} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

func (t Turn) equal(other Turn) bool {
	return bytes.Equal(t.Current, other.Current) && bytes.Equal(t.Former, other.Former) && bytes.Equal(t.Next, other.Next)
}

// derive returns the keys of all of them for a purpose.
func (t Turn) derive(purpose string) (out Turn, err error) {
	for _, one := range []struct{ from, to *[]byte }{{&t.Current, &out.Current}, {&t.Former, &out.Former}, {&t.Next, &out.Next}} {
		if *one.from == nil {
			continue
		}
		if *one.to, err = deriveKey(*one.from, purpose); err != nil {
			return Turn{}, err
		}
	}
	return out, nil
}

func deriveKey(secret []byte, purpose string) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "netkeep mac "+purpose, secretSize)
	if err != nil {
		return nil, fmt.Errorf("deriving key for %s: %w", purpose, err)
	}
	return key, nil
}

// secretID is how people know a secret, which it says nothing about.
func secretID(secret []byte) string {
	if secret == nil {
		return ""
	}
	key, err := deriveKey(secret, "name of the secret")
	if err != nil {
		return ""
	}
	return hex.EncodeToString(key[:8])
}

// secrets is what keys are derived from, at one time.
type secrets struct {
	first []byte // that the network began with
	turns map[string]Turn
	seals []sealKey // the current one first
}

func (s *secrets) equal(other *secrets) bool {
	for _, name := range Secrets {
		if !s.turns[name].equal(other.turns[name]) {
			return false
		}
	}
	return bytes.Equal(s.first, other.first)
}

// of is what keys for a purpose are derived from.
func (s *secrets) of(purpose string) Turn {
	if name, turns := purposes[purpose]; turns {
		return s.turns[name]
	}
	return Turn{Current: s.first}
}

// readSecret reads a secret; nil if there is none.
func (f folder) readSecret(name string) ([]byte, error) {
	data, found, err := f.read(name)
	if err != nil || !found {
		return nil, err
	}
	if len(data) != secretSize {
		return nil, f.problem(name, fmt.Errorf("%d bytes instead of %d", len(data), secretSize))
	}
	return data, nil
}

// turn reads a secret that can be rotated.
func (f folder) turn(name string, first []byte) (t Turn, err error) {
	for _, one := range []struct {
		file string
		to   *[]byte
	}{{secretFile(name), &t.Current}, {formerSecretFile(name), &t.Former}, {nextSecretFile(name), &t.Next}} {
		if *one.to, err = f.readSecret(one.file); err != nil {
			return t, err
		}
	}
	if t.Current == nil {
		t.Current = first
	}
	return t, nil
}

// secrets reads all of them.
func (f folder) secrets() (*secrets, error) {
	first, err := f.readSecret(macKeyFile)
	if err != nil {
		return nil, err
	}
	if first == nil {
		return nil, f.problem(macKeyFile, errors.New("missing"))
	}
	s := &secrets{first: first, turns: map[string]Turn{}}
	for _, name := range Secrets {
		if s.turns[name], err = f.turn(name, first); err != nil {
			return nil, err
		}
	}
	for _, secret := range s.turns[SealSecret].All() {
		key, err := newSealKey(secret, bytes.Equal(secret, first))
		if err != nil {
			return nil, err
		}
		s.seals = append(s.seals, key)
	}
	return s, nil
}

// newSecret makes one up.
func newSecret() []byte {
	data := make([]byte, secretSize)
	rand.Read(data)
	return data
}

// MACKeys returns the 32-byte keys for message authentication for a purpose. Each
// purpose has its own, the same in every process that has this keystore.
func (ks *Keystore) MACKeys(purpose string) (Turn, error) {
	return ks.secrets.Load().of(purpose).derive(purpose)
}

// SealMark is what begins all that is sealed with the current key.
func (ks *Keystore) SealMark() string { return ks.secrets.Load().seals[0].mark }

// SecretID is how people know the current secret of a name.
func (ks *Keystore) SecretID(name string) string {
	return secretID(ks.secrets.Load().turns[name].Current)
}

// Turned reports whether a secret is another than the network began with.
func (ks *Keystore) Turned(secret string) bool {
	all := ks.secrets.Load()
	return !bytes.Equal(all.turns[secret].Current, all.first)
}

// Turning reports whether what a secret was before is still good.
func (ks *Keystore) Turning(secret string) bool { return ks.secrets.Load().turns[secret].Former != nil }

// sealKey is what one secret seals with.
type sealKey struct {
	mark     string // begins what it sealed
	aead     cipher.AEAD
	nonceKey []byte
}

// newSealKey derives it. What the first secret of a network seals has a mark that
// names none.
func newSealKey(secret []byte, first bool) (k sealKey, err error) {
	key, err := deriveKey(secret, sealPurpose)
	if err != nil {
		return k, err
	}
	if k.nonceKey, err = deriveKey(secret, noncePurpose); err != nil {
		return k, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return k, fmt.Errorf("preparing seals: %w", err)
	}
	if k.aead, err = cipher.NewGCM(block); err != nil {
		return k, fmt.Errorf("preparing seals: %w", err)
	}
	if k.mark = firstSealMark; !first {
		k.mark = "sealed2." + secretID(secret) + "."
	}
	return k, nil
}
