package pki

import (
	"crypto"
	"crypto/x509"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// elsewhere is the keys of a network that another program kept, by their depth below the
// root, and one more root that is trusted.
func elsewhere(t *testing.T, c *clock, depth int) Elsewhere {
	t.Helper()
	e := Elsewhere{ServerKey: must(rsaKey())(t)}
	make := func(by *authority, below int) authority {
		key := ecKey(t)
		template := must(caTemplate("Somebody's CA", key.Public()))(t)
		template.MaxPathLen, template.MaxPathLenZero = below, below == 0
		if by != nil {
			return authority{must(by.issue(template, key.Public(), c.Now(), intermediateLifetime))(t), key}
		}
		template.NotBefore, template.NotAfter = c.Now().Add(-backdate), c.Now().Add(rootLifetime)
		return authority{must(certify(template, template, key.Public(), key))(t), key}
	}
	at := make(nil, max(depth, 1))
	e.Signing = []*x509.Certificate{at.cert}
	for i := range depth {
		at = make(&at, depth-i-1)
		e.Signing = slices.Insert(e.Signing, 0, at.cert)
	}
	e.Key = at.key
	e.Anchors = append(slices.Clone(e.Signing), make(nil, 0).cert)
	return e
}

// TestAdopt opens keys from elsewhere: whoever trusted the network does, and the server has
// the key that it had.
func TestAdopt(t *testing.T) {
	for depth := range 4 {
		c, dir := newClock(), filepath.Join(t.TempDir(), "pki")
		e := elsewhere(t, c, depth)
		must(0, Adopt(dir, e, c.Now()))(t)
		ks := must(Open(dir, options(c)))(t)
		if !ks.Root().Equal(e.Signing[depth]) || depth > 0 && !ks.Intermediate().Equal(e.Signing[0]) {
			t.Errorf("%d below its root another CA signs", depth)
		}
		for _, ca := range e.Anchors {
			if !slices.ContainsFunc(ks.TrustBundle(), ca.Equal) {
				t.Errorf("%d below its root a CA is trusted no more", depth)
			}
		}
		served := must(ks.Served(nil))(t).Current()
		if !SamePublic(served.Leaf.PublicKey, e.ServerKey.Public()) {
			t.Errorf("%d below its root the server has another key", depth)
		}
		if _, err := NewRoots([]*x509.Certificate{e.Signing[depth]}).VerifyLeaf(clientChain(t, ks.Signer(), ecKey(t)), VerifyOptions{Now: c.Now()}); err != nil {
			t.Errorf("%d below its root what is signed is not believed: %v", depth, err)
		}
		if err := Adopt(dir, e, c.Now()); err == nil || !strings.Contains(err.Error(), "has keys already") {
			t.Errorf("keys are put over others: %v", err)
		}
	}
}

// TestAdoptNot refuses keys that would be of no use, and writes none.
func TestAdoptNot(t *testing.T) {
	c := newClock()
	whole := elsewhere(t, c, 2)
	for want, e := range map[string]Elsewhere{
		"put its certificate beside": {whole.Signing[:2], whole.Key, whole.ServerKey, nil},
		"nothing leads from":         {[]*x509.Certificate{whole.Signing[0], whole.Signing[2]}, whole.Key, whole.ServerKey, nil},
		"is missing":                 {whole.Signing, whole.Key, crypto.Signer(nil), nil},
	} {
		dir := filepath.Join(t.TempDir(), "pki")
		if err := Adopt(dir, e, c.Now()); err == nil || !strings.Contains(err.Error(), want) || len(contents(t, filepath.Dir(dir))) > 0 {
			t.Errorf("got %v", err)
		}
	}
}
