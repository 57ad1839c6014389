package pki

import (
	"crypto/hmac"
	"crypto/hpke"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// The files with which a controller gets keys from others, and gives them some:
// its own key to seal for, and what a command on its machine wants to be shared.
const (
	handoverFile = "handover.key"
	proposalFile = "proposal.key"
)

// locked does something to the directory of a keystore alone.
func locked(dir string, do func(folder) error) error {
	f := folder{path: dir, rename: os.Rename}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.finish(); err != nil {
		return err
	}
	return do(f)
}

// Handover is how one of several controllers gets keys from the others.
type Handover struct {
	Recipient
	proof []byte
}

// OpenHandover opens the key that is sealed for, in the directory of a keystore,
// and makes one if there is none. It never leaves the directory.
func OpenHandover(dir string) (h *Handover, err error) {
	err = locked(dir, func(f folder) error {
		h, err = f.openHandover()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening the key for which other controllers seal: %w", err)
	}
	return h, nil
}

func (f folder) openHandover() (*Handover, error) {
	first, err := f.readSecret(macKeyFile)
	if err != nil {
		return nil, err
	}
	h := new(Handover)
	if h.proof, err = deriveKey(first, "keys of controllers to seal for"); err != nil {
		return nil, err
	}
	data, found, err := f.readOwn(handoverFile)
	if err != nil {
		return nil, err
	}
	kem, _, _ := sealKind()
	if found {
		if h.key, err = kem.NewPrivateKey(data); err == nil {
			return h, nil
		}
	}
	// One that is damaged is worth nothing; the others seal for the next.
	made, err := NewRecipient()
	if err != nil {
		return nil, err
	}
	if data, err = made.key.Bytes(); err != nil {
		return nil, err
	}
	h.Recipient = *made
	return h, f.write(handoverFile, data)
}

// Proof shows the others that a key to seal for is that of a controller, or that
// one has sealed something: who can only write to the store can neither have keys
// sealed for itself nor hand over its own.
func (h *Handover) Proof(what string, data []byte) []byte {
	mac := hmac.New(sha256.New, h.proof)
	fmt.Fprintf(mac, "%d %s", len(what), what)
	mac.Write(data)
	return mac.Sum(nil)
}

// Proven reports whether a key to seal for is that of a controller.
func (h *Handover) Proven(controller string, public, proof []byte) bool {
	return len(public) > 0 && hmac.Equal(h.Proof(controller, public), proof)
}

// SealFor seals a bundle for another controller and a purpose: who opens it must
// name the same, and sees that one of the network's controllers sealed it.
func (h *Handover) SealFor(b Bundle, public []byte, purpose string) ([]byte, error) {
	sealed, err := b.Seal(public, purpose)
	if err != nil {
		return nil, err
	}
	return append(sealed, h.Proof(purpose, sealed)...), nil
}

// Open returns a bundle that another controller sealed for this one and a purpose.
func (h *Handover) Open(sealed []byte, purpose string) (Bundle, error) {
	end := len(sealed) - sha256.Size
	if end < 0 || !hmac.Equal(sealed[end:], h.Proof(purpose, sealed[:end])) {
		return Bundle{}, errors.New("the keys were not sealed by a controller of this network")
	}
	return h.Recipient.Open(sealed[:end], purpose)
}

// Seal seals a bundle for a recipient and a purpose: who opens it must name the
// same.
func (b Bundle) Seal(recipient []byte, purpose string) ([]byte, error) {
	text, err := json.Marshal(b.files)
	if err != nil {
		return nil, fmt.Errorf("sealing keys: %w", err)
	}
	sealed, err := sealTo(recipient, text, purpose)
	if err != nil {
		return nil, fmt.Errorf("sealing keys: %w", err)
	}
	return sealed, nil
}

// Open returns a bundle that was sealed for this recipient and purpose.
func (r *Recipient) Open(sealed []byte, purpose string) (Bundle, error) {
	_, kdf, aead := sealKind()
	text, err := hpke.Open(r.key, kdf, aead, []byte(purpose), sealed)
	if err != nil {
		return Bundle{}, errBundle
	}
	return parseBundle(text)
}

func parseBundle(text []byte) (Bundle, error) {
	var files change
	if err := json.Unmarshal(text, &files); err != nil {
		return Bundle{}, errBundle
	}
	return newBundle("", files)
}

// Shares reports whether the controller of a keystore shares it with others.
func Shares(dir string) bool {
	_, err := os.Stat(folder{path: dir}.file(handoverFile))
	return err == nil
}

// StopSharing is for a controller that has its network for itself again.
func StopSharing(dir string) error {
	err := locked(dir, func(f folder) error { return errors.Join(f.remove(handoverFile), f.remove(proposalFile)) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// proposal is what a command wants to be shared.
type proposal struct {
	Files change `json:"files"`
	Force bool   `json:"force"`
}

// Proposal returns what a command on this machine wants to be shared, and whether
// also if some have not what was shared before; found is false for nothing.
func Proposal(dir string) (b Bundle, force, found bool, err error) {
	err = locked(dir, func(f folder) error {
		data, there, err := f.readOwn(proposalFile)
		if err != nil || !there {
			return err
		}
		var p proposal
		found = true
		if err = json.Unmarshal(data, &p); err == nil {
			force = p.Force
			b, err = newBundle(dir, p.Files)
		}
		return err
	})
	return b, force, found, err
}

// DropProposal takes it away, once it is shared or refused.
func DropProposal(dir string) error {
	return locked(dir, func(f folder) error { return f.remove(proposalFile) })
}

// Proposed reports whether a proposal waits.
func Proposed(dir string) bool {
	_, err := os.Stat(folder{path: dir}.file(proposalFile))
	return err == nil
}
