package pki

import (
	"crypto/hpke"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// shared are the files that all controllers of a network have alike. What is not
// among them belongs to one controller and is not handed over.
var shared = []string{
	macKeyFile, rootKeyFile, rootFile, intermediateKeyFile, intermediateFile,
	formerRootKeyFile, formerRootFile, formerIntermediateKeyFile, formerIntermediateFile,
	olderFile, crossFile, originFile, retiredFile, clusterKeyFile, clusterFile,
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
	f := folder{path: dir, rename: os.Rename}
	unlock, err := f.lock()
	if err != nil {
		return nil, fmt.Errorf("sealing keys: %w", err)
	}
	defer unlock()
	files := change{}
	for _, name := range shared {
		data, found, err := f.read(name)
		if err != nil {
			return nil, fmt.Errorf("sealing keys: %w", err)
		}
		if found {
			files[name] = data
		}
	}
	text, err := json.Marshal(files)
	if err != nil {
		return nil, fmt.Errorf("sealing keys: %w", err)
	}
	sealed, err := sealTo(recipient, text, purpose)
	if err != nil {
		return nil, fmt.Errorf("sealing keys: %w", err)
	}
	return sealed, nil
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
	_, kdf, aead := sealKind()
	text, err := hpke.Open(r.key, kdf, aead, []byte(purpose), sealed)
	if err != nil {
		return errBundle
	}
	var files change
	if err := json.Unmarshal(text, &files); err != nil {
		return errBundle
	}
	for name, data := range files {
		if !slices.Contains(shared, name) || len(data) == 0 {
			return fmt.Errorf("the keys hold a file %.50q, which is none of a network's", name)
		}
	}
	if err := importInto(folder{path: dir, rename: os.Rename}, files, belongs); err != nil {
		return fmt.Errorf("taking over keys: %w", err)
	}
	return nil
}

func importInto(f folder, files change, belongs func(*Authorities) error) error {
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
	// What was received is looked at before it counts.
	check := f
	check.given = files
	a, err := check.authorities()
	if err == nil && (a == nil || a.Intermediate == nil) {
		err = errors.New("the keys lack a root or an intermediate CA")
	}
	if err == nil {
		err = belongs(a)
	}
	if err != nil {
		return err
	}
	return f.commit(files)
}
