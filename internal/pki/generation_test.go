package pki

import (
	"bytes"
	"crypto/x509"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// pair is the keystores of two controllers of one network.
type pair struct {
	clock *clock
	dirs  [2]string
	ks    [2]*Keystore
}

// newPair has a second controller get the keys of a first one.
func newPair(t *testing.T) *pair {
	p := &pair{clock: newClock(), dirs: [2]string{t.TempDir(), t.TempDir()}}
	p.ks[0] = must(Open(p.dirs[0], options(p.clock)))(t)
	openPeer(t, p.dirs[0], Peer{Make: true, Now: p.clock.Now})
	to := must(NewRecipient())(t)
	sealed := must(Export(p.dirs[0], to.Public(), "test"))(t)
	if err := to.Import(p.dirs[1], sealed, "test", func(*Authorities) error { return nil }); err != nil {
		t.Fatal(err)
	}
	p.ks[1] = must(Open(p.dirs[1], options(p.clock)))(t)
	return p
}

// give writes a bundle at one of them.
func (p *pair) give(t *testing.T, to int, b Bundle) {
	t.Helper()
	if err := b.Write(p.dirs[to]); err != nil {
		t.Fatal(err)
	}
	must(p.ks[to].Follow())(t)
	if got := must(ReadBundle(p.dirs[to]))(t); got.Digest() != b.Digest() || got.Generation() != b.Generation() {
		t.Fatalf("generation %d is written as %d", b.Generation(), got.Generation())
	}
}

// together fails unless what one of them makes is good at the other.
func (p *pair) together(t *testing.T, what string) {
	t.Helper()
	key := ecKey(t)
	p.members(t, what)
	for by, from := range p.ks {
		at := p.ks[1-by]
		leaf := clientChain(t, from.Signer(), key)[:1]
		if _, err := NewRoots(at.TrustBundle()).VerifyLeaf(leaf, VerifyOptions{Now: p.clock.Now()}); err != nil {
			t.Errorf("%s: a certificate of %d is not believed by the other: %v", what, by, err)
		}
		sealed := from.Sealer().Seal("place", []byte("text"))
		if text, err := at.Sealer().Open("place", sealed); err != nil || string(text) != "text" {
			t.Errorf("%s: a seal of %d does not open at the other: %v", what, by, err)
		}
		for _, purpose := range []string{"api session tokens", "session tokens", "else"} {
			made, known := must(from.MACKeys(purpose))(t), must(at.MACKeys(purpose))(t)
			if !slices.ContainsFunc(known.All(), func(k []byte) bool { return bytes.Equal(k, made.Current) }) {
				t.Errorf("%s: %s of %d are not known to the other", what, purpose, by)
			}
		}
	}
}

// members fails unless either takes the other's certificate of a member.
func (p *pair) members(t *testing.T, what string) {
	t.Helper()
	leaf := [2]*x509.Certificate{}
	for by, dir := range p.dirs {
		leaf[by] = openPeer(t, dir, Peer{Now: p.clock.Now})
	}
	for by, dir := range p.dirs {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(must(os.ReadFile(filepath.Join(dir, peerTrustFile)))(t))
		if _, err := leaf[1-by].Verify(x509.VerifyOptions{Roots: pool, CurrentTime: p.clock.Now()}); err != nil {
			t.Errorf("%s: a member's certificate is not taken by %d: %v", what, by, err)
		}
	}
}

// TestNeighbours has keys change in all ways there are, one controller always a
// step behind the other: what either makes is good at both.
func TestNeighbours(t *testing.T) {
	for seed := range uint64(12) {
		choose, p := mathrand.New(mathrand.NewPCG(seed, 0)), newPair(t)
		r := rotation(p.dirs[0], p.clock)
		r.Shared = true
		secret := func(step func(string) (*Authorities, error), name string) func() (*Authorities, error) {
			return func() (*Authorities, error) { return step(name) }
		}
		orders := []func() (*Authorities, error){
			nil, nil, r.Undo, r.Finish, r.Root, r.Intermediate, r.Cluster, r.FinishCluster,
			secret(r.Secret, SessionSecret), secret(r.Secret, SealSecret), secret(r.FinishSecret, SessionSecret), secret(r.FinishSecret, SealSecret),
		}
		for made := 0; made < 10; {
			i := choose.IntN(len(orders))
			own := must(ReadBundle(p.dirs[0]))(t)
			next, err := own, error(nil)
			if orders[i] == nil {
				next, err = own.Advance()
			} else if _, err = orders[i](); err == nil {
				next = p.proposed(t, own)
			}
			if err != nil {
				continue // there is nothing of the kind to do
			}
			made++
			what := fmt.Sprintf("step %d of %d, which is %d", made, seed, i)
			if next.Generation() != own.Generation()+1 {
				t.Fatalf("%s makes generation %d of %d", what, next.Generation(), own.Generation())
			}
			p.give(t, 0, next)
			p.together(t, what)
			p.give(t, 1, next)
			p.together(t, what+", at both")
		}
	}
}

// proposed takes what a step wants to be shared, which does not count yet.
func (p *pair) proposed(t *testing.T, own Bundle) Bundle {
	t.Helper()
	next, _, found, err := Proposal(p.dirs[0])
	if err != nil || !found {
		t.Fatalf("nothing is proposed: %v", err)
	}
	if now := must(ReadBundle(p.dirs[0]))(t); now.Digest() != own.Digest() {
		t.Fatal("a step counts before it is shared")
	}
	if err := DropProposal(p.dirs[0]); err != nil {
		t.Fatal(err)
	}
	return next
}

// TestHandover seals keys for a controller, and for nobody who only says that it is
// one.
func TestHandover(t *testing.T) {
	p := newPair(t)
	stranger := t.TempDir()
	must(Open(stranger, options(p.clock)))(t)
	a, b, s := must(OpenHandover(p.dirs[0]))(t), must(OpenHandover(p.dirs[1]))(t), must(OpenHandover(stranger))(t)
	if again := must(OpenHandover(p.dirs[1]))(t); !bytes.Equal(again.Public(), b.Public()) {
		t.Error("another start has another key")
	}
	if !a.Proven("b", b.Public(), b.Proof("b", b.Public())) {
		t.Error("what a controller says of itself is not believed")
	}
	for what, is := range map[string]bool{
		"another's":     a.Proven("b", s.Public(), s.Proof("b", s.Public())),
		"another key":   a.Proven("b", s.Public(), b.Proof("b", b.Public())),
		"another name":  a.Proven("c", b.Public(), b.Proof("b", b.Public())),
		"nothing":       a.Proven("b", nil, b.Proof("b", nil)),
		"without proof": a.Proven("b", b.Public(), nil),
	} {
		if is {
			t.Errorf("%s is believed", what)
		}
	}
	keys := must(ReadBundle(p.dirs[0]))(t)
	sealed := must(a.SealFor(keys, b.Public(), "purpose"))(t)
	if got, err := b.Open(sealed, "purpose"); err != nil || got.Digest() != keys.Digest() {
		t.Errorf("keys do not arrive: %v", err)
	}
	forged := must(s.SealFor(must(ReadBundle(stranger))(t), b.Public(), "purpose"))(t)
	for what, try := range map[string]func() error{
		"at another place": func() error { _, err := b.Open(sealed, "else"); return err },
		"by another":       func() error { _, err := a.Open(sealed, "purpose"); return err },
		"damaged":          func() error { _, err := b.Open(append([]byte{1}, sealed[1:]...), "purpose"); return err },
		"of a stranger":    func() error { _, err := b.Open(forged, "purpose"); return err },
		"cut off":          func() error { _, err := b.Open(sealed[:10], "purpose"); return err },
	} {
		if try() == nil {
			t.Errorf("keys are opened %s", what)
		}
	}
}

// TestRootKeyElsewhere hands keys over without that of the root CA: who has it keeps
// it, under whatever name it is the right one.
func TestRootKeyElsewhere(t *testing.T) {
	p := newPair(t)
	if err := (folder{path: p.dirs[0]}).remove(rootKeyFile); err != nil {
		t.Fatal(err)
	}
	key := contents(t, p.dirs[1])[rootKeyFile]
	own := must(ReadBundle(p.dirs[0]))(t)
	if own.Digest() != must(ReadBundle(p.dirs[1]))(t).Digest() {
		t.Error("that the key is elsewhere makes other keys of it")
	}
	r := rotation(p.dirs[1], p.clock)
	r.Shared = true
	must(r.Root())(t)
	next, _, _, err := Proposal(p.dirs[1])
	if err != nil {
		t.Fatal(err)
	}
	p.give(t, 1, next)
	p.give(t, 1, must(next.Advance())(t))
	if files := contents(t, p.dirs[1]); files[formerRootKeyFile] != key || files[rootKeyFile] == key {
		t.Error("the keys of the roots did not change their places")
	}
	b := must(ReadBundle(p.dirs[1]))(t)
	delete(b.files, formerRootKeyFile)
	delete(b.files, rootKeyFile)
	p.give(t, 1, b)
	if files := contents(t, p.dirs[1]); files[formerRootKeyFile] != key {
		t.Error("the key of the root CA is gone")
	}
	if !slices.ContainsFunc(b.Authorities().Roots(), func(c *x509.Certificate) bool { return c.Equal(own.Authorities().Root) }) {
		t.Error("the root CA of before is not trusted")
	}
}
