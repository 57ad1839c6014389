package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSignClient(t *testing.T) {
	s, root := newSigner(t)
	uri := must(url.Parse("spiffe://net.example/identity/abc"))(t)
	grant := must(ClientGrant("abc", []*url.URL{uri}, 24*time.Hour))(t)
	uri.Host = "elsewhere.example" // a grant cannot be changed from outside

	edPub, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		pub   crypto.PublicKey
		usage x509.KeyUsage
	}{
		"EC":      {ecKey(t).Public(), x509.KeyUsageDigitalSignature},
		"Ed25519": {edPub, x509.KeyUsageDigitalSignature},
		"RSA":     {must(rsaKey())(t).Public(), x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment},
	} {
		t.Run(name, func(t *testing.T) {
			chain := must(s.Sign(grant, tt.pub))(t)
			if len(chain) != 2 || !chain[1].Equal(signerCert(s)) {
				t.Fatalf("chain of %d", len(chain))
			}
			leaf := chain[0]
			if !SamePublic(leaf.PublicKey, tt.pub) {
				t.Error("issued for another key")
			}
			if leaf.KeyUsage != tt.usage {
				t.Errorf("key usage %b, want %b", leaf.KeyUsage, tt.usage)
			}
			if diff := cmp.Diff([]x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, leaf.ExtKeyUsage); diff != "" {
				t.Error(diff)
			}
			if leaf.IsCA || !leaf.BasicConstraintsValid {
				t.Error("not marked as no CA")
			}
			if !leaf.NotBefore.Equal(base.Add(-10*time.Minute)) || !leaf.NotAfter.Equal(base.Add(24*time.Hour)) {
				t.Errorf("valid from %v to %v", leaf.NotBefore, leaf.NotAfter)
			}
			if got := leaf.Subject.String(); got != "CN=abc" {
				t.Errorf("subject %s", got)
			}
			if len(leaf.URIs) != 1 || leaf.URIs[0].String() != "spiffe://net.example/identity/abc" {
				t.Errorf("URIs %v", leaf.URIs)
			}
			if leaf.SerialNumber.Sign() <= 0 || leaf.SerialNumber.BitLen() > 128 {
				t.Errorf("serial number %v", leaf.SerialNumber)
			}
			if _, err := NewRoots([]*x509.Certificate{root.cert}).VerifyLeaf(chain, VerifyOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSerialNumbersDiffer(t *testing.T) {
	s, _ := newSigner(t)
	key := ecKey(t)
	a, b := clientChain(t, s, key)[0], clientChain(t, s, key)[0]
	if a.SerialNumber.Cmp(b.SerialNumber) == 0 {
		t.Error("the same serial number twice")
	}
	if max(a.SerialNumber.BitLen(), b.SerialNumber.BitLen()) < 100 {
		t.Error("serial numbers are not drawn from 128 bits")
	}
}

func TestSignStaysWithinCA(t *testing.T) {
	s, _ := newSigner(t)
	grant := must(ServerGrant("srv", []string{"srv.example"}, nil, 100*365*day))(t)
	leaf := must(s.Sign(grant, ecKey(t).Public()))(t)[0]
	if !leaf.NotAfter.Equal(signerCert(s).NotAfter) || leaf.NotBefore.Before(signerCert(s).NotBefore) {
		t.Errorf("leaf from %v to %v, CA from %v to %v", leaf.NotBefore, leaf.NotAfter, signerCert(s).NotBefore, signerCert(s).NotAfter)
	}
	s.now = func() time.Time { return signerCert(s).NotAfter }
	_, err := s.Sign(grant, ecKey(t).Public())
	wantError(t, err, "expired on")
}

func TestSignRefuses(t *testing.T) {
	s, _ := newSigner(t)
	grant := must(ClientGrant("c", nil, time.Hour))(t)
	p224 := must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))(t)
	n := func(bits int) *big.Int { return new(big.Int).SetBit(big.NewInt(1), bits-1, 1) }
	for name, tt := range map[string]struct {
		grant Grant
		pub   crypto.PublicKey
		want  string
	}{
		"zero grant":   {Grant{}, ecKey(t).Public(), "permits nothing"},
		"P-224":        {grant, p224.Public(), "must be on"},
		"RSA 2047":     {grant, &rsa.PublicKey{N: n(2047), E: 65537}, "2047 bits"},
		"RSA 8193":     {grant, &rsa.PublicKey{N: n(8193), E: 65537}, "8193 bits"},
		"RSA exponent": {grant, &rsa.PublicKey{N: n(2048), E: 1}, "exponent"},
		"no key":       {grant, nil, "unsupported"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Sign(tt.grant, tt.pub)
			wantError(t, err, tt.want)
		})
	}
}

func TestGrantsRefused(t *testing.T) {
	long := strings.Repeat("x", 65)
	for name, make := range map[string]func() (Grant, error){
		"no name":      func() (Grant, error) { return ClientGrant("", nil, time.Hour) },
		"long name":    func() (Grant, error) { return ClientGrant(long, nil, time.Hour) },
		"control":      func() (Grant, error) { return ClientGrant("a\nb", nil, time.Hour) },
		"not UTF-8":    func() (Grant, error) { return ClientGrant("a\xff", nil, time.Hour) },
		"no lifetime":  func() (Grant, error) { return ClientGrant("a", nil, 0) },
		"negative":     func() (Grant, error) { return ClientGrant("a", nil, -time.Hour) },
		"nil URI":      func() (Grant, error) { return ClientGrant("a", []*url.URL{nil}, time.Hour) },
		"relative URI": func() (Grant, error) { return ClientGrant("a", []*url.URL{{Path: "x"}}, time.Hour) },
		"URI host":     func() (Grant, error) { return ClientGrant("a", []*url.URL{{Scheme: "x", Host: "a b"}}, time.Hour) },
		"server, none": func() (Grant, error) { return ServerGrant("a", nil, nil, time.Hour) },
		"empty DNS":    func() (Grant, error) { return ServerGrant("a", []string{""}, nil, time.Hour) },
		"inner star":   func() (Grant, error) { return ServerGrant("a", []string{"a.*.b"}, nil, time.Hour) },
		"dash":         func() (Grant, error) { return ServerGrant("a", []string{"-a.b"}, nil, time.Hour) },
		"long label":   func() (Grant, error) { return ServerGrant("a", []string{long}, nil, time.Hour) },
		"long DNS": func() (Grant, error) {
			return ServerGrant("a", []string{strings.Repeat("a.", 127) + "a"}, nil, time.Hour)
		},
		"server's name": func() (Grant, error) { return ServerGrant(long, []string{"a"}, nil, time.Hour) },
		"short IP":      func() (Grant, error) { return ServerGrant("a", nil, []net.IP{{1}}, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			g, err := make()
			wantError(t, err, " certificate: ")
			if len(g.usage) != 0 {
				t.Error("the refused grant permits something")
			}
		})
	}
}

// TestSignSaysWhatIsGranted checks that every grant the profiles give can be
// signed, and that the certificate then says exactly that.
func TestSignSaysWhatIsGranted(t *testing.T) {
	s, _ := newSigner(t)
	pub := ecKey(t).Public()
	rapid.Check(t, func(t *rapid.T) {
		cn := rapid.OneOf(rapid.StringN(0, 70, -1), rapid.StringMatching(`[a-zA-Z0-9._-]{1,64}`)).Draw(t, "cn")
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z]{1,8}:(//)?[a-z0-9._:@\[\]%-]{0,20}(/[ -~]{0,10})?`))
		dns := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringMatching(`(\*\.)?[a-zA-Z0-9_-]{1,5}(\.[a-z0-9]{1,3}){0,3}\.?`)), 0, 3).Draw(t, "dns")
		ips := rapid.SliceOfN(rapid.Map(rapid.SliceOfN(rapid.Byte(), 4, 17), func(b []byte) net.IP { return b }), 0, 3).Draw(t, "ips")
		var uris []*url.URL
		for _, s := range rapid.SliceOfN(text, 0, 3).Draw(t, "uris") {
			if u, err := url.Parse(s); err == nil {
				uris = append(uris, u)
			}
		}
		emails := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,6}@[a-z0-9.-]{1,8}`)), 0, 3).Draw(t, "emails")
		life := time.Duration(rapid.Int64Range(-5, 5000).Draw(t, "seconds")) * time.Second

		var grant Grant
		var err error
		usages := 1
		switch rapid.SampledFrom([]string{"client", "server", "router"}).Draw(t, "profile") {
		case "client":
			dns, ips, emails = nil, nil, nil
			grant, err = ClientGrant(cn, uris, life)
		case "server":
			uris, emails = nil, nil
			grant, err = ServerGrant(cn, dns, ips, life)
		case "router":
			usages = 2
			grant, err = RouterGrant(cn, Names{dns, ips, emails, uris}, life)
		}
		if err != nil {
			return
		}
		chain, err := s.Sign(grant, pub)
		if err != nil {
			t.Fatalf("granted but not signed: %v", err)
		}
		leaf := chain[0]
		if leaf.Subject.CommonName != cn || len(leaf.Subject.Names) != 1 {
			t.Errorf("subject %v, want common name %q", leaf.Subject, cn)
		}
		if !slices.Equal(leaf.DNSNames, dns) || !slices.EqualFunc(leaf.IPAddresses, ips, net.IP.Equal) || !slices.Equal(leaf.EmailAddresses, emails) {
			t.Errorf("names %q, %v and %q, want %q, %v and %q", leaf.DNSNames, leaf.IPAddresses, leaf.EmailAddresses, dns, ips, emails)
		}
		if !slices.EqualFunc(leaf.URIs, uris, func(a, b *url.URL) bool { return a.String() == b.String() }) {
			t.Errorf("URIs %v, want %v", leaf.URIs, uris)
		}
		if !leaf.NotAfter.Equal(base.Add(life)) || leaf.IsCA || len(leaf.ExtKeyUsage) != usages {
			t.Errorf("ends %v, CA %t, usages %v", leaf.NotAfter, leaf.IsCA, leaf.ExtKeyUsage)
		}
	})
}
