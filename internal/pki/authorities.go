package pki

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// The files of authorities that are not the present ones. There are none before
// the first rotation.
const (
	formerRootKeyFile         = "former-root.key"
	formerRootFile            = "former-root.crt"
	formerIntermediateKeyFile = "former-intermediate.key"
	formerIntermediateFile    = "former-intermediate.crt"
	olderFile                 = "older.crt"   // intermediate CAs that sign no more
	crossFile                 = "cross.crt"   // the root's key, vouched for by the one before
	originFile                = "origin.crt"  // the network's first root
	retiredFile               = "retired.crt" // roots that are trusted no more
	nextIntermediateKeyFile   = "next-intermediate.key"
	nextIntermediateFile      = "next-intermediate.crt"
)

// maxOlder bounds how many intermediate CAs there may have been under the roots
// that are trusted, and maxRetired how many roots a network may have had.
const (
	maxOlder   = 20
	maxRetired = 50
)

// Authorities is who signs for a network and who is trusted, as the certificates
// of a keystore say. It does not change.
type Authorities struct {
	Root, Intermediate *x509.Certificate
	// FormerRoot and FormerIntermediate are trusted too while one root takes the
	// other's place; nil otherwise.
	FormerRoot, FormerIntermediate *x509.Certificate
	// Next is the intermediate CA that will sign, once all controllers have it; nil
	// if there is none.
	Next *x509.Certificate
	// Older are intermediate CAs that sign no more. What they signed is good.
	Older []*x509.Certificate
	// Cross is the present root's key, vouched for by the root before: who knows
	// only that one finds the way to it. Nil if there was none before.
	Cross *x509.Certificate
	// Origin is the first root that the network had, by which it is known for
	// good, and Retired those that are trusted no more.
	Origin  *x509.Certificate
	Retired []*x509.Certificate
	// Anchors are CAs that are trusted besides and sign nothing. An intermediate CA may
	// be one of theirs, as long as they lead to the root.
	Anchors []*x509.Certificate
}

// Read returns the authorities of the keystore in dir, nil if there is none. It
// makes nothing, and needs no key.
func Read(dir string) (*Authorities, error) {
	a, err := folder{path: dir}.authorities()
	if err != nil {
		return nil, fmt.Errorf("opening keystore: %w", err)
	}
	return a, nil
}

// authorities reads the certificates. What a copy of another controller's
// directory leaves lying about is told from what counts: a root that has retired
// is none that is trusted, whatever other file it is in.
func (f folder) authorities() (*Authorities, error) {
	a := new(Authorities)
	for _, one := range []struct {
		name string
		to   **x509.Certificate
	}{
		{rootFile, &a.Root}, {intermediateFile, &a.Intermediate}, {formerRootFile, &a.FormerRoot},
		{formerIntermediateFile, &a.FormerIntermediate}, {crossFile, &a.Cross}, {originFile, &a.Origin}, {nextIntermediateFile, &a.Next},
	} {
		certs, err := f.readCertificates(one.name, 1)
		if err != nil {
			return nil, err
		}
		if len(certs) > 0 {
			*one.to = certs[0]
		}
	}
	var err error
	if a.Older, err = f.readCertificates(olderFile, maxOlder); err != nil {
		return nil, err
	}
	if a.Retired, err = f.readCertificates(retiredFile, maxRetired); err != nil {
		return nil, err
	}
	if a.Anchors, err = f.readCertificates(anchorsFile, maxAnchors); err != nil {
		return nil, err
	}
	if a.Root == nil {
		return nil, nil
	}
	if a.Origin == nil {
		a.Origin = a.Root
	}
	if a.FormerRoot == nil || a.FormerIntermediate == nil || a.FormerRoot.Equal(a.Root) || slices.ContainsFunc(a.Retired, a.FormerRoot.Equal) {
		a.FormerRoot, a.FormerIntermediate = nil, nil
	}
	if a.Next != nil && !a.leads(a.Next, a.Root) {
		a.Next = nil
	}
	if a.Cross != nil && !SamePublic(a.Cross.PublicKey, a.Root.PublicKey) {
		a.Cross = nil
	}
	return a, f.checkAuthorities(a)
}

// checkAuthorities refuses certificates that do not belong together.
func (f folder) checkAuthorities(a *Authorities) error {
	if err := checkAuthority(a.Root, a.Root); err != nil {
		return f.problem(rootFile, err)
	}
	if slices.ContainsFunc(a.Retired, a.Root.Equal) {
		return f.problem(rootFile, errors.New("the root CA has retired"))
	}
	if a.Intermediate != nil {
		if err := a.checkLeads(a.Intermediate, a.Root); err != nil {
			return f.problem(intermediateFile, err)
		}
	}
	if a.FormerRoot == nil {
		return nil
	}
	if err := checkAuthority(a.FormerRoot, a.FormerRoot); err != nil {
		return f.problem(formerRootFile, err)
	}
	if err := a.checkLeads(a.FormerIntermediate, a.FormerRoot); err != nil {
		return f.problem(formerIntermediateFile, err)
	}
	return nil
}

// Rotating reports whether one root takes the other's place at present.
func (a *Authorities) Rotating() bool { return a.FormerRoot != nil }

// Bundle is the certificates that peers need to believe what was signed: those
// that sign now first, and of each an intermediate CA before its root.
func (a *Authorities) Bundle() []*x509.Certificate {
	all := []*x509.Certificate{a.Intermediate, a.Root}
	if a.Rotating() {
		all = append(all, a.FormerIntermediate, a.FormerRoot)
	}
	others := a.Older
	if a.Next != nil {
		others = append([]*x509.Certificate{a.Next}, a.Older...)
	}
	for _, old := range others {
		if a.under(old) {
			all = append(all, old)
		}
	}
	for _, ca := range a.Anchors {
		if !slices.ContainsFunc(all, ca.Equal) && !slices.ContainsFunc(a.Retired, ca.Equal) {
			all = append(all, ca)
		}
	}
	return all
}

// Roots are the roots that are trusted, the present one first.
func (a *Authorities) Roots() []*x509.Certificate {
	if a.Rotating() {
		return []*x509.Certificate{a.Root, a.FormerRoot}
	}
	return []*x509.Certificate{a.Root}
}

// under reports whether an intermediate CA is one of a root that is trusted.
func (a *Authorities) under(cert *x509.Certificate) bool {
	return slices.ContainsFunc(a.Roots(), func(root *x509.Certificate) bool { return a.leads(cert, root) })
}

// chain is what goes along with a certificate that is signed now.
func (a *Authorities) chain() []*x509.Certificate {
	between, _ := way(a.Intermediate, a.Root, a.Anchors)
	all := append([]*x509.Certificate{a.Intermediate}, between...)
	if a.Cross != nil {
		all = append(all, a.Cross)
	}
	return all
}

// Since is when the present root was made.
func (a *Authorities) Since() time.Time { return a.Root.NotBefore.Add(backdate) }

// Current reports whether a certificate was signed under the present root. It
// looks at the name of the key that signed it and proves nothing.
func (a *Authorities) Current(cert *x509.Certificate) bool {
	return a.signed(cert, func(ca *x509.Certificate) bool { return a.leads(ca, a.Root) })
}

// Trusts reports whether a certificate was signed under a root that is trusted,
// as Current does.
func (a *Authorities) Trusts(cert *x509.Certificate) bool {
	return a.signed(cert, func(*x509.Certificate) bool { return true })
}

func (a *Authorities) signed(cert *x509.Certificate, counts func(ca *x509.Certificate) bool) bool {
	return slices.ContainsFunc(a.Bundle(), func(ca *x509.Certificate) bool {
		return len(ca.SubjectKeyId) > 0 && bytes.Equal(ca.SubjectKeyId, cert.AuthorityKeyId) && counts(ca)
	})
}

// equal reports whether two are the same.
func (a *Authorities) equal(b *Authorities) bool {
	same := func(a, b *x509.Certificate) bool { return a == b || a != nil && b != nil && a.Equal(b) }
	return same(a.Root, b.Root) && same(a.Intermediate, b.Intermediate) && same(a.FormerRoot, b.FormerRoot) &&
		same(a.FormerIntermediate, b.FormerIntermediate) && same(a.Cross, b.Cross) && same(a.Origin, b.Origin) && same(a.Next, b.Next) &&
		slices.EqualFunc(a.Older, b.Older, same) && slices.EqualFunc(a.Retired, b.Retired, same) && slices.EqualFunc(a.Anchors, b.Anchors, same)
}

// follows refuses authorities that do not say what became of those before, as in
// the middle of a copy: trust ends where it is said to, and not for want of a
// file.
func (a *Authorities) follows(before *Authorities) error {
	for _, root := range before.Roots() {
		if !slices.ContainsFunc(slices.Concat(a.Roots(), a.Retired), root.Equal) {
			return fmt.Errorf("the files do not say what became of the root CA %q; copy all of them", root.Subject.CommonName)
		}
	}
	if a.Cross == nil && !slices.ContainsFunc(before.Roots(), a.Root.Equal) {
		return fmt.Errorf("no root CA from before vouches for %q; copy all files", a.Root.Subject.CommonName)
	}
	return nil
}

// authorityFiles are those by which one sees that authorities changed.
var authorityFiles = [...]string{
	rootFile, intermediateFile, intermediateKeyFile, formerRootFile, formerIntermediateFile, olderFile, crossFile, originFile, retiredFile, changeFile,
	nextIntermediateFile, generationFile, anchorsFile, "session.key", "former-session.key", "next-session.key", "seal.key", "former-seal.key", "next-seal.key",
}

// seen is the authorities' files as they were when they were looked at.
type seen [len(authorityFiles)]fs.FileInfo

func (f folder) look() seen {
	var s seen
	for i, name := range authorityFiles {
		if info, err := os.Stat(f.file(name)); err == nil {
			s[i] = info
		}
	}
	return s
}

func (s seen) same(other seen) bool {
	for i := range s {
		if !sameFile(s[i], other[i]) {
			return false
		}
	}
	return true
}

// Follow takes up what a rotation, or a copy of another controller's directory,
// has changed since the keystore was opened, and reports whether there was
// anything. Files that do not belong together, as in the middle of a copy, are an
// error once, and what was in force stays so.
func (ks *Keystore) Follow() (bool, error) {
	now := ks.folder.look()
	ks.mu.Lock()
	last := ks.seen
	ks.seen = now
	ks.mu.Unlock()
	if now.same(last) {
		return false, nil
	}
	changed, err := ks.follow()
	if err != nil {
		err = fmt.Errorf("reading keystore: %w", err)
	}
	return changed, err
}

func (ks *Keystore) follow() (bool, error) {
	unlock, err := ks.folder.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	if err := ks.folder.finish(); err != nil {
		return false, err
	}
	before := ks.Authorities()
	next, err := ks.folder.authorities()
	switch {
	case err != nil:
		return false, err
	case next == nil || next.Intermediate == nil:
		return false, fmt.Errorf("%s or %s is missing; %s", ks.folder.file(rootFile), intermediateFile, restore)
	}
	turned, err := ks.folder.secrets()
	if err != nil {
		return false, err
	}
	same := turned.equal(ks.secrets.Load())
	if next.equal(before) {
		ks.secrets.Store(turned)
		return !same, nil
	}
	if err := next.follows(before); err != nil {
		return false, err
	}
	key, err := ks.folder.readKey(intermediateKeyFile)
	if err != nil {
		return false, err
	}
	if key == nil || !SamePublic(key.Public(), next.Intermediate.PublicKey) {
		return false, ks.folder.problem(intermediateKeyFile, fmt.Errorf("does not belong to %s", intermediateFile))
	}
	ks.secrets.Store(turned)
	ks.use(next, key)
	return true, ks.openServer()
}
