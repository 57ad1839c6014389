// Package cipher is what the two ends of a connection keep from everybody
// between them: a key exchange, and streams of sealed messages. It owns the
// bytes and the state of a stream; who sends what when is its user's to say. It
// imports nothing of ours.
//
// Both are as libsodium defines them (crypto_kx, and secretstream with
// XChaCha20-Poly1305), which is what the other clients of such networks use.
package cipher

import (
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/crypto/blake2b"
)

// KeySize is the length of public keys and of the keys of streams.
const KeySize = 32

// ErrKey says that the other end's public key is none.
var ErrKey = errors.New("cipher: the other end's public key is none")

// Pair is a private key and its public one, made for one connection or one
// listener and never kept.
type Pair struct {
	private *ecdh.PrivateKey
	public  []byte
}

// NewPair returns a new pair.
func NewPair() (*Pair, error) {
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cipher: %w", err)
	}
	return &Pair{private, private.PublicKey().Bytes()}, nil
}

// Public is what the other end is told.
func (p *Pair) Public() []byte { return p.public }

// Keys are what two ends agreed on: a key for each direction.
type Keys struct {
	receive, send [KeySize]byte
}

// Dialer returns the keys of the end that dialled, from the host's public key.
func (p *Pair) Dialer(host []byte) (*Keys, error) {
	first, second, err := p.agree(host, p.public, host)
	return &Keys{receive: first, send: second}, err
}

// Host returns the keys of the end that was dialled, from the dialer's public
// key.
func (p *Pair) Host(dialer []byte) (*Keys, error) {
	first, second, err := p.agree(dialer, dialer, p.public)
	return &Keys{receive: second, send: first}, err
}

// agree derives the two keys: that from host to dialer is the first.
func (p *Pair) agree(other, dialer, host []byte) (first, second [KeySize]byte, err error) {
	public, err := ecdh.X25519().NewPublicKey(other)
	if err != nil {
		return first, second, ErrKey
	}
	shared, err := p.private.ECDH(public) // refuses points that give everybody the same
	if err != nil {
		return first, second, ErrKey
	}
	sum := blake2b.Sum512(append(append(shared, dialer...), host...))
	return [KeySize]byte(sum[:KeySize]), [KeySize]byte(sum[KeySize:]), nil
}
