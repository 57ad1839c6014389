package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

// TestJWTLogin logs in with every kind of key on both APIs, under both names
// of the header.
func TestJWTLogin(t *testing.T) {
	kinds := keyKinds(t)
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		alg string
		key crypto.Signer
	}{
		{"ES256", kinds["P-256"]}, {"ES384", kinds["P-384"]}, {"ES512", p521}, {"EdDSA", kinds["Ed25519"]},
		{"RS256", kinds["RSA"]}, {"RS384", kinds["RSA"]}, {"RS512", kinds["RSA"]},
		{"PS256", kinds["RSA"]}, {"PS384", kinds["RSA"]}, {"PS512", kinds["RSA"]},
	} {
		t.Run(test.alg, func(t *testing.T) {
			i, id := newIssuer(t, test.alg, test.key, nil), add(t, nil)
			both(t, func(t *testing.T, root string) {
				for _, header := range []string{"Authorization", "Authentication"} {
					c := shared.Nobody(t).With(header, "Bearer "+i.token(t, M{"sub": id}))
					a := c.Post(root+byJWT, M{}).Want(200)
					if got := a.Data(); got["identityId"] != id || got["authenticatorId"] != "extJwtId:"+i.id {
						t.Errorf("the session is %v", got)
					}
				}
			})
		})
	}
}

// TestJWTForms has tokens and signers that differ in what they may.
func TestJWTForms(t *testing.T) {
	id, external := add(t, nil), servertest.Unique("external")
	outside := add(t, M{"externalId": external})
	for name, test := range map[string]struct {
		signer, claims M
		want           string
	}{
		"aud a list":           {nil, M{"sub": id, "aud": []any{"other", "%aud"}}, id},
		"no audience":          {M{"audience": nil}, M{"sub": id, "aud": nil}, id},
		"any audience":         {M{"audience": ""}, M{"sub": id, "aud": "whatever"}, id},
		"no iat":               {nil, M{"sub": id, "iat": nil}, id},
		"nbf past":             {nil, M{"sub": id, "nbf": 1}, id},
		"exp with a fraction":  {nil, M{"sub": id, "exp": float64(time.Now().Unix()) + 3600.5}, id},
		"another claim":        {M{"claimsProperty": "email"}, M{"email": id, "sub": "nobody"}, id},
		"external id":          {M{"useExternalId": true}, M{"sub": external}, outside},
		"claim of external id": {M{"useExternalId": true, "claimsProperty": "oid"}, M{"oid": external}, outside},
		"more claims":          {nil, M{"sub": id, "roles": []any{"a", M{"b": nil}}}, id},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIssuer(t, "ES256", newKey(t), test.signer)
			if list, ok := test.claims["aud"].([]any); ok {
				list[1] = i.audience
			}
			if got := show(t, i.token(t, test.claims)).Want(200).Data()["identityId"]; got != test.want {
				t.Errorf("the session is for %v, want %s", got, test.want)
			}
		})
	}
}

// TestKidOfCertificate leaves the kid out, so that the fingerprint stands for
// it.
func TestKidOfCertificate(t *testing.T) {
	i := newIssuer(t, "ES256", newKey(t), M{"kid": nil})
	i.kid = shared.Admin(t).Get("external-jwt-signers/" + i.id).Want(200).Data()["fingerprint"].(string)
	show(t, i.token(t, M{"sub": add(t, nil)})).Want(200)
}

func TestAllowedSigners(t *testing.T) {
	one, other := newIssuer(t, "ES256", newKey(t), nil), newIssuer(t, "ES256", newKey(t), nil)
	policy := addPolicy(t, func(primary, _ M) { primary["extJwt"].(M)["allowedSigners"] = []any{one.id} })
	id := add(t, M{"authPolicyId": policy})
	show(t, one.token(t, M{"sub": id})).Want(200)
	show(t, other.token(t, M{"sub": id})).Fails(401, "INVALID_AUTH", "")
	shared.Admin(t).Patch("auth-policies/"+policy, M{"primary": M{"extJwt": M{"allowedSigners": []any{}}}}).Want(200)
	show(t, other.token(t, M{"sub": id})).Want(200)
	shared.Admin(t).Patch("auth-policies/"+policy, M{"primary": M{"extJwt": M{"allowed": false}}}).Want(200)
	show(t, one.token(t, M{"sub": id})).Fails(401, "INVALID_AUTH", "")
}

// TestSecondJWT has a policy that asks for a token with every request.
func TestSecondJWT(t *testing.T) {
	both(t, func(t *testing.T, root string) {
		i := newIssuer(t, "ES256", newKey(t), M{"externalAuthUrl": "https://login.example/start", "clientId": "app", "scopes": []any{"openid", "email"}})
		policy := addPolicy(t, func(primary, secondary M) {
			primary["extJwt"].(M)["allowed"] = false // it is about logins only
			secondary["requireExtJwtSigner"] = i.id
		})
		id, leaf := certified(t, M{"authPolicyId": policy})
		a := shared.Nobody(t).Presenting(leaf.with()).Post(root+byCert, M{}).Want(200)
		want := []any{M{"typeId": "EXT-JWT", "provider": "url", "httpUrl": "https://login.example/start", "id": i.id, "clientId": "app", "scopes": []any{"openid", "email"}}}
		if diff := cmp.Diff(want, a.At("data.authQueries")); diff != "" {
			t.Errorf("queries differ (-want +got):\n%s", diff)
		}
		c := shared.Nobody(t)
		c.Token = a.Header.Get("net-session")
		for range 2 { // nothing is remembered
			c.Get(root+"current-identity").Fails(401, "UNAUTHORIZED", "")
			works(t, c)
			c.With("Authorization", "Bearer "+i.token(t, M{"sub": id})).Get(root + "current-identity").Want(200)
			c.With("Authentication", "Bearer "+i.token(t, M{"sub": id})).Get(root + "current-identity").Want(200)
		}
		// The signer cannot go while a policy asks for it, but be disabled.
		admin := shared.Admin(t)
		admin.Delete("external-jwt-signers/"+i.id).Fails(409, "CAN_NOT_DELETE_REFERENCED_ENTITY", "secondary.requireExtJwtSigner")
		admin.Patch("external-jwt-signers/"+i.id, M{"enabled": false}).Want(200)
		c.With("Authorization", "Bearer "+i.token(t, M{"sub": id})).Get(root+"current-identity").Fails(401, "UNAUTHORIZED", "")
	})
}

// TestCertificateOfSigner shows tokens of signers whose certificate is over, or
// has yet to begin.
func TestCertificateOfSigner(t *testing.T) {
	id := add(t, nil)
	for name, test := range map[string]struct {
		when template
		want int
	}{
		"good": {lasting(-time.Hour, time.Hour), 200}, "expired": {expired, 401}, "not yet": {lasting(time.Hour, 2*time.Hour), 401},
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey(t)
			i := newIssuer(t, "ES256", key, M{"certPem": certify(t, key, nil, []template{test.when}).text()})
			show(t, i.token(t, M{"sub": id})).Want(test.want)
		})
	}
}

// TestNoAudience looks for a warning of tokens that were made for others.
func TestNoAudience(t *testing.T) {
	warned := func(i *issuer) bool {
		return slices.ContainsFunc(shared.Log(), func(line string) bool {
			return strings.Contains(line, `"WARN"`) && strings.Contains(line, i.id) && strings.Contains(line, "audience")
		})
	}
	if i := newIssuer(t, "ES256", newKey(t), nil); warned(i) {
		t.Error("there is a warning of a signer with an audience")
	}
	if i := newIssuer(t, "ES256", newKey(t), M{"audience": nil}); !warned(i) {
		t.Error("there is no warning of a signer without an audience")
	}
}

// TestKeysWithoutTLS looks for a warning of keys that could be replaced on their way.
func TestKeysWithoutTLS(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"http://issuer.example.org/keys": true, "HTTP://192.0.2.1:8080/keys": true, "https://issuer.example.org/keys": false,
		"http://localhost:8080/keys": false, "http://127.0.0.1/keys": false, "http://[::1]:8080/keys": false,
	} {
		i := &issuer{name: servertest.Unique("https://issuer"), audience: "here"}
		i.define(t, M{"jwksEndpoint": endpoint}, nil)
		warned := slices.ContainsFunc(shared.Log(), func(line string) bool {
			return strings.Contains(line, `"WARN"`) && strings.Contains(line, i.id) && strings.Contains(line, "without TLS")
		})
		if warned != want {
			t.Errorf("there is a warning of %s: %t", endpoint, warned)
		}
	}
}

// TestSessionsOfSigner checks that sessions end with the signer that vouched.
func TestSessionsOfSigner(t *testing.T) {
	i, id := newIssuer(t, "ES256", newKey(t), nil), add(t, nil)
	c := shared.Nobody(t)
	c.Token = show(t, i.token(t, M{"sub": id})).Want(200).Header.Get("net-session")
	works(t, c)
	shared.Admin(t).Delete("external-jwt-signers/" + i.id).Want(200)
	dead(t, c)
}

// TestPublishedKeys logs in with keys of every kind that an endpoint may have.
func TestPublishedKeys(t *testing.T) {
	b64 := base64.RawURLEncoding.EncodeToString
	kinds := keyKinds(t)
	ec := kinds["P-256"].(*ecdsa.PrivateKey)
	cert := certify(t, newKey(t), nil, nil)
	rsaKey := kinds["RSA"].Public()
	for name, test := range map[string]struct {
		alg string
		key crypto.Signer
		jwk string
	}{
		"P-256":   {"ES256", ec, ecJWK(t, "kid", ec)},
		"P-384":   {"ES384", kinds["P-384"], ecJWK(t, "kid", kinds["P-384"].(*ecdsa.PrivateKey))},
		"Ed25519": {"EdDSA", kinds["Ed25519"], fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":"kid","x":%q}`, b64(edPublic(kinds["Ed25519"])))},
		"RSA":     {"RS256", kinds["RSA"], rsaJWK(rsaKey)},
		"x5c":     {"ES256", cert.key, fmt.Sprintf(`{"kty":"EC","kid":"kid","x5c":[%q]}`, base64.StdEncoding.EncodeToString(cert.Raw))},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublisher(t)
			p.publish(t, test.alg, "kid", test.key, test.jwk)
			show(t, p.token(t, M{"sub": add(t, nil)})).Want(200)
		})
	}
}

// TestKeyRotation replaces the keys of an endpoint, and takes it down.
func TestKeyRotation(t *testing.T) {
	t.Parallel() // it has to wait for the limiter
	p, id := newPublisher(t), add(t, nil)
	rotate := func(kid string) {
		key := newKey(t)
		p.publish(t, "ES256", kid, key, ecJWK(t, kid, key))
	}
	try := func() *servertest.Answer { return show(t, p.token(t, M{"sub": id})) }
	rotate("first")
	try().Want(200)
	first := *p.issuer
	for range 20 {
		try().Want(200)
		show(t, sign(t, "ES256", p.key, encode(t, p.header(M{"kid": rand.Text()})), encode(t, p.claims(M{"sub": id})))).Fails(401, "INVALID_AUTH", "")
	}
	if n := p.fetched(); n > 2 {
		t.Errorf("made up key ids led to %d fetches", n)
	}
	rotate("second")
	servertest.Eventually(t, waitTime, "the second key", everySoOften(func() bool { return try().Status == http.StatusOK }))
	show(t, first.token(t, M{"sub": id})).Fails(401, "INVALID_AUTH", "")
	fetches := p.fetched()
	p.takeDown()
	second := *p.issuer
	rotate("third")
	servertest.Eventually(t, waitTime, "another fetch", everySoOften(func() bool {
		try().Fails(401, "INVALID_AUTH", "")
		return p.fetched() > fetches
	}))
	show(t, second.token(t, M{"sub": id})).Want(200)
}

// everySoOften asks twice a second, whoever asks more often.
func everySoOften(happened func() bool) func() bool {
	var last time.Time
	return func() bool {
		if time.Since(last) < 500*time.Millisecond {
			return false
		}
		last = time.Now()
		return happened()
	}
}

// TestEndpointIsNotThere has a signer whose endpoint never was.
func TestEndpointIsNotThere(t *testing.T) {
	i := &issuer{name: servertest.Unique("https://issuer"), audience: "x", kid: "kid", alg: "ES256", key: newKey(t)}
	i.define(t, M{"jwksEndpoint": "http://127.0.0.1:1/keys"}, nil)
	show(t, i.token(t, M{"sub": add(t, nil)})).Fails(401, "INVALID_AUTH", "")
}
