package pki

import (
	"crypto"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// oldNetwork puts the keys of a network that was made elsewhere into a directory: a root
// above another CA above the one that signs, and a second root that clients trust too,
// with its key.
func oldNetwork(t *testing.T, dir string, c *clock, write ...string) (root, between *x509.Certificate, second authority) {
	t.Helper()
	ca := func(by *authority, depth int) authority {
		key := ecKey(t)
		template := must(caTemplate("Somebody's CA", key.Public()))(t)
		template.MaxPathLen, template.MaxPathLenZero = depth, depth == 0
		if by == nil {
			template.NotBefore, template.NotAfter = c.Now().Add(-backdate), c.Now().Add(rootLifetime)
			return authority{must(certify(template, template, key.Public(), key))(t), key}
		}
		return authority{must(by.issue(template, key.Public(), c.Now(), intermediateLifetime))(t), key}
	}
	first := ca(nil, 2)
	above := ca(&first, 1)
	signing := ca(&above, 0)
	second = ca(nil, 0)
	files := map[string][]byte{
		macKeyFile: newSecret(), rootFile: EncodeCertificates(first.cert), rootKeyFile: must(EncodeKey(first.key))(t),
		intermediateFile: EncodeCertificates(signing.cert), intermediateKeyFile: must(EncodeKey(signing.key))(t),
		anchorsFile:   EncodeCertificates(second.cert, first.cert, above.cert, signing.cert),
		serverKeyFile: must(EncodeKey(ecKey(t)))(t),
	}
	must(0, os.MkdirAll(dir, 0o700))(t)
	for name, text := range files {
		if len(write) == 0 || slices.Contains(write, name) {
			must(0, os.WriteFile(filepath.Join(dir, name), text, 0o600))(t)
		}
	}
	return first.cert, above.cert, second
}

// TestAnchors opens the keys of a network that was made elsewhere: what is signed is
// believed by who trusts its root, and what its other CAs signed is believed here.
func TestAnchors(t *testing.T) {
	c, dir := newClock(), filepath.Join(t.TempDir(), "pki")
	root, between, second := oldNetwork(t, dir, c)
	must(0, os.Remove(filepath.Join(dir, rootKeyFile)))(t)
	ks := must(Open(dir, options(c)))(t)
	bundle := ks.TrustBundle()
	if !bundle[0].Equal(ks.Intermediate()) || !bundle[1].Equal(root) || len(bundle) != 4 || !slices.ContainsFunc(bundle, second.cert.Equal) || !slices.ContainsFunc(bundle, between.Equal) {
		t.Errorf("these are trusted: %d", len(bundle))
	}
	fresh := clientChain(t, ks.Signer(), ecKey(t))
	server := must(ParseCertificates([]byte(contents(t, dir)[serverFile]), maxPresented))(t)
	for what, chain := range map[string][]*x509.Certificate{"a client": fresh, "the server": server} {
		if len(chain) != 3 || !chain[2].Equal(between) {
			t.Errorf("%s shows %d certificates", what, len(chain))
		}
		if _, err := NewRoots([]*x509.Certificate{root}).VerifyLeaf(chain, VerifyOptions{Now: c.Now()}); err != nil {
			t.Errorf("who trusts the root does not believe %s: %v", what, err)
		}
	}
	if Outdated(fresh[0], bundle) || !ks.Authorities().Current(fresh[0]) {
		t.Error("what was just signed is to be renewed")
	}
	key := ecKey(t)
	old := must(second.issue(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, crypto.PublicKey(key.Public()), c.Now(), 365*day))(t)
	if _, err := NewRoots(bundle).VerifyLeaf([]*x509.Certificate{old}, VerifyOptions{Now: c.Now()}); err != nil {
		t.Errorf("a certificate of before is not believed: %v", err)
	}
	if ks.Authorities().Current(old) || !ks.Authorities().Trusts(old) || !Outdated(old, bundle) {
		t.Error("a certificate of another anchor is as good as one of the present root")
	}
	// A start finds the same, and makes no other certificate.
	before := contents(t, dir)[serverFile]
	if again := must(Open(dir, options(c)))(t); !again.Authorities().equal(ks.Authorities()) || contents(t, dir)[serverFile] != before {
		t.Error("another start finds something else")
	}
	// An anchor that is taken away is trusted no more.
	must(0, os.WriteFile(filepath.Join(dir, anchorsFile), EncodeCertificates(between), 0o600))(t)
	if !must(ks.Follow())(t) || slices.ContainsFunc(ks.TrustBundle(), second.cert.Equal) {
		t.Error("an anchor that is gone is trusted")
	}
	// Without the one between nothing leads to the root.
	must(0, os.Remove(filepath.Join(dir, anchorsFile)))(t)
	if _, err := Open(dir, options(c)); err == nil || !strings.Contains(err.Error(), intermediateFile) || !strings.Contains(err.Error(), "not signed by") {
		t.Errorf("a chain with a gap is opened: %v", err)
	}
}

// TestAnchorsEnd rotates the root of such a network: with the old root its anchors end.
func TestAnchorsEnd(t *testing.T) {
	c, dir := newClock(), filepath.Join(t.TempDir(), "pki")
	root, _, second := oldNetwork(t, dir, c)
	ks := must(Open(dir, options(c)))(t)
	old := clientChain(t, ks.Signer(), ecKey(t))
	must(rotation(dir, c).Intermediate())(t)
	must(ks.Follow())(t)
	if len(ks.Authorities().chain()) != 1 {
		t.Error("an intermediate CA right under the root has others above it")
	}
	if _, err := NewRoots([]*x509.Certificate{root}).VerifyLeaf(clientChain(t, ks.Signer(), ecKey(t)), VerifyOptions{Now: c.Now()}); err != nil {
		t.Errorf("a new intermediate CA is not believed: %v", err)
	}
	must(rotation(dir, c).Root())(t)
	must(ks.Follow())(t)
	for _, chain := range [][]*x509.Certificate{old, old[:1]} {
		if _, err := NewRoots(ks.TrustBundle()).VerifyLeaf(chain, VerifyOptions{Now: c.Now()}); err != nil {
			t.Errorf("while roots change one of before is not believed: %v", err)
		}
	}
	if !slices.ContainsFunc(ks.TrustBundle(), second.cert.Equal) {
		t.Error("an anchor ends before its root")
	}
	must(rotation(dir, c).Finish())(t)
	must(ks.Follow())(t)
	if len(ks.Authorities().Anchors) != 0 {
		t.Error("anchors outlive the root of their network")
	}
	if _, err := NewRoots(ks.TrustBundle()).VerifyLeaf(old, VerifyOptions{Now: c.Now()}); err == nil {
		t.Error("a certificate of the root that has retired is believed")
	}
	must(Open(dir, options(c)))(t)
}
