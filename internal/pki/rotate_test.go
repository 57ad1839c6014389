package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func rotation(dir string, c *clock) Rotation {
	return Rotation{Dir: dir, Now: c.Now, Log: slog.New(slog.DiscardHandler)}
}

// steps are those of a rotation, by name.
var steps = map[string]func(Rotation) (*Authorities, error){
	"intermediate": Rotation.Intermediate, "root": Rotation.Root, "finish": Rotation.Finish, "undo": Rotation.Undo,
}

// anchorsOf trusts what a peer was handed at a time.
func anchorsOf(bundle []*x509.Certificate) *Roots { return NewRoots(bundle) }

// rootsOf trusts the roots of what a peer was handed alone, as some keep them.
func rootsOf(bundle []*x509.Certificate) *Roots {
	var roots []*x509.Certificate
	for _, c := range bundle {
		if c.CheckSignatureFrom(c) == nil {
			roots = append(roots, c)
		}
	}
	return NewRoots(roots)
}

func TestRotateIntermediate(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	ks := must(Open(dir, options(c)))(t)
	before, key := ks.TrustBundle(), ecKey(t)
	old := clientChain(t, ks.Signer(), key)
	server := contents(t, dir)[serverKeyFile]

	must(rotation(dir, c).Intermediate())(t)
	if changed := must(ks.Follow())(t); !changed {
		t.Fatal("an open keystore does not follow")
	}
	if changed := must(ks.Follow())(t); changed {
		t.Error("it follows twice")
	}
	fresh := clientChain(t, ks.Signer(), key)
	if fresh[1].Equal(old[1]) || !ks.Root().Equal(before[1]) {
		t.Error("it is not another intermediate CA under the same root")
	}
	for _, trust := range []*Roots{anchorsOf(before), rootsOf(before), anchorsOf(ks.TrustBundle())} {
		for _, chain := range [][]*x509.Certificate{old, fresh} {
			if _, err := trust.VerifyLeaf(chain, VerifyOptions{Now: c.Now()}); err != nil {
				t.Error(err)
			}
		}
	}
	// One that shows nothing but its own certificate is believed as before.
	if _, err := anchorsOf(ks.TrustBundle()).VerifyLeaf(old[:1], VerifyOptions{Now: c.Now()}); err != nil {
		t.Error(err)
	}
	if contents(t, dir)[serverKeyFile] != server {
		t.Error("the server has another key, and invitations that it signed are worthless")
	}
	wantConsistent(t, dir, c.Now())
	if again := must(Open(dir, options(c)))(t); !again.Authorities().equal(ks.Authorities()) {
		t.Error("another start finds something else")
	}
}

func TestRotateRoot(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	ks := must(Open(dir, options(c)))(t)
	origin, first, key := ks.Root(), ks.TrustBundle(), ecKey(t)
	mac, seal := must(ks.MACKey("x"))(t), contents(t, dir)[macKeyFile]
	old := clientChain(t, ks.Signer(), key)
	follow := func(step string) {
		t.Helper()
		must(steps[step](rotation(dir, c)))(t)
		if !must(ks.Follow())(t) {
			t.Fatalf("%s: an open keystore does not follow", step)
		}
		wantConsistent(t, dir, c.Now())
		if again := must(Open(dir, options(c)))(t); !again.Authorities().equal(ks.Authorities()) {
			t.Errorf("%s: another start finds something else", step)
		}
	}
	believed := func(who string, trust *Roots, chain []*x509.Certificate, want bool) {
		t.Helper()
		if _, err := trust.VerifyLeaf(chain, VerifyOptions{Now: c.Now()}); (err == nil) != want {
			t.Errorf("%s: believed=%t: %v", who, err == nil, err)
		}
	}

	follow("root")
	both := ks.TrustBundle()
	fresh := clientChain(t, ks.Signer(), key)
	if !ks.Authorities().Rotating() || ks.Root().Equal(origin) || !ks.Authorities().Origin.Equal(origin) {
		t.Errorf("it is no rotation: %+v", ks.Authorities())
	}
	for _, chain := range [][]*x509.Certificate{old, fresh} {
		believed("who has both", anchorsOf(both), chain, true)
		believed("who has the old ones", anchorsOf(first), chain, true)
		believed("who has the old root", rootsOf(first), chain, true)
	}
	if !ks.Authorities().Current(fresh[0]) || ks.Authorities().Current(old[0]) || !ks.Authorities().Trusts(old[0]) {
		t.Error("who is of the present root is not told from who is of the one before")
	}

	follow("finish")
	believed("the controller, of an old one", anchorsOf(ks.TrustBundle()), old, false)
	believed("the controller, of a new one", anchorsOf(ks.TrustBundle()), fresh, true)
	believed("who was away, of a new one", anchorsOf(first), clientChain(t, ks.Signer(), key), true)
	if ks.Authorities().Trusts(old[0]) || !ks.Authorities().Origin.Equal(origin) || !slices.ContainsFunc(ks.Authorities().Retired, origin.Equal) {
		t.Errorf("the old one is not retired: %+v", ks.Authorities())
	}
	for name := range contents(t, dir) {
		if len(name) > 6 && name[:6] == "former" {
			t.Errorf("%s is still there", name)
		}
	}
	if contents(t, dir)[macKeyFile] != seal || string(must(ks.MACKey("x"))(t)) != string(mac) {
		t.Error("sessions and seals have another key")
	}
}

func TestRotateUndo(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	ks := must(Open(dir, options(c)))(t)
	first, key := ks.Authorities(), ecKey(t)
	files := contents(t, dir)
	must(rotation(dir, c).Root())(t)
	must(ks.Follow())(t)
	fresh := clientChain(t, ks.Signer(), key)
	must(rotation(dir, c).Undo())(t)
	must(ks.Follow())(t)
	if !ks.Root().Equal(first.Root) || !ks.Intermediate().Equal(first.Intermediate) || !ks.Authorities().Rotating() {
		t.Errorf("it is not as before: %+v", ks.Authorities())
	}
	// Somebody has a certificate of the other by now, who must get in to change it.
	if _, err := anchorsOf(ks.TrustBundle()).VerifyLeaf(fresh, VerifyOptions{Now: c.Now()}); err != nil || ks.Authorities().Current(fresh[0]) {
		t.Errorf("who had changed: %v", err)
	}
	wantKept(t, files, contents(t, dir), serverFile)
	must(rotation(dir, c).Finish())(t)
	must(ks.Follow())(t)
	// Without the certificate that the root has once given the other, which nobody
	// signs with any more.
	if _, err := anchorsOf(ks.TrustBundle()).VerifyLeaf(fresh[:2], VerifyOptions{Now: c.Now()}); err == nil {
		t.Error("what was undone is trusted for good")
	}
	wantKept(t, files, contents(t, dir), serverFile)
}

func TestRotateRefuses(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	r := rotation(dir, c)
	_, err := r.Root()
	wantError(t, err, "no keys in "+dir)
	must(Open(dir, options(c)))(t)
	for _, step := range []string{"finish", "undo"} {
		_, err = steps[step](r)
		wantError(t, err, "none is under way", "netkeep keys rotate root")
	}
	away := filepath.Join(t.TempDir(), "root.key")
	if err := os.Rename(filepath.Join(dir, rootKeyFile), away); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	for _, step := range []string{"intermediate", "root"} {
		_, err = steps[step](r)
		wantError(t, err, "--root-key FILE")
	}
	r.RootKey = filepath.Join(dir, intermediateKeyFile)
	_, err = r.Root()
	wantError(t, err, "is not the key of the root CA", "--root-key FILE")
	wantKept(t, before, contents(t, dir))
	r.RootKey = away
	must(r.Intermediate())(t)
	must(r.Root())(t)
	_, err = r.Root()
	wantError(t, err, "under way since 2", "--finish", "--undo")
	late := r
	late.Present = must(Read(dir))(t).Root // who looks now, and is late
	must(r.Undo())(t)
	before = contents(t, dir)
	for name, step := range steps {
		_, err := step(late)
		wantError(t, err, "somebody else has changed the keys", "netkeep keys status")
		if t.Failed() {
			t.Fatal(name)
		}
	}
	wantKept(t, before, contents(t, dir))
	if _, there := contents(t, dir)[rootKeyFile]; there {
		t.Error("the key of the other root lies where the one that was taken away was")
	}
	must(Open(dir, options(c)))(t)
}

// replica is a keystore with the files of another.
func replica(t *testing.T, of string) string {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range contents(t, of) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRotationCutShort stops every step at each of its writes. Whoever opens the
// keystore then finds one of the two states whole, and goes on.
func TestRotationCutShort(t *testing.T) {
	for name, before := range map[string][]string{"intermediate": nil, "root": {"intermediate"}, "undo": {"root"}, "finish": {"intermediate", "root"}} {
		c, whole := newClock(), t.TempDir()
		must(Open(whole, options(c)))(t)
		for _, step := range before {
			must(steps[step](rotation(whole, c)))(t)
		}
		was := must(Open(whole, options(c)))(t).Authorities()
		for cut := 0; ; cut++ {
			dir := replica(t, whole)
			r := rotation(dir, c)
			r.rename = stopping(dir, max(cut, 1), cut > 0).rename
			_, err := steps[name](r)
			if err == nil {
				break
			}
			if !errors.Is(err, errStopped) {
				t.Fatal(err)
			}
			if told := strings.Contains(err.Error(), "it counts from now on"); told != (cut > 1) {
				t.Errorf("%s after %d writes says %v", name, cut, err)
			}
			t.Run(fmt.Sprintf("%s after %d writes", name, cut), func(t *testing.T) {
				read := must(Read(dir))(t)
				if read.equal(was) != (cut == 0) {
					t.Error("what is read is not what was done")
				}
				if again := must(Open(dir, options(c)))(t); !again.Authorities().equal(read) {
					t.Error("a start finds something else than what was read")
				}
				wantConsistent(t, dir, c.Now())
				if _, left := contents(t, dir)[changeFile]; left {
					t.Error("the change is still being made")
				}
			})
		}
	}
}

// TestFollowCopy copies the files of another controller of the network one by
// one, as people do after each step. What is signed meanwhile is believed, and
// in the end both trust the same.
func TestFollowCopy(t *testing.T) {
	for _, walk := range [][]string{
		{"root", "undo", "undo", "finish"},
		{"intermediate", "root", "intermediate", "finish"},
		{"root", "undo", "finish", "root", "finish"},
	} {
		c, dir := newClock(), t.TempDir()
		ks, key := must(Open(dir, options(c)))(t), ecKey(t)
		other := replica(t, dir)
		theirs := must(Open(other, options(c)))(t)
		for _, step := range walk {
			trust := ks.TrustBundle()
			must(steps[step](rotation(dir, c)))(t)
			must(ks.Follow())(t)
			for name, text := range contents(t, dir) {
				if err := os.WriteFile(filepath.Join(other, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				_, _ = theirs.Follow() // which may be in the middle
				if _, err := anchorsOf(trust).VerifyLeaf(clientChain(t, theirs.Signer(), key), VerifyOptions{Now: c.Now()}); err != nil {
					t.Fatalf("%s, with %s: %v", step, name, err)
				}
			}
			a, b := ks.Authorities(), theirs.Authorities()
			if !slices.EqualFunc(a.Bundle(), b.Bundle(), (*x509.Certificate).Equal) || !slices.EqualFunc(a.chain(), b.chain(), (*x509.Certificate).Equal) {
				t.Fatalf("%v: after %s, %d are trusted here and %d there", walk, step, len(a.Bundle()), len(b.Bundle()))
			}
		}
	}
}

// TestVouched tells the next root from one that whoever has a server's key would
// like to be trusted.
func TestVouched(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	ks := must(Open(dir, options(c)))(t)
	first := ks.Authorities().Roots()
	must(rotation(dir, c).Root())(t)
	must(ks.Follow())(t)
	shown := clientChain(t, ks.Signer(), ecKey(t))
	evil := must(Open(t.TempDir(), options(c)))(t)
	for name, test := range map[string]struct{ present, told, shown, want []*x509.Certificate }{
		"a rotation":                  {first, ks.TrustBundle(), shown, ks.Authorities().Roots()},
		"one who knows both":          {ks.Authorities().Roots(), ks.TrustBundle(), shown, ks.Authorities().Roots()},
		"a root of nobody":            {first, slices.Concat(first, evil.TrustBundle()), shown, first},
		"with its own chain":          {first, slices.Concat(first, evil.TrustBundle()), slices.Concat(shown, evil.TrustBundle()), first},
		"a chain that proves nothing": {first, ks.TrustBundle(), shown[:2], first},
		"nobody known":                {nil, ks.TrustBundle(), shown, nil},
	} {
		if got := Vouched(test.present, test.told, test.shown); !SameSet(got, test.want) {
			t.Errorf("%s: %d are trusted, want %d", name, len(got), len(test.want))
		}
	}
}
