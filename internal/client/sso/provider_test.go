package sso

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"
)

// TestMain has this process trust the certificate of servers of tests, as a machine trusts
// those of identity providers. It comes before anybody asks whom to trust.
func TestMain(m *testing.M) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	file, err := os.CreateTemp("", "roots")
	if err != nil {
		panic(err)
	}
	if err := pem.Encode(file, &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}); err != nil {
		panic(err)
	}
	os.Setenv("SSL_CERT_FILE", file.Name())
	if _, err := x509.SystemCertPool(); err != nil { // which is read once
		panic(err)
	}
	_ = file.Close()
	_ = os.Remove(file.Name())
	server.Close()
	os.Exit(m.Run())
}

type M = map[string]any

// provider is one that knows one person, and lets it in without a word.
type provider struct {
	*httptest.Server
	t   testing.TB
	key *ecdsa.PrivateKey

	// What it does otherwise than it should, if anything.
	discovery func(w http.ResponseWriter, doc M)
	back      func(answer url.Values)
	tokens    func(w http.ResponseWriter, given M)
	claims    M // of the ID token
	ahead     time.Duration
	device    func(w http.ResponseWriter, polls int) bool

	mu      sync.Mutex
	codes   map[string]url.Values
	refresh string
	polls   int
	revoked []string
	ended   []string
}

func newProvider(t testing.TB) *provider {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wellKnown, p.describe)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("POST /device", p.begin)
	mux.HandleFunc("POST /revoke", func(_ http.ResponseWriter, r *http.Request) { p.revoked = append(p.revoked, r.PostFormValue("token")) })
	mux.HandleFunc("POST /end", func(_ http.ResponseWriter, r *http.Request) {
		p.ended = append(p.ended, r.PostFormValue("id_token_hint"))
	})
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	return p
}

// signer is how a controller tells of it.
func (p *provider) signer() Signer {
	return Signer{ID: "one", Name: "Example", URL: p.URL, ClientID: "laptop", Audience: "netkeep", Scopes: []string{"email"}}
}

func (p *provider) meet(change ...func(*Signer, *Options)) (*Provider, error) {
	s, opt := p.signer(), Options{Now: func() time.Time { return time.Now().Add(-p.ahead) }, Again: "netkeep login --sso"}
	for _, c := range change {
		c(&s, &opt)
	}
	return Meet(p.t.(*testing.T).Context(), s, opt)
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.MarshalWrite(w, v); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (p *provider) describe(w http.ResponseWriter, _ *http.Request) {
	doc := M{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"device_authorization_endpoint": p.URL + "/device", "revocation_endpoint": p.URL + "/revoke", "end_session_endpoint": p.URL + "/end",
		"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
		"scopes_supported": []string{"openid", "offline_access"}, "id_token_signing_alg_values_supported": []string{"ES256"},
	}
	if p.discovery != nil {
		p.discovery(w, doc)
		return
	}
	write(w, doc)
}

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q, code := r.URL.Query(), rand.Text()
	p.codes[code] = q
	answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
	if p.back != nil {
		p.back(answer)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
}

func (p *provider) begin(w http.ResponseWriter, r *http.Request) {
	write(w, M{
		"device_code": rand.Text(), "user_code": "ABCD-EFGH", "verification_uri": p.URL + "/enter", "verification_uri_complete": p.URL + "/enter?code=ABCD-EFGH",
		"expires_in": 300, "interval": 1,
	})
}

func refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	write(w, M{"error": code})
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	nonce := ""
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		asked, ok := p.codes[r.PostFormValue("code")]
		delete(p.codes, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !ok || asked.Get("code_challenge_method") != "S256" || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) ||
			r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") || r.PostFormValue("client_id") != "laptop" {
			refuse(w, "invalid_grant")
			return
		}
		nonce = asked.Get("nonce")
	case "refresh_token":
		if p.refresh == "" || r.PostFormValue("refresh_token") != p.refresh {
			refuse(w, "invalid_grant")
			return
		}
	default:
		if p.polls++; p.device != nil && !p.device(w, p.polls) {
			return
		}
	}
	p.refresh = rand.Text()
	access := p.sign(M{"aud": "netkeep"})
	id := M{"aud": "laptop", "nonce": nonce, "at_hash": half(access)}
	for name, value := range p.claims {
		id[name] = value
	}
	given := M{"token_type": "Bearer", "access_token": access, "id_token": p.sign(id), "refresh_token": p.refresh, "expires_in": 300}
	if p.tokens != nil {
		p.tokens(w, given)
		return
	}
	write(w, given)
}

func half(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

func (p *provider) sign(more M) string {
	now := time.Now()
	claims := jwt.MapClaims{"iss": p.URL, "sub": "ann", "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
	for k, v := range more {
		claims[k] = v
	}
	t := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	t.Header["kid"] = "one"
	text, err := t.SignedString(p.key)
	if err != nil {
		p.t.Error(err)
	}
	return text
}

func (p *provider) keys(w http.ResponseWriter, _ *http.Request) {
	point, err := p.key.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	text := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	write(w, M{"keys": []M{{"kty": "EC", "crv": "P-256", "kid": "one", "use": "sig", "alg": "ES256", "x": text(point[1:33]), "y": text(point[33:])}}})
}

// said is what a token says, whoever signed it.
func said(raw, claim string) any {
	claims := jwt.MapClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(raw, claims); err != nil {
		panic(err)
	}
	return claims[claim]
}
