package pki

import (
	"crypto"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"
)

// Rotation replaces the authorities of the keystore in a directory, whether a
// controller uses it or not: one that does follows. Each step is made whole or
// not at all, also if the machine fails in the middle of it.
type Rotation struct {
	Dir string
	// RootKey is a file with the key of the root CA, for where it is not kept in
	// the directory.
	RootKey string
	// Present is the root CA that signs as far as is known to who decided on the
	// step. If another does by now nothing is changed. It may be nil.
	Present   *x509.Certificate
	Algorithm Algorithm // of keys that are made
	// Shared is whether other controllers have the same keys. Then a step is not
	// made but proposed, to be shared with them, and what is new is only trusted
	// until all have it.
	Shared bool
	// Force shares it also if some have not what was shared before.
	Force bool
	Now   func() time.Time
	Log   *slog.Logger // is told of certificates that are made

	rename func(from, to string) error // os.Rename if nil
}

// Intermediate puts another intermediate CA in place of the present one, under
// the same root. What the one before signed stays good until it ends.
func (r Rotation) Intermediate() (*Authorities, error) {
	return r.begin("rotating the intermediate CA", IntermediateCA, func(f folder, a *Authorities) (change, error) {
		if len(a.Older) >= maxOlder {
			return nil, fmt.Errorf("there are %d intermediate CAs already; rotate the root CA, which ends them", len(a.Older)+1)
		}
		root, err := r.root(f, a)
		if err != nil {
			return nil, err
		}
		c := change{}
		return c, r.sign(c, root, nextIntermediateKeyFile, nextIntermediateFile)
	})
}

// olderThan is the intermediate CAs that sign no more when another does.
func olderThan(a *Authorities) []byte {
	return EncodeCertificates(append([]*x509.Certificate{a.Intermediate}, a.Older...)...)
}

// Root puts another root CA, with an intermediate CA of its own, in place of the
// present one. Both are trusted until Finish.
func (r Rotation) Root() (*Authorities, error) {
	return r.begin("rotating the root CA", RootCA, func(f folder, a *Authorities) (change, error) {
		if a.Rotating() {
			return nil, fmt.Errorf("this is under way since %s, and there can be only one at a time: netkeep keys rotate root --finish ends it, --undo goes back", a.Since().UTC().Format(time.DateOnly))
		}
		old, err := r.root(f, a)
		if err != nil {
			return nil, err
		}
		c := change{originFile: EncodeCertificates(a.Origin)}
		next, err := r.newRoot(c)
		if err != nil {
			return nil, err
		}
		cross, err := crossSign(old, next, r.Now())
		if err != nil {
			return nil, fmt.Errorf("vouching for the new root CA: %w", err)
		}
		c[crossFile] = EncodeCertificates(cross)
		return c, r.sign(c, next, formerIntermediateKeyFile, formerIntermediateFile)
	})
}

// Secret puts another secret in place of the present one of a name. What either
// made is good until it is finished.
func (r Rotation) Secret(name string) (*Authorities, error) {
	return r.begin("rotating the "+name+" key", name, func(f folder, _ *Authorities) (change, error) {
		t, err := f.turn(name, nil)
		if err == nil && t.Former != nil {
			err = fmt.Errorf("this is under way, and there can be only one at a time: netkeep keys rotate %s --finish ends it", name)
		}
		return change{nextSecretFile(name): newSecret()}, err
	})
}

// FinishSecret ends what was made with the secret of before.
func (r Rotation) FinishSecret(name string) (*Authorities, error) {
	return r.change("finishing the rotation of the "+name+" key", func(f folder, _ *Authorities, g generation) (change, error) {
		t, err := f.turn(name, nil)
		switch {
		case err != nil:
			return nil, err
		case g.Next == name:
			return nil, errWaits(name)
		case t.Former == nil:
			return nil, fmt.Errorf("none is under way: netkeep keys rotate %s begins one", name)
		}
		c := change{formerSecretFile(name): nil}
		return c, g.follow(c, g.Next)
	})
}

// Advance has what is trusted take its place although not all controllers have it.
func (r Rotation) Advance() (*Authorities, error) {
	return r.change("rotating keys", func(f folder, a *Authorities, g generation) (change, error) { return f.advance(a, g) })
}

// begin makes something that is trusted from now on, and takes its place at once if
// there is no other controller.
func (r Rotation) begin(doing, what string, step func(f folder, a *Authorities) (change, error)) (*Authorities, error) {
	return r.change(doing, func(f folder, a *Authorities, g generation) (change, error) {
		if g.Next != "" {
			return nil, errWaits(g.Next)
		}
		c, err := step(f, a)
		if err != nil {
			return nil, err
		}
		if err := g.follow(c, what); err != nil || r.Shared {
			return c, err
		}
		b, err := f.bundle()
		if err == nil {
			b, err = b.with(f.path, c)
		}
		if err == nil {
			b, err = b.Advance()
		}
		if err != nil {
			return nil, err
		}
		return f.replace(b), nil
	})
}

func errWaits(what string) error {
	if what == ClusterCA {
		return errors.New("the new CA between controllers is not used yet: some of them have still to be started again to trust it, and netkeep keys status says which")
	}
	return fmt.Errorf("the new %s key or CA is not used yet: other controllers have still to get it, and netkeep keys status says which; netkeep keys rotate %s --force uses it without them", what, what)
}

// Undo goes back to the root CA of before, while both are trusted. They go on
// being so until Finish: somebody may have a certificate of the other by now.
func (r Rotation) Undo() (*Authorities, error) {
	return r.change("undoing the rotation of the root CA", func(f folder, a *Authorities, g generation) (change, error) {
		c := change{}
		switch {
		case !a.Rotating():
			return nil, errNoRotation
		case g.Next == RootCA: // it has signed nothing, and will not
			return c, g.follow(c, "")
		case g.Next != "":
			return nil, errWaits(g.Next)
		}
		if err := f.swapRoots(c); err != nil {
			return nil, err
		}
		return c, g.follow(c, "")
	})
}

// swapRoots has the two roots that are trusted change their places.
func (f folder) swapRoots(c change) error {
	return f.take(c, map[string]string{
		rootFile: formerRootFile, rootKeyFile: formerRootKeyFile, intermediateFile: formerIntermediateFile, intermediateKeyFile: formerIntermediateKeyFile,
		formerRootFile: rootFile, formerRootKeyFile: rootKeyFile, formerIntermediateFile: intermediateFile, formerIntermediateKeyFile: intermediateKeyFile,
	})
}

// Finish ends the trust in the root CA of before, and removes its keys.
func (r Rotation) Finish() (*Authorities, error) {
	return r.change("finishing the rotation of the root CA", func(f folder, a *Authorities, g generation) (change, error) {
		switch {
		case !a.Rotating():
			return nil, errNoRotation
		case g.Next != "":
			return nil, errWaits(g.Next)
		}
		var older []*x509.Certificate
		for _, ca := range a.Older {
			if a.leads(ca, a.Root) {
				older = append(older, ca)
			}
		}
		// Those who have a certificate of another anchor have had time to renew it too.
		between, _ := way(a.Intermediate, a.Root, a.Anchors)
		c := change{
			retiredFile: EncodeCertificates(append(slices.Clone(a.Retired), a.FormerRoot)...), olderFile: EncodeCertificates(older...),
			anchorsFile:    EncodeCertificates(between...),
			formerRootFile: nil, formerRootKeyFile: nil, formerIntermediateFile: nil, formerIntermediateKeyFile: nil,
		}
		return c, g.follow(c, "")
	})
}

var errNoRotation = errors.New("none is under way: netkeep keys rotate root begins one")

// change makes the change that a step decides on, or proposes it, and returns what
// is so then.
func (r Rotation) change(doing string, step func(f folder, a *Authorities, g generation) (change, error)) (_ *Authorities, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", doing, err)
		}
	}()
	f := folder{path: r.Dir, rename: r.rename}
	if f.rename == nil {
		f.rename = os.Rename
	}
	if _, err := os.Stat(r.Dir); err != nil {
		return nil, err
	}
	unlock, err := f.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := errors.Join(f.sweep(), f.finish()); err != nil {
		return nil, err
	}
	a, err := f.authorities()
	if err != nil {
		return nil, err
	}
	if a == nil || a.Intermediate == nil {
		return nil, fmt.Errorf("there are no keys in %s: its controller makes them when it first starts", r.Dir)
	}
	if r.Present != nil && !r.Present.Equal(a.Root) {
		return nil, errors.New("somebody else has changed the keys at the same moment: see netkeep keys status, and decide anew")
	}
	g, err := f.generation()
	if err != nil {
		return nil, err
	}
	c, err := step(f, a, g)
	if err != nil {
		return nil, err
	}
	if r.Shared {
		return r.propose(f, c)
	}
	if err := f.commit(c); err != nil {
		return nil, err
	}
	return f.authorities()
}

// propose leaves a change to the controller, which shares it with the others before
// it counts.
func (r Rotation) propose(f folder, c change) (*Authorities, error) {
	b, err := f.bundle()
	if err == nil {
		b, err = b.with(f.path, c)
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(proposal{b.files, r.Force})
	if err != nil {
		return nil, err
	}
	return b.authorities, f.write(proposalFile, text)
}

// root is the present root CA with its key.
func (r Rotation) root(f folder, a *Authorities) (authority, error) {
	key, err := f.readKey(rootKeyFile)
	name := f.file(rootKeyFile)
	if r.RootKey != "" {
		name = r.RootKey
		key, err = readKeyFile(r.RootKey)
	}
	switch {
	case err != nil:
		return authority{}, err
	case key == nil:
		return authority{}, fmt.Errorf("the key of the root CA is needed for this and not in %s, from where it was taken away: name its file with --root-key FILE", name)
	case !SamePublic(key.Public(), a.Root.PublicKey):
		return authority{}, fmt.Errorf("%s is not the key of the root CA %q; name its file with --root-key FILE", name, a.Root.Subject.CommonName)
	}
	return authority{cert: a.Root, key: key}, nil
}

func readKeyFile(name string) (crypto.Signer, error) {
	data, err := readPEM(name, checkKey)
	if err != nil {
		return nil, err
	}
	key, err := ParseKey(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

// newRoot makes a root CA as part of a change, which is trusted beside the present
// one and does not sign yet.
func (r Rotation) newRoot(c change) (authority, error) {
	key, text, err := r.newKey()
	if err != nil {
		return authority{}, err
	}
	cert, err := newRoot(key, r.Now())
	if err != nil {
		return authority{}, err
	}
	logMade(r.Log, cert)
	c[formerRootKeyFile], c[formerRootFile] = text, EncodeCertificates(cert)
	return authority{cert: cert, key: key}, nil
}

// sign makes an intermediate CA as part of a change.
func (r Rotation) sign(c change, root authority, keyFile, file string) error {
	key, text, err := r.newKey()
	if err != nil {
		return err
	}
	cert, err := newIntermediate(root, key, r.Now())
	if err != nil {
		return err
	}
	logMade(r.Log, cert)
	c[keyFile], c[file] = text, EncodeCertificates(cert)
	return nil
}

func (r Rotation) newKey() (crypto.Signer, []byte, error) {
	key, err := r.Algorithm.Generate()
	if err != nil {
		return nil, nil, err
	}
	text, err := EncodeKey(key)
	return key, text, err
}

// take has files move to other names as part of a change. One that is not there
// is not there under the other name either.
func (f folder) take(c change, names map[string]string) error {
	for from, to := range names {
		data, _, err := f.read(from)
		if err != nil {
			return err
		}
		c[to] = data
	}
	return nil
}

// crossSign has a root vouch for the key of the next one, for as long as both
// are good.
func crossSign(old, next authority, now time.Time) (*x509.Certificate, error) {
	t := &x509.Certificate{
		Subject: next.cert.Subject, RawSubject: next.cert.RawSubject, KeyUsage: next.cert.KeyUsage,
		SubjectKeyId: next.cert.SubjectKeyId, BasicConstraintsValid: true, IsCA: true,
	}
	return old.issue(t, next.cert.PublicKey, now, rootLifetime)
}
