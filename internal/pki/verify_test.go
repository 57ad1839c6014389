package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/fault"
)

// issue signs a template for pub, with dates around base unless it has some.
func issue(t testing.TB, by authority, tmpl x509.Certificate, pub crypto.PublicKey) *x509.Certificate {
	t.Helper()
	if tmpl.NotAfter.IsZero() {
		tmpl.NotBefore, tmpl.NotAfter = base.Add(-time.Hour), base.Add(time.Hour)
	}
	parent := by.cert
	if parent == nil {
		parent = &tmpl
	}
	return must(certify(&tmpl, parent, pub, by.key))(t)
}

func name(cn string) pkix.Name { return pkix.Name{CommonName: cn} }

func caNamed(cn string) x509.Certificate {
	return x509.Certificate{Subject: name(cn), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, MaxPathLen: -1}
}

func anchors(certs ...*x509.Certificate) *Roots { return NewRoots(certs) }

func wantRefused(t testing.TB, r *Roots, chain ...*x509.Certificate) {
	t.Helper()
	leaf, err := r.VerifyLeaf(chain, VerifyOptions{Now: base})
	if !fault.Is(err, fault.CodeChain) {
		t.Errorf("got error %v, want code %s", err, fault.CodeChain)
	}
	if leaf.Certificate() != nil || !leaf.Expired(base) {
		t.Error("a refused leaf is proof of something")
	}
}

// TestGHSA_mrpr_756c_xm47: certificates that chain to a root must not vouch for
// a leaf that does not.
func TestGHSA_mrpr_756c_xm47(t *testing.T) {
	s, root := newSigner(t)
	genuine := clientChain(t, s, ecKey(t))
	everything := append(slices.Clone(genuine), root.cert)
	for _, r := range []*Roots{anchors(root.cert), anchors(signerCert(s), root.cert)} {
		if _, err := r.VerifyLeaf(everything, VerifyOptions{Now: base}); err != nil {
			t.Fatalf("the genuine chain: %v", err)
		}

		mine := authority{key: ecKey(t)}
		leafTemplate := x509.Certificate{Subject: genuine[0].Subject, ExtKeyUsage: genuine[0].ExtKeyUsage}
		selfSigned := issue(t, mine, leafTemplate, mine.key.Public())
		wantRefused(t, r, append([]*x509.Certificate{selfSigned}, everything...)...)

		// A CA of the attacker's with the names and key identifiers of ours.
		for _, ours := range []*x509.Certificate{signerCert(s), root.cert} {
			tmpl := caNamed(ours.Subject.CommonName)
			tmpl.SubjectKeyId = ours.SubjectKeyId
			fake := authority{key: mine.key, cert: issue(t, mine, tmpl, mine.key.Public())}
			leaf := issue(t, fake, leafTemplate, ecKey(t).Public())
			wantRefused(t, r, append([]*x509.Certificate{leaf, fake.cert}, everything...)...)
			wantRefused(t, r, append([]*x509.Certificate{leaf}, everything...)...)
			wantRefused(t, r, slices.Concat([]*x509.Certificate{leaf}, everything, []*x509.Certificate{fake.cert})...)
		}

		// The genuine leaf must be first, not merely present.
		wantRefused(t, r, selfSigned, genuine[0])
		// CAs of ours are no peers.
		if r.anchors[string(signerCert(s).Raw)] != nil {
			wantRefused(t, r, signerCert(s), genuine[0], root.cert)
		}
		wantRefused(t, r, root.cert, genuine[0], signerCert(s))
	}
}

// TestLeafIsNoIssuer: a client cannot sign for others with its own certificate.
func TestLeafIsNoIssuer(t *testing.T) {
	s, root := newSigner(t)
	key := ecKey(t)
	client := clientChain(t, s, key)
	forged := issue(t, authority{cert: client[0], key: key}, x509.Certificate{Subject: name("admin")}, ecKey(t).Public())
	wantRefused(t, anchors(root.cert, signerCert(s)), forged, client[0], client[1])
}

func TestVerifyRefusesInput(t *testing.T) {
	s, root := newSigner(t)
	r := anchors(root.cert)
	chain := clientChain(t, s, ecKey(t))
	wantRefused(t, r)
	wantRefused(t, r, nil, chain[0])
	wantRefused(t, r, chain[0], nil)
	wantRefused(t, r, append(slices.Clone(chain), slices.Repeat(chain[1:], 9)...)...)
	wantRefused(t, r, chain[0]) // the intermediate is not known
	wantRefused(t, nil, chain...)
	wantRefused(t, &Roots{}, chain...)
	_, err := (&Roots{}).VerifyLeaf(chain, VerifyOptions{})
	wantError(t, err, "no trust anchors") // rather than the system's
	wantRefused(t, anchors(), chain...)
	wantRefused(t, r, &x509.Certificate{PublicKey: ecKey(t).Public()}, chain[1])

	damaged := *chain[0]
	damaged.Signature = slices.Clone(damaged.Signature)
	damaged.Signature[len(damaged.Signature)-1] ^= 1
	wantRefused(t, r, &damaged, chain[1])
}

func TestVerifyKeys(t *testing.T) {
	rsaRoot := authority{key: must(rsaKey())(t)}
	rsaRoot.cert = issue(t, rsaRoot, caNamed("rsa"), rsaRoot.key.Public())
	ed := must(must(Ed25519.generator())(t)())(t)
	edCA := authority{key: ed, cert: issue(t, rsaRoot, caNamed("ed"), ed.Public())}
	p384 := must(must(P384.generator())(t)())(t)
	ecCA := authority{key: p384, cert: issue(t, edCA, caNamed("ec"), p384.Public())}
	r := anchors(rsaRoot.cert)
	for _, pub := range []crypto.PublicKey{must(rsaKey())(t).Public(), ed.Public(), ecKey(t).Public()} {
		leaf := issue(t, ecCA, x509.Certificate{Subject: name("leaf")}, pub)
		if _, err := r.VerifyLeaf([]*x509.Certificate{leaf, edCA.cert, ecCA.cert}, VerifyOptions{}); err != nil {
			t.Errorf("%T: %v", pub, err)
		}
	}

	weak := must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))(t)
	wantRefused(t, r, issue(t, rsaRoot, x509.Certificate{Subject: name("weak leaf")}, weak.Public()))
	weakCA := authority{key: weak, cert: issue(t, rsaRoot, caNamed("weak CA"), weak.Public())}
	wantRefused(t, r, issue(t, weakCA, x509.Certificate{Subject: name("leaf")}, ecKey(t).Public()), weakCA.cert)
	short := must(rsa.GenerateKey(rand.Reader, 1024))(t)
	wantRefused(t, r, issue(t, rsaRoot, x509.Certificate{Subject: name("short leaf")}, short.Public()))
}

func TestVerifyConstraints(t *testing.T) {
	root := newAuthority(t)
	key := ecKey(t)
	leafOf := func(cn string) x509.Certificate {
		return x509.Certificate{Subject: name(cn), DNSNames: []string{cn}}
	}
	for what, change := range map[string]func(*x509.Certificate){
		"not a CA":  func(c *x509.Certificate) { c.IsCA, c.KeyUsage = false, 0 },
		"key usage": func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature },
		"names":     func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"other.example"} },
		"excluded":  func(c *x509.Certificate) { c.ExcludedDNSDomains = []string{"leaf.example"} },
		"extension": func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: []int{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}}}
		},
	} {
		t.Run(what, func(t *testing.T) {
			tmpl := caNamed("ca")
			fit := authority{key: key, cert: issue(t, root, tmpl, key.Public())}
			leaf := issue(t, fit, leafOf("leaf.example"), key.Public())
			if _, err := anchors(root.cert).VerifyLeaf([]*x509.Certificate{leaf, fit.cert}, VerifyOptions{}); err != nil {
				t.Fatal(err)
			}
			change(&tmpl)
			unfit := authority{key: key, cert: issue(t, root, tmpl, key.Public())}
			wantRefused(t, anchors(root.cert), leaf, unfit.cert)
		})
	}
}

func TestVerifyUsages(t *testing.T) {
	s, root := newSigner(t)
	grant := must(ServerGrant("server", []string{"a.example"}, nil, time.Hour))(t)
	chain := must(s.Sign(grant, ecKey(t).Public()))(t)
	for _, tt := range []struct {
		usages []x509.ExtKeyUsage
		want   bool
	}{
		{nil, true},
		{[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, true},
		{[]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, false},
	} {
		if _, err := anchors(root.cert).VerifyLeaf(chain, VerifyOptions{Usages: tt.usages}); (err == nil) != tt.want {
			t.Errorf("usages %v: %v", tt.usages, err)
		}
	}
}

// TestVerifyPrefersChainInForce has an intermediate certified twice, once long
// ago, and a leaf that either makes a chain for.
func TestVerifyPrefersChainInForce(t *testing.T) {
	root := newAuthority(t)
	key := ecKey(t)
	old, young := caNamed("ca"), caNamed("ca")
	old.NotBefore, old.NotAfter = base.AddDate(-9, 0, 0), base.AddDate(-8, 0, 0)
	young.NotBefore, young.NotAfter = base.AddDate(-1, 0, 0), base.AddDate(1, 0, 0)
	oldCA := authority{key: key, cert: issue(t, root, old, key.Public())}
	youngCA := authority{key: key, cert: issue(t, root, young, key.Public())}
	leaf := issue(t, youngCA, x509.Certificate{Subject: name("leaf")}, ecKey(t).Public())
	r := anchors(root.cert)
	for _, order := range [][]*x509.Certificate{{leaf, oldCA.cert, youngCA.cert}, {leaf, youngCA.cert, oldCA.cert}} {
		got := must(r.VerifyLeaf(order, VerifyOptions{Now: base}))(t)
		if got.Expired(base) || got.NotYetValid(base) || !got.Chain()[1].Equal(youngCA.cert) {
			t.Errorf("chose the chain that ended %v", got.Chain()[1].NotAfter)
		}
	}
	only := must(r.VerifyLeaf([]*x509.Certificate{leaf, oldCA.cert}, VerifyOptions{Now: base}))(t)
	if !only.Expired(base) {
		t.Error("a chain with an ended intermediate is in force")
	}
}

func TestVerifyPrefersNearestAnchor(t *testing.T) {
	s, root := newSigner(t)
	chain := clientChain(t, s, ecKey(t))
	for _, r := range []*Roots{anchors(root.cert, signerCert(s)), anchors(signerCert(s), root.cert)} {
		got := must(r.VerifyLeaf(chain, VerifyOptions{Now: base}))(t).Chain()
		if len(got) != 2 || !got[1].Equal(signerCert(s)) {
			t.Errorf("chain of %d up to %s", len(got), got[len(got)-1].Subject)
		}
	}
}

// TestVerifyDates moves every certificate of a chain out of force in turn.
func TestVerifyDates(t *testing.T) {
	type dates struct{ from, to int } // years from base
	now := dates{-1, 1}
	past, future := dates{-9, -8}, dates{8, 9}
	for name, tt := range map[string]struct {
		root, ca, leaf dates
		expired, early bool
	}{
		"in force":            {now, now, now, false, false},
		"leaf ended":          {now, now, past, true, false},
		"leaf to come":        {now, now, future, false, true},
		"CA ended":            {now, past, now, true, false},
		"CA to come":          {now, future, now, false, true},
		"root ended":          {past, now, now, true, false},
		"no instant for all":  {past, future, now, true, true},
		"all ended, disjoint": {dates{-20, -19}, dates{-15, -14}, past, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dated := func(c x509.Certificate, d dates) x509.Certificate {
				c.NotBefore, c.NotAfter = base.AddDate(d.from, 0, 0), base.AddDate(d.to, 0, 0)
				return c
			}
			root, ca := authority{key: ecKey(t)}, authority{key: ecKey(t)}
			root.cert = issue(t, root, dated(caNamed("root"), tt.root), root.key.Public())
			ca.cert = issue(t, root, dated(caNamed("ca"), tt.ca), ca.key.Public())
			leaf := issue(t, ca, dated(x509.Certificate{Subject: pkix.Name{CommonName: "leaf"}}, tt.leaf), ecKey(t).Public())
			got := must(anchors(root.cert).VerifyLeaf([]*x509.Certificate{leaf, ca.cert}, VerifyOptions{Now: base}))(t)
			if got.Certificate() != leaf {
				t.Error("proof of another certificate")
			}
			if got.Expired(base) != tt.expired || got.NotYetValid(base) != tt.early {
				t.Errorf("expired %t, not yet valid %t", got.Expired(base), got.NotYetValid(base))
			}
		})
	}
}

// node is a certificate of a generated world. Its issuer is the node with the
// number parent; a node that is its own parent is self-signed.
type node struct {
	parent   int
	ca       bool
	pathLen  int // -1 for none
	from, to int // hours from base
	authority
}

func drawWorld(t *rapid.T, keys []crypto.Signer) []node {
	world := make([]node, rapid.IntRange(1, len(keys)).Draw(t, "nodes"))
	for i := range world {
		n := &world[i]
		n.parent = rapid.IntRange(0, i).Draw(t, "parent")
		n.ca = rapid.IntRange(0, 5).Draw(t, "leaf") > 0
		n.pathLen = rapid.IntRange(-1, 3).Draw(t, "pathLen")
		n.from = rapid.IntRange(-10, 9).Draw(t, "from")
		n.to = rapid.IntRange(n.from+1, 10).Draw(t, "to")
		n.key = keys[i]

		tmpl := x509.Certificate{
			Subject:               name(fmt.Sprint("node ", i)),
			BasicConstraintsValid: true,
			NotBefore:             base.Add(time.Duration(n.from) * time.Hour),
			NotAfter:              base.Add(time.Duration(n.to) * time.Hour),
		}
		if n.ca {
			tmpl.IsCA, tmpl.MaxPathLen, tmpl.MaxPathLenZero = true, n.pathLen, n.pathLen == 0
		}
		parent := world[n.parent].cert
		if parent == nil {
			parent = &tmpl
		}
		cert, err := certify(&tmpl, parent, n.key.Public(), world[n.parent].key)
		if err != nil {
			t.Fatal(err)
		}
		n.cert = cert
	}
	return world
}

// path is the naive verifier: it climbs from the leaf, which has one issuer,
// until it meets an anchor.
func path(world []node, leaf int, presented, anchored []int) []int {
	climbed := []int{leaf}
	for at := leaf; ; {
		up := world[at].parent
		between := len(climbed) - 1
		if up == at || !world[up].ca || world[up].pathLen >= 0 && between > world[up].pathLen {
			return nil
		}
		climbed = append(climbed, up)
		switch {
		case slices.Contains(anchored, up):
			return climbed
		case !slices.Contains(presented, up):
			return nil
		}
		at = up
	}
}

func TestVerifyAgainstNaive(t *testing.T) {
	keys := make([]crypto.Signer, 8)
	for i := range keys {
		keys[i] = ecKey(t)
	}
	rapid.Check(t, func(t *rapid.T) {
		world := drawWorld(t, keys)
		number := rapid.IntRange(0, len(world)-1)
		presented := rapid.SliceOfN(number, 1, 10).Draw(t, "presented")
		anchored := rapid.SliceOfNDistinct(number, 0, 3, rapid.ID[int]).Draw(t, "anchored")
		now := base.Add(time.Duration(rapid.IntRange(-12, 12).Draw(t, "now")) * time.Hour)

		pick := func(numbers []int) (certs []*x509.Certificate) {
			for _, n := range numbers {
				certs = append(certs, world[n].cert)
			}
			return certs
		}
		var want []int
		if !slices.Contains(anchored, presented[0]) {
			want = path(world, presented[0], presented[1:], anchored)
		}
		got, err := NewRoots(pick(anchored)).VerifyLeaf(pick(presented), VerifyOptions{Now: now})
		if (err == nil) != (want != nil) {
			t.Fatalf("got %v, want the chain %v", err, want)
		}
		if want == nil {
			return
		}
		if !slices.EqualFunc(got.Chain(), pick(want), (*x509.Certificate).Equal) || got.Certificate() != world[presented[0]].cert {
			t.Fatalf("chain of %d, want %v", len(got.Chain()), want)
		}
		var expired, early bool
		for _, n := range want {
			expired = expired || now.After(world[n].cert.NotAfter)
			early = early || now.Before(world[n].cert.NotBefore)
		}
		if got.Expired(now) != expired || got.NotYetValid(now) != early {
			t.Fatalf("expired %t and early %t, want %t and %t", got.Expired(now), got.NotYetValid(now), expired, early)
		}
	})
}

// TestVerifyIsBounded gives a leaf many issuers of the same name, each of them
// issued by all the others.
func TestVerifyIsBounded(t *testing.T) {
	root := newAuthority(t)
	key := ecKey(t)
	ca := authority{key: key, cert: issue(t, root, caNamed("ca"), key.Public())}
	crowd := []*x509.Certificate{issue(t, ca, x509.Certificate{Subject: name("leaf")}, ecKey(t).Public())}
	for range maxPresented - 2 {
		crowd = append(crowd, issue(t, ca, caNamed("ca"), ecKey(t).Public()))
	}
	wantRefused(t, anchors(root.cert), crowd...)
	if _, err := anchors(root.cert).VerifyLeaf(append(crowd, ca.cert), VerifyOptions{}); err != nil {
		t.Errorf("the one issuer among others: %v", err)
	}
}

// FuzzVerifyLeaf feeds certificates in DER. Nobody can forge a signature, so
// only the leaf that was issued may ever be believed.
func FuzzVerifyLeaf(f *testing.F) {
	s, root := newSigner(f)
	genuine := clientChain(f, s, ecKey(f))
	other := newAuthority(f)
	r := anchors(root.cert)
	f.Add(slices.Concat(genuine[0].Raw, genuine[1].Raw))
	f.Add(slices.Concat(genuine[1].Raw, genuine[0].Raw))
	f.Add(slices.Concat(other.cert.Raw, genuine[0].Raw, genuine[1].Raw, root.cert.Raw))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, der []byte) {
		presented, err := x509.ParseCertificates(der)
		if err != nil {
			return
		}
		leaf, err := r.VerifyLeaf(presented, VerifyOptions{Now: base})
		if err != nil {
			if !fault.Is(err, fault.CodeChain) {
				t.Errorf("error without its code: %v", err)
			}
			return
		}
		if c := leaf.Certificate(); c != presented[0] || !c.Equal(genuine[0]) && !c.Equal(genuine[1]) {
			t.Errorf("believed %q", c.Subject)
		}
	})
}
