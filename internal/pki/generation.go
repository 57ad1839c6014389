package pki

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// generationFile is where it is said how often the keys that controllers share
// have changed.
const generationFile = "generation"

// generation is what it holds. Two that follow each other go together: whatever a
// controller makes with one is good at who has the other. So a network goes on
// while some have the one and some the other, if nobody goes further meanwhile.
type generation struct {
	Number int `json:"generation"`
	// Next is what is trusted already and will be used as soon as all have it: an
	// intermediate or root CA, or a secret. Empty for nothing.
	Next string `json:"next,omitempty"`
}

// The CAs that can be rotated, as commands name them.
const (
	RootCA         = "root"
	IntermediateCA = "intermediate"
)

func (f folder) generation() (g generation, err error) {
	data, found, err := f.read(generationFile)
	if err == nil && found {
		if err = json.Unmarshal(data, &g); err != nil {
			err = f.problem(generationFile, err)
		}
	}
	return g, err
}

// follow makes a change one of the next generation.
func (g generation) follow(c change, next string) error {
	text, err := json.Marshal(generation{g.Number + 1, next})
	c[generationFile] = append(text, '\n')
	return err
}

// advance is the change that has what is trusted take its place.
func (f folder) advance(a *Authorities, g generation) (change, error) {
	c := change{}
	var err error
	switch g.Next {
	case "":
		return nil, errors.New("nothing waits for other controllers")
	case RootCA:
		err = f.swapRoots(c)
	case IntermediateCA:
		if a.Next == nil {
			return nil, f.problem(nextIntermediateFile, errors.New("missing"))
		}
		c[olderFile] = olderThan(a)
		err = f.take(c, map[string]string{nextIntermediateFile: intermediateFile, nextIntermediateKeyFile: intermediateKeyFile})
		c[nextIntermediateFile], c[nextIntermediateKeyFile] = nil, nil
	case ClusterCA:
		err = f.takeCluster(c)
	default:
		err = f.takeTurn(c, g.Next)
	}
	if err != nil {
		return nil, err
	}
	return c, g.follow(c, "")
}

// takeTurn has the next one of a secret take the place of the current one.
func (f folder) takeTurn(c change, name string) error {
	first, err := f.readSecret(macKeyFile)
	if err != nil {
		return err
	}
	t, err := f.turn(name, first)
	if err == nil && t.Next == nil {
		err = f.problem(nextSecretFile(name), errors.New("missing"))
	}
	c[secretFile(name)], c[formerSecretFile(name)], c[nextSecretFile(name)] = t.Next, t.Current, nil
	return err
}

// Bundle is all that the controllers of a network share, of one generation. It does
// not change.
type Bundle struct {
	files change
	generation
	authorities *Authorities
	secrets     *secrets
	cluster     Cluster
}

// newBundle looks at files before they count.
func newBundle(path string, files change) (Bundle, error) {
	for name, data := range files {
		if !slices.Contains(shared, name) || len(data) == 0 {
			return Bundle{}, fmt.Errorf("the keys hold a file %.50q, which is none of a network's", name)
		}
	}
	f := folder{path: path, given: files}
	b := Bundle{files: files}
	var err error
	if b.generation, err = f.generation(); err != nil {
		return b, err
	}
	if b.authorities, err = f.authorities(); err != nil {
		return b, err
	}
	if b.authorities == nil || b.authorities.Intermediate == nil {
		return b, errors.New("the keys lack a root or an intermediate CA")
	}
	if b.cluster, err = f.cluster(); err != nil {
		return b, err
	}
	b.secrets, err = f.secrets()
	return b, err
}

// bundle is what there is. The caller holds the folder's lock.
func (f folder) bundle() (Bundle, error) {
	files := change{}
	for _, name := range shared {
		data, found, err := f.read(name)
		if err != nil {
			return Bundle{}, err
		}
		if found && len(data) > 0 {
			files[name] = data
		}
	}
	return newBundle(f.path, files)
}

// with is the bundle after a change.
func (b Bundle) with(path string, c change) (Bundle, error) {
	files := maps.Clone(b.files)
	for name, data := range c {
		if files[name] = data; len(data) == 0 {
			delete(files, name)
		}
	}
	return newBundle(path, files)
}

// ReadBundle returns what the keystore in a directory shares with others.
func ReadBundle(dir string) (b Bundle, err error) {
	err = locked(dir, func(f folder) error {
		b, err = f.bundle()
		return err
	})
	return b, err
}

// Generation is how often the keys have changed.
func (b Bundle) Generation() int { return b.generation.Number }

// Next is what will be used as soon as all have it, by the name that commands have
// for it; empty for nothing.
func (b Bundle) Next() string { return b.generation.Next }

// Authorities are who signs, and who is trusted.
func (b Bundle) Authorities() *Authorities { return b.authorities }

// Cluster are the CAs between members of a cluster.
func (b Bundle) Cluster() Cluster { return b.cluster }

// SecretID is how people know the current secret of a name.
func (b Bundle) SecretID(name string) string { return secretID(b.secrets.turns[name].Current) }

// Turning reports whether what a secret was before is still good.
func (b Bundle) Turning(secret string) bool { return b.secrets.turns[secret].Former != nil }

// Digest tells two of one generation apart. Keys of root CAs are kept elsewhere by
// some, and do not count.
func (b Bundle) Digest() string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(b.files)) {
		if name != rootKeyFile && name != formerRootKeyFile && name != clusterKeyFile && name != clusterFile {
			fmt.Fprintf(sum, "%s %x\n", name, sha256.Sum256(b.files[name]))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// After is the bundle as what follows a generation whose keys nobody has any more.
func (b Bundle) After(lost int) (Bundle, error) {
	c := change{}
	if err := (generation{Number: lost}).follow(c, b.generation.Next); err != nil {
		return b, err
	}
	return b.with("", c)
}

// Advance is the bundle in which what is trusted has taken its place.
func (b Bundle) Advance() (Bundle, error) {
	f := folder{given: b.files}
	c, err := f.advance(b.authorities, b.generation)
	if err != nil {
		return b, err
	}
	return b.with("", c)
}

// Write puts a bundle in the place of what is in the directory of a keystore.
func (b Bundle) Write(dir string) error {
	return locked(dir, func(f folder) error { return f.commit(f.replace(b)) })
}

// replace is the change that puts a bundle in the place of what is there. A key of
// a root CA that the bundle lacks stays, since it may be kept here alone.
func (f folder) replace(b Bundle) change {
	c := change{}
	for _, name := range shared {
		// A controller that does not keep the store need not have its CA.
		if name != clusterKeyFile && name != clusterFile || b.files[name] != nil {
			c[name] = b.files[name]
		}
	}
	for key, root := range map[string]*x509.Certificate{rootKeyFile: b.authorities.Root, formerRootKeyFile: b.authorities.FormerRoot} {
		if c[key] == nil {
			c[key] = f.ownRootKey(root)
		}
	}
	for name, data := range c {
		if is, _, err := f.read(name); err == nil && bytes.Equal(is, data) {
			delete(c, name)
		}
	}
	return c
}

// ownRootKey is the key of a root CA, if it is here.
func (f folder) ownRootKey(root *x509.Certificate) []byte {
	for _, name := range []string{rootKeyFile, formerRootKeyFile} {
		key, err := f.readKey(name)
		if err == nil && key != nil && root != nil && SamePublic(key.Public(), root.PublicKey) {
			data, _, _ := f.readOwn(name)
			return data
		}
	}
	return nil
}
