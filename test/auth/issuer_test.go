package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"

	"netkeep.internal/test/servertest"
)

// issuer signs tokens with the key of a certificate that the controller knows.
type issuer struct {
	id       string // of the signer
	name     string // iss
	audience string
	kid      string
	alg      string
	key      crypto.Signer
	cert     certificate
}

var (
	theHouse  *issuer
	openHouse sync.Once
)

// house is the issuer by which tests log in when it does not matter how.
func house(t testing.TB) *issuer {
	t.Helper()
	openHouse.Do(func() { theHouse = newIssuer(t, "ES256", newKey(t), nil) })
	return theHouse
}

// newIssuer makes an issuer known to the controller.
func newIssuer(t testing.TB, alg string, key crypto.Signer, change M) *issuer {
	t.Helper()
	i := &issuer{
		name: servertest.Unique("https://issuer"), audience: servertest.Unique("audience"), kid: servertest.Unique("kid"), alg: alg, key: key,
	}
	i.cert = certify(t, key, nil, nil)
	i.define(t, M{"certPem": i.cert.text(), "kid": i.kid}, change)
	return i
}

func (i *issuer) define(t testing.TB, source, change M) {
	t.Helper()
	body := M{"name": servertest.Unique("signer"), "enabled": true, "issuer": i.name, "audience": i.audience}
	for _, members := range []M{source, change} {
		for name, value := range members {
			body[name] = value
		}
	}
	i.id = shared.Admin(t).Post("external-jwt-signers", body).Want(http.StatusCreated).ID()
}

// claims are those of a good token, with some changed. A nil is left out.
func (i *issuer) claims(change M) M {
	all := M{"iss": i.name, "aud": i.audience, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	for name, value := range change {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	return all
}

// header is that of a good token, with some members changed.
func (i *issuer) header(change M) M {
	all := M{"alg": i.alg, "kid": i.kid, "typ": "JWT"}
	for name, value := range change {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	return all
}

// token returns a token that the issuer signed.
func (i *issuer) token(t testing.TB, claims M) string {
	t.Helper()
	return sign(t, i.alg, i.key, encode(t, i.header(nil)), encode(t, i.claims(claims)))
}

// sign signs a header and claims in a way that need not be the one that the
// header names.
func sign(t testing.TB, alg string, key any, header, claims string) string {
	t.Helper()
	input := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	signature, err := jwt.GetSigningMethod(alg).Sign(input, key)
	if err != nil {
		t.Fatal(err)
	}
	return input + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func encode(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// show tries a token.
func show(t testing.TB, token string) *servertest.Answer {
	t.Helper()
	return shared.Nobody(t).With("Authorization", "Bearer "+token).Post(byJWT, M{})
}

// publisher serves the keys of an issuer.
type publisher struct {
	*issuer
	mu      sync.Mutex
	keys    map[string]string // kid to JWK
	down    bool
	fetches int
}

// newPublisher makes an issuer with an endpoint known to the controller.
func newPublisher(t testing.TB) *publisher {
	t.Helper()
	p := &publisher{issuer: &issuer{name: servertest.Unique("https://issuer"), audience: servertest.Unique("audience")}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.define(t, M{"jwksEndpoint": server.URL + "/keys"}, nil)
	return p
}

func (p *publisher) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetches++
	if p.down {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	var keys []string
	for _, key := range p.keys {
		keys = append(keys, key)
	}
	fmt.Fprintf(w, `{"keys":[%s]}`, strings.Join(keys, ","))
}

// publish replaces the published keys with a new one, which then signs.
func (p *publisher) publish(t testing.TB, alg, kid string, key crypto.Signer, jwk string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kid, p.alg, p.key = kid, alg, key
	p.keys = map[string]string{kid: jwk}
}

func (p *publisher) takeDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
}

func (p *publisher) fetched() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

// ecJWK describes the public part of a key.
func ecJWK(t testing.TB, kid string, key *ecdsa.PrivateKey) string {
	t.Helper()
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	half := 1 + len(point)/2
	b64 := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"kty":"EC","crv":%q,"kid":%q,"use":"sig","x":%q,"y":%q}`,
		key.Curve.Params().Name, kid, b64(point[1:half]), b64(point[half:]))
}

func rsaJWK(key crypto.PublicKey) string {
	pub := key.(*rsa.PublicKey)
	b64 := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"kty":"RSA","kid":"kid","n":%q,"e":%q}`, b64(pub.N.Bytes()), b64(big.NewInt(int64(pub.E)).Bytes()))
}

func edPublic(key crypto.Signer) []byte { return key.Public().(ed25519.PublicKey) }
