package authn

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var b64 = base64.RawURLEncoding.EncodeToString

// rsaJWK is an RSA key of some bits, without anybody who could sign with it.
func rsaJWK(kid string, bits, e int64) string {
	n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
	n.SetBit(n, 0, 1)
	return fmt.Sprintf(`{"kty":"RSA","kid":%q,"n":%q,"e":%q}`, kid, b64(n.Bytes()), b64(big.NewInt(e).Bytes()))
}

func ecJWK(t testing.TB, kid string, curve elliptic.Curve, change func(point []byte)) (string, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	change(point)
	half := 1 + len(point)/2
	return fmt.Sprintf(`{"kty":"EC","crv":%q,"kid":%q,"x":%q,"y":%q}`, curve.Params().Name, kid, b64(point[1:half]), b64(point[half:])), key
}

func same([]byte) {}

func TestParseKeySet(t *testing.T) {
	p256, key := ecJWK(t, "p256", elliptic.P256(), same)
	p384, _ := ecJWK(t, "p384", elliptic.P384(), same)
	p521, _ := ecJWK(t, "p521", elliptic.P521(), same)
	p224, _ := ecJWK(t, "p224", elliptic.P224(), same)
	off, _ := ecJWK(t, "off", elliptic.P256(), func(point []byte) { point[len(point)-1] ^= 1 })
	cert := issue(t, nil, x509.Certificate{Subject: pkix.Name{CommonName: "x"}})
	x5c := base64.StdEncoding.EncodeToString(cert.cert.Raw)
	set := `{"other":1,"keys":[` + strings.Join([]string{
		p256, p384, p521, p224, off,
		rsaJWK("rsa", 2048, 65537), rsaJWK("short", 2047, 65537), rsaJWK("long", 8193, 65537), rsaJWK("one", 2048, 1), rsaJWK("even", 2048, 4),
		rsaJWK("huge", 2048, 1<<40),
		`{"kty":"OKP","crv":"Ed25519","kid":"ed","x":"` + b64(make([]byte, 32)) + `"}`,
		`{"kty":"OKP","crv":"Ed25519","kid":"ed-short","x":"` + b64(make([]byte, 31)) + `"}`,
		`{"kty":"OKP","crv":"X25519","kid":"x25519","x":"` + b64(make([]byte, 32)) + `"}`,
		`{"kty":"oct","kid":"secret","k":"c2VjcmV0"}`,
		`{"kty":"EC","kid":"x5c","x5c":["` + x5c + `"]}`, `{"kty":"EC","kid":"x5c-bad","x5c":["!"]}`, `{"kty":"EC","kid":"x5c-none","x5c":["AAAA"]}`,
		`{"kty":"EC","kid":"no-point","crv":"P-256"}`,
		strings.Replace(p256, `"p256"`, `""`, 1), strings.Replace(p256, `"kid":"p256",`, ``, 1),
		strings.Replace(p256, `"p256"`, `"enc","use":"enc"`, 1), strings.Replace(p256, `"p256"`, `"sig","use":"sig"`, 1),
		strings.Replace(p256, `"p256"`, `"twice"`, 1), strings.Replace(p384, `"p384"`, `"twice"`, 1),
	}, ",") + `]}`
	keys, err := parseKeySet([]byte(set))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ed", "p256", "p384", "p521", "rsa", "sig", "x5c"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(keys))); diff != "" {
		t.Errorf("keys differ (-want +got):\n%s", diff)
	}
	if !key.PublicKey.Equal(keys["p256"]) || !cert.key.PublicKey.Equal(keys["x5c"]) {
		t.Error("a key is not the one that was published")
	}
	many := `{"keys":[` + strings.Repeat(`{"kty":"oct"},`, maxKeys) + `{"kty":"oct"}]}`
	for _, bad := range []string{"", "null[]", "[]", `{"keys":{}}`, `{"keys":[1]}`, `{"keys":[],"keys":[]}`, `{"keys":[{"kid":1}]}`, many} {
		if keys, err := parseKeySet([]byte(bad)); err == nil {
			t.Errorf("%.40s gives %v", bad, keys)
		}
	}
}

// acceptable reports whether a key is one that this package means to use.
func acceptable(pub crypto.PublicKey) bool {
	switch k := pub.(type) {
	case *rsa.PublicKey:
		return k.N.BitLen() >= 2048 && k.E >= 3
	case *ecdsa.PublicKey:
		_, err := k.Bytes() // of a point on its curve
		return err == nil
	case ed25519.PublicKey:
		return len(k) == ed25519.PublicKeySize
	}
	return false
}
