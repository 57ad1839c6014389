package token

import (
	"crypto"
	"crypto/hkdf"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"sync"
)

// Derived signs with RSA keys that follow from secrets, for readers that know no other
// sort of keys. Whoever has the secret has the key, and none is kept.
type Derived struct {
	// Secrets are those that count, the one to sign with first.
	Secrets func() ([][]byte, error)

	mu   sync.Mutex
	made map[string]*derived // by the secret
}

// derived is what follows from one secret.
type derived struct {
	public Public
	maker  *Maker
}

// Public is a key that tokens are checked with, and what they call it.
type Public struct {
	ID  string
	Key crypto.PublicKey
}

// Sign returns a token that says what the claims do.
func (d *Derived) Sign(claims any) (string, error) {
	all, err := d.all()
	if err != nil {
		return "", err
	}
	return all[0].maker.Make(claims)
}

// Key returns the key of a name; nil if there is none.
func (d *Derived) Key(id string) crypto.PublicKey {
	for _, one := range d.Public() {
		if one.ID == id {
			return one.Key
		}
	}
	return nil
}

// Public are the keys that count, the one that signs first.
func (d *Derived) Public() (keys []Public) {
	all, err := d.all()
	if err != nil {
		return nil
	}
	for _, one := range all {
		keys = append(keys, one.public)
	}
	return keys
}

// all makes the keys that have not been made yet, which takes a moment, and forgets those
// that do not count any more.
func (d *Derived) all() (list []*derived, err error) {
	secrets, err := d.Secrets()
	if err == nil && len(secrets) == 0 {
		err = errors.New("token: there is no secret to derive a key from")
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	made := map[string]*derived{}
	for _, secret := range secrets {
		one := d.made[string(secret)]
		if one == nil {
			if one, err = derive(secret); err != nil {
				return nil, err
			}
		}
		made[string(secret)] = one
		list = append(list, one)
	}
	d.made = made
	return list, nil
}

func derive(secret []byte) (*derived, error) {
	key, err := deriveRSA(secret)
	if err != nil {
		return nil, fmt.Errorf("deriving an RSA key: %w", err)
	}
	pkix, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	sum := sha1.Sum(pkix)
	one := &derived{public: Public{hex.EncodeToString(sum[:]), key.Public()}}
	one.maker, err = NewMaker(key, one.public.ID)
	return one, err
}

const (
	primeSize = 128 // in bytes, of each of two
	exponent  = 65537
)

// deriveRSA makes a key of 2048 bits of a secret. Nothing of how must change: every
// controller makes the same.
func deriveRSA(secret []byte) (*rsa.PrivateKey, error) {
	p, err := derivePrime(secret, "first")
	if err != nil {
		return nil, err
	}
	q, err := derivePrime(secret, "second")
	if err != nil {
		return nil, err
	}
	one := big.NewInt(1)
	p1, q1 := new(big.Int).Sub(p, one), new(big.Int).Sub(q, one)
	least := new(big.Int).Mul(p1, q1)
	least.Div(least, new(big.Int).GCD(nil, nil, p1, q1))
	key := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: exponent},
		D:         new(big.Int).ModInverse(big.NewInt(exponent), least), Primes: []*big.Int{p, q},
	}
	key.Precompute()
	return key, key.Validate()
}

// derivePrime draws numbers of a secret until one is prime. The two upper bits are set, so
// that the product of two has all of its bits.
func derivePrime(secret []byte, name string) (*big.Int, error) {
	for n := 0; ; n++ {
		raw, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprint("RSA prime ", name, " ", n), primeSize)
		if err != nil {
			return nil, err
		}
		raw[0] |= 0xc0
		raw[primeSize-1] |= 1
		p := new(big.Int).SetBytes(raw)
		rest := new(big.Int).Mod(new(big.Int).Sub(p, big.NewInt(1)), big.NewInt(exponent))
		if rest.Sign() != 0 && p.ProbablyPrime(20) {
			return p, nil
		}
	}
}
