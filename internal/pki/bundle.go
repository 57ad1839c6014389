package pki

import (
	"crypto/hpke"
	"errors"
	"fmt"
	"os"
)

// shared are the files that all controllers of a network have alike. What is not
// among them belongs to one controller and is not handed over.
var shared = []string{
	macKeyFile, rootKeyFile, rootFile, intermediateKeyFile, intermediateFile,
	formerRootKeyFile, formerRootFile, formerIntermediateKeyFile, formerIntermediateFile,
	olderFile, crossFile, originFile, retiredFile, clusterKeyFile, clusterFile,
	nextClusterKeyFile, nextClusterFile, formerClusterFile,
	generationFile, nextIntermediateKeyFile, nextIntermediateFile, anchorsFile,
	"session.key", "former-session.key", "next-session.key", "seal.key", "former-seal.key", "next-seal.key",
}

// Recipient is whom keys are sealed for: one who joins, for this once.
type Recipient struct{ key hpke.PrivateKey }

// The kind of seal: a hybrid of X25519 and ML-KEM, which is good as long as one
// of them is, with AES-256.
func sealKind() (hpke.KEM, hpke.KDF, hpke.AEAD) {
	return hpke.MLKEM768X25519(), hpke.HKDFSHA256(), hpke.AES256GCM()
}

// NewRecipient makes a key to seal for.
func NewRecipient() (*Recipient, error) {
	kem, _, _ := sealKind()
	key, err := kem.GenerateKey()
	if err != nil {
		return nil, fmt.Errorf("making a key to seal for: %w", err)
	}
	return &Recipient{key}, nil
}

// Public is what the other side needs to seal.
func (r *Recipient) Public() []byte { return r.key.PublicKey().Bytes() }

// errBundle says nothing of what is inside.
var errBundle = errors.New("the keys were not sealed for this joining")

// Export reads what all controllers of a network share from the directory of a
// keystore, and seals it for a recipient and a purpose: who opens it must name
// the same.
func Export(dir string, recipient []byte, purpose string) ([]byte, error) {
	b, err := ReadBundle(dir)
	if err != nil {
		return nil, fmt.Errorf("sealing keys: %w", err)
	}
	return b.Seal(recipient, purpose)
}

func sealTo(recipient, text []byte, purpose string) ([]byte, error) {
	kem, kdf, aead := sealKind()
	to, err := kem.NewPublicKey(recipient)
	if err != nil {
		return nil, err
	}
	return hpke.Seal(to, kdf, aead, []byte(purpose), text)
}

// Import puts keys that were sealed for this recipient and purpose into the
// directory of a keystore that has none, all of them or none. belongs says
// whether they are those of the right network before anything is written.
func (r *Recipient) Import(dir string, sealed []byte, purpose string, belongs func(*Authorities) error) error {
	b, err := r.Open(sealed, purpose)
	if err != nil {
		return err
	}
	if err := importInto(folder{path: dir, rename: os.Rename}, b, belongs); err != nil {
		return fmt.Errorf("taking over keys: %w", err)
	}
	return nil
}

func importInto(f folder, b Bundle, belongs func(*Authorities) error) error {
	if err := f.make(); err != nil {
		return err
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := errors.Join(f.close(), f.sweep()); err != nil {
		return err
	}
	present, err := f.present()
	if err != nil {
		return err
	}
	if pending, err := f.pending(); err != nil || pending != nil || len(present) > 0 {
		return errors.Join(err, fmt.Errorf("%s has keys already", f.path))
	}
	if err := belongs(b.authorities); err != nil {
		return err
	}
	return f.commit(b.files)
}
