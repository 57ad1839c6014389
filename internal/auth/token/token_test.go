package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// TestFits lists which methods a key may be used with, so that no token
// chooses how its signature is understood.
func TestFits(t *testing.T) {
	curve := func(c elliptic.Curve) crypto.PublicKey {
		key, err := ecdsa.GenerateKey(c, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key.Public()
	}
	keys := map[string]crypto.PublicKey{
		"RSA": &rsa.PublicKey{N: big.NewInt(1), E: 3}, "P-256": curve(elliptic.P256()), "P-384": curve(elliptic.P384()),
		"P-521": curve(elliptic.P521()), "P-224": curve(elliptic.P224()), "Ed25519": ed25519.PublicKey(make([]byte, 32)),
		"none": nil, "secret": []byte("shared"),
	}
	want := map[string][]string{
		"RSA":   {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"},
		"P-256": {"ES256"}, "P-384": {"ES384"}, "P-521": {"ES512"}, "Ed25519": {"EdDSA"},
	}
	for name, key := range keys {
		allowed := map[string]bool{}
		for _, alg := range want[name] {
			allowed[alg] = true
		}
		for _, alg := range append([]string{"none", "HS256", "HS384", "HS512"}, signatures...) {
			if got := fits(key, jwt.GetSigningMethod(alg)); got != allowed[alg] {
				t.Errorf("%s with a key of kind %s: %v", alg, name, got)
			}
		}
	}
}

func TestDatable(t *testing.T) {
	for _, test := range []struct {
		claims jwt.MapClaims
		want   bool
	}{
		{jwt.MapClaims{}, true},
		{jwt.MapClaims{"exp": 0.0, "nbf": 1.5, "iat": float64(lastDate)}, true},
		{jwt.MapClaims{"exp": 1e300}, false},
		{jwt.MapClaims{"nbf": float64(lastDate) + 1}, false},
		{jwt.MapClaims{"iat": 1e19}, false},
		{jwt.MapClaims{"nbf": -1.0}, false},
	} {
		if got := datable(test.claims); got != test.want {
			t.Errorf("%v: %v", test.claims, got)
		}
	}
}

// keysOf returns a key of every kind that signs.
func keysOf(t testing.TB) map[string]crypto.Signer {
	t.Helper()
	keys := map[string]crypto.Signer{}
	add := func(name string, key crypto.Signer, err error) {
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = key
	}
	for name, curve := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		add(name, key, err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	add("RS256", long, err)
	_, short, err := ed25519.GenerateKey(rand.Reader)
	add("EdDSA", short, err)
	return keys
}

// TestMake makes tokens with every kind of key: they are accepted under that
// key and no other, not if a letter differs, and are the same each time.
func TestMake(t *testing.T) {
	keys := keysOf(t)
	now := time.Unix(2_000_000_000, 0)
	said := map[string]any{"iss": "me", "sub": "you", "aud": []string{"a", "b"}, "exp": now.Unix() + 60}
	check := func(text string, key crypto.PublicKey) (Claims, error) {
		return Check(text, func() time.Time { return now }, func(issuer, keyID string) crypto.PublicKey {
			if issuer != "me" || keyID != "k" {
				t.Errorf("the key %q of %q is asked for", keyID, issuer)
			}
			return key
		})
	}
	for name, key := range keys {
		maker, err := NewMaker(key, "k")
		if err != nil {
			t.Fatal(err)
		}
		text, err := maker.Make(said)
		again, _ := maker.Make(said)
		if err != nil || text != again {
			t.Errorf("%s: two tokens of the same claims differ: %v", name, err)
		}
		claims, err := check(text, key.Public())
		if err != nil || claims.Text("sub") != "you" || !claims.For("b") || claims.For("c") || claims.Ends().Unix() != now.Unix()+60 {
			t.Errorf("%s: it says %+v: %v", name, claims, err)
		}
		for other, wrong := range keys {
			if _, err := check(text, wrong.Public()); (err == nil) != (other == name) {
				t.Errorf("a token of %s under the key for %s: %v", name, other, err)
			}
		}
		header, rest, _ := strings.Cut(text, ".")
		body, signature, _ := strings.Cut(rest, ".")
		last := "A"
		if strings.HasPrefix(signature, last) {
			last = "B"
		}
		for _, bad := range []string{"", header, header + "." + body, text + "\n", text + ".", header + "." + body + "." + last + signature[1:]} {
			if _, err := check(bad, key.Public()); err == nil {
				t.Errorf("%s: %q is accepted", name, bad)
			}
		}
	}
	if _, err := NewMaker(weak(t), "k"); err == nil {
		t.Error("a key on a weak curve signs")
	}
}

func weak(t *testing.T) crypto.Signer {
	key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestRead reads what anybody made up.
func TestRead(t *testing.T) {
	var said struct{ Sub string }
	if err := Read("e30.eyJzdWIiOiJ4In0.", &said); err != nil || said.Sub != "x" {
		t.Errorf("it says %+v: %v", said, err)
	}
	for _, bad := range []string{"", "a.b", "e30.e30", "e30.!.x", "e30.e.x", "e30.W10.x", strings.Repeat("e30.", MaxLen)} {
		if err := Read(bad, &said); err == nil {
			t.Errorf("%.20q is read", bad)
		}
	}
}

// FuzzCheck shows tokens that nobody signed.
func FuzzCheck(f *testing.F) {
	keys := keysOf(f)
	maker, err := NewMaker(keys["ES256"], "k")
	if err != nil {
		f.Fatal(err)
	}
	good, err := maker.Make(map[string]any{"iss": "me", "exp": 2_000_000_060})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("eyJhbGciOiJub25lIiwia2lkIjoiayJ9.eyJpc3MiOiJtZSIsImV4cCI6MjAwMDAwMDA2MH0.")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := Check(text, func() time.Time { return time.Unix(2_000_000_000, 0) },
			func(string, string) crypto.PublicKey { return keys["ES256"].Public() })
		if (err == nil) != (text == good) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
