package authn

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"math/big"
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
		claims claims
		want   bool
	}{
		{claims{}, true},
		{claims{"exp": 0.0, "nbf": 1.5, "iat": float64(lastDate)}, true},
		{claims{"exp": 1e300}, false},
		{claims{"nbf": float64(lastDate) + 1}, false},
		{claims{"iat": 1e19}, false},
		{claims{"nbf": -1.0}, false},
	} {
		if got := datable(test.claims); got != test.want {
			t.Errorf("%v: %v", test.claims, got)
		}
	}
}

// TestTokenTimes walks over the edges of a token's life.
func TestTokenTimes(t *testing.T) {
	w, i := newWorld(t), newIssuer(t)
	w.trust(t)
	now := time.Unix(2_000_000_000, 0)
	tokens := NewTokens(i.get, func() time.Time { return now }, w.Log)
	id := w.proof.identity.ID
	for _, test := range []struct {
		claims claims
		want   bool
	}{
		{claims{"exp": now.Unix() + 1}, true},
		{claims{"exp": now.Unix()}, false},
		{claims{"exp": float64(now.Unix()) + 1.5}, true},
		{claims{"exp": float64(now.Unix()) - 0.5}, false},
		{claims{"exp": now.Unix() + 1, "nbf": now.Unix()}, true},
		{claims{"exp": now.Unix() + 9, "nbf": now.Unix() + 1}, false},
		{claims{"exp": now.Unix() + 9, "nbf": 1e300}, false},
		{claims{"exp": 1e300}, false},
		{claims{"exp": nil}, false},
		{claims{"exp": "2100-01-01"}, false},
	} {
		test.claims["sub"] = id
		_, err := tokens.Check(t.Context(), w.State.Snapshot(), i.token(t, test.claims))
		if (err == nil) != test.want {
			t.Errorf("%v: %v", test.claims, err)
		}
	}
}
