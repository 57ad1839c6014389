package pki

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Elsewhere is the keys of a network that another program kept.
type Elsewhere struct {
	// Signing is the CA that signs and those above it up to the root, and Key that of the
	// first.
	Signing []*x509.Certificate
	Key     crypto.Signer
	// ServerKey is the key that clients know the server by, and that signed invitations.
	ServerKey crypto.Signer
	// Anchors are all CAs that clients and routers trust.
	Anchors []*x509.Certificate
}

// Check says why the keys cannot be used.
func (e Elsewhere) Check() error {
	if len(e.Signing) == 0 || e.Key == nil || e.ServerKey == nil {
		return errors.New("there is no CA that signs, or its key or that of the server is missing")
	}
	for _, key := range []crypto.Signer{e.Key, e.ServerKey} {
		if err := checkPublic(key.Public()); err != nil {
			return err
		}
	}
	root := e.Signing[len(e.Signing)-1]
	if checkAuthority(root, root) != nil {
		return fmt.Errorf("the CA %q is not the root of those that sign, which is %q: put its certificate beside the others that are trusted", root.Subject.CommonName, root.Issuer.CommonName)
	}
	if _, ok := way(e.Signing[0], root, e.between()); !ok {
		return fmt.Errorf("nothing leads from the CA %q to its root %q", e.Signing[0].Subject.CommonName, root.Subject.CommonName)
	}
	if n := len(e.between()); n > maxAnchors {
		return fmt.Errorf("%d CAs are trusted, and %d may be", n, maxAnchors)
	}
	return nil
}

// between are the CAs that are neither the root nor the one that signs.
func (e Elsewhere) between() []*x509.Certificate {
	root := e.Signing[len(e.Signing)-1]
	all := slices.Concat(e.Signing[1:], e.Anchors)
	all = slices.DeleteFunc(all, func(ca *x509.Certificate) bool { return ca.Equal(root) || ca.Equal(e.Signing[0]) })
	var once []*x509.Certificate
	for _, ca := range all {
		if !slices.ContainsFunc(once, ca.Equal) {
			once = append(once, ca)
		}
	}
	return once
}

// Adopt makes a keystore of the keys of a network that another program kept, in a directory
// where there is none. Where that had a root alone, which signed by itself, it makes an
// intermediate CA below it.
func Adopt(dir string, e Elsewhere, now time.Time) error {
	if err := e.Check(); err != nil {
		return err
	}
	f := folder{path: dir, rename: os.Rename}
	if err := f.make(); err != nil {
		return err
	}
	present, err := f.present()
	if err != nil {
		return err
	}
	if len(present) > 0 {
		return fmt.Errorf("%s has keys already", dir)
	}
	files, err := e.files(now)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := f.write(file.name, file.text); err != nil {
			return err
		}
	}
	return nil
}

// adopted is a file of a keystore.
type adopted struct {
	name string
	text []byte
}

// files are those of the keystore, in the order of their creation.
func (e Elsewhere) files(now time.Time) (all []adopted, err error) {
	put := func(name string, key crypto.Signer) {
		text, bad := EncodeKey(key)
		all, err = append(all, adopted{name, text}), errors.Join(err, bad)
	}
	root, signing := e.Signing[len(e.Signing)-1], authority{e.Signing[0], e.Key}
	all = append(all, adopted{macKeyFile, newSecret()})
	if len(e.Signing) == 1 {
		put(rootKeyFile, e.Key)
		if signing, err = below(signing, now); err != nil {
			return nil, err
		}
	}
	all = append(all, adopted{rootFile, EncodeCertificates(root)})
	put(intermediateKeyFile, signing.key)
	all = append(all, adopted{intermediateFile, EncodeCertificates(signing.cert)})
	put(serverKeyFile, e.ServerKey)
	if between := e.between(); len(between) > 0 {
		all = append(all, adopted{anchorsFile, EncodeCertificates(between...)})
	}
	return all, err
}

// below makes an intermediate CA.
func below(root authority, now time.Time) (authority, error) {
	generate, err := P256.generator()
	if err != nil {
		return authority{}, err
	}
	key, err := generate()
	if err != nil {
		return authority{}, err
	}
	cert, err := newIntermediate(root, key, now)
	return authority{cert, key}, err
}
