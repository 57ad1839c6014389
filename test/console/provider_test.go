package console

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"

	"netkeep.internal/test/servertest"
)

// trustProviders has this process trust the certificate of servers of tests, as a machine
// trusts those of identity providers. It comes before anybody asks whom to trust.
func trustProviders() {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	file, err := os.CreateTemp("", "roots")
	if err != nil {
		panic(err)
	}
	defer os.Remove(file.Name())
	if err := pem.Encode(file, &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}); err != nil {
		panic(err)
	}
	if err := file.Close(); err != nil {
		panic(err)
	}
	before, had := os.LookupEnv("SSL_CERT_FILE")
	os.Setenv("SSL_CERT_FILE", file.Name())
	if _, err := x509.SystemCertPool(); err != nil { // which is read once
		panic(err)
	}
	if os.Unsetenv("SSL_CERT_FILE"); had {
		os.Setenv("SSL_CERT_FILE", before)
	}
}

// provider is an identity provider that knows one person, and lets it in without a word.
type provider struct {
	*httptest.Server
	t        testing.TB
	signer   string // id of ours
	identity string
	name     string // what it calls the person
	key      *ecdsa.PrivateKey

	// What it does otherwise than it should, if anything.
	discovery func(w http.ResponseWriter, doc M)
	tokens    func(w http.ResponseWriter, given M, nonce string)

	mu     sync.Mutex
	codes  map[string]url.Values // what was asked for, by the code that it got; each counts once
	number int
	asked  int // for tokens
}

// newProvider starts one, and has a controller believe it about an admin of its own.
func newProvider(t testing.TB, s *servertest.Server, change M) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.describe)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.exchange)
	mux.HandleFunc("GET /keys", p.keys)
	// Ports are given out again, and what a provider said is remembered for a while.
	below := "/" + servertest.Unique("tenant")
	p.Server = httptest.NewTLSServer(http.StripPrefix(below, mux))
	p.URL += below
	t.Cleanup(p.Close)
	c := s.Admin(t)
	p.name = servertest.Unique("person")
	p.identity = c.Post("identities", M{"name": p.name, "type": "User", "isAdmin": true, "externalId": p.name}).Want(http.StatusCreated).ID()
	body := M{
		"name": servertest.Unique("provider"), "enabled": true, "issuer": p.URL, "audience": "netkeep", "jwksEndpoint": p.URL + "/keys",
		"externalAuthUrl": p.URL, "clientId": "console", "scopes": []string{"email"}, "claimsProperty": "email", "useExternalId": true, "targetToken": "ACCESS",
	}
	for name, value := range change {
		body[name] = value
	}
	p.signer = c.Post("ext-jwt-signers", body).Want(http.StatusCreated).ID()
	t.Cleanup(func() { s.Admin(t).Delete("ext-jwt-signers/" + p.signer).Want(http.StatusOK) })
	return p
}

func (p *provider) describe(w http.ResponseWriter, _ *http.Request) {
	doc := M{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize?tenant=1", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
	}
	if p.discovery != nil {
		p.discovery(w, doc)
		return
	}
	write(w, doc)
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.MarshalWrite(w, v); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// authorize sends the person back with a code.
func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	p.number++
	code := fmt.Sprintf("code-%d-%s", p.number, rand.Text())
	p.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// exchange gives tokens for a code, once, to who began.
func (p *provider) exchange(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	asked, ok := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !ok || asked.Get("code_challenge_method") != "S256" || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) ||
		r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") || r.PostFormValue("client_id") != asked.Get("client_id") || r.PostFormValue("grant_type") != "authorization_code" {
		w.WriteHeader(http.StatusBadRequest)
		write(w, M{"error": "invalid_grant"})
		return
	}
	given := M{"token_type": "Bearer", "access_token": p.token(M{"aud": "netkeep"}), "id_token": p.token(M{"aud": "console", "nonce": asked.Get("nonce")})}
	if p.tokens != nil {
		p.tokens(w, given, asked.Get("nonce"))
		return
	}
	write(w, given)
}

// token is one of the person.
func (p *provider) token(change M) string {
	claims := jwt.MapClaims{"iss": p.URL, "sub": "somebody", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	claims["email"] = p.name
	for k, v := range change {
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

var refreshTo = regexp.MustCompile(`<meta http-equiv="refresh" content="0; url=([^"]*)">`)

// leave begins a login and returns the address of the provider that the browser is sent
// to.
func (b *browser) leave(p *provider, next string) *url.URL {
	b.t.Helper()
	a := b.post("/console/provider", url.Values{"signer": {p.signer}, "next": {next}}).is(http.StatusOK)
	return a.leadsTo()
}

// leadsTo is where a page leads by itself.
func (a *answer) leadsTo() *url.URL {
	a.t.Helper()
	found := refreshTo.FindStringSubmatch(a.body)
	if found == nil {
		a.t.Fatalf("%s leads nowhere: %s", a.path, a.body)
	}
	u, err := url.Parse(unescaped(found[1]))
	if err != nil {
		a.t.Fatal(err)
	}
	return u
}

// visit has the person log in at the provider, and returns with what it is sent back.
func (p *provider) visit(at *url.URL) url.Values {
	p.t.Helper()
	client := p.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Get(at.String())
	if err != nil {
		p.t.Fatal(err)
	}
	_ = resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		p.t.Fatal(err)
	}
	return back.Query()
}

// back comes from the provider, as browsers do from another site.
func (b *browser) back(answer url.Values) *answer {
	b.t.Helper()
	return b.get("/console/provider?"+answer.Encode(), "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
}

// keeps is what a browser has in a cookie.
func (b *browser) keeps(name string) string {
	u, _ := url.Parse(b.at)
	for _, c := range b.http.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

const awayName = "__Host-netkeep-away"

// sessions counts the sessions of the person.
func (p *provider) sessions(t testing.TB) int {
	t.Helper()
	return controller.Admin(t).Get("api-sessions?filter=" + url.QueryEscape(`identity = "`+p.identity+`"`)).Total()
}

// TestProvider logs in at an identity provider, with its access token and its ID token.
func TestProvider(t *testing.T) {
	for target, audience := range map[string]string{"ACCESS": "netkeep", "ID": "console"} {
		t.Run(target, func(t *testing.T) {
			p := newProvider(t, controller, M{"targetToken": target, "audience": audience})
			b := open(t, controller)
			to := b.leave(p, "/console/services?sort=name")
			q := to.Query()
			if !strings.HasPrefix(to.String(), p.URL+"/authorize?") || q.Get("tenant") != "1" || q.Get("scope") != "openid email" || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("redirect_uri") != b.at+"/console/provider" {
				t.Errorf("the browser is sent to %s", to)
			}
			for _, name := range []string{"state", "nonce", "code_challenge"} {
				if len(q.Get(name)) < 26 {
					t.Errorf("%s is %q", name, q.Get(name))
				}
			}
			answer := p.visit(to)
			a := b.back(answer).is(http.StatusOK)
			if next := a.leadsTo(); next.String() != "/console/services?sort=name" {
				t.Errorf("the login leads to %s", next)
			}
			c := cookie(a.Response)
			if c == nil || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || b.keeps(awayName) != "" {
				t.Errorf("the cookie is %v, and beside it there is %q", c, b.keeps(awayName))
			}
			b.get("/console/services?sort=name").is(http.StatusOK)
			now := controller.Nobody(t).With("net-session", b.held()).Get("current-api-session").Want(http.StatusOK)
			if now.At("data.identityId") != p.identity || now.At("data.authenticatorId") != "extJwtId:"+p.signer {
				t.Errorf("the session is %s", now.Raw)
			}
			for _, secret := range []string{answer.Get("code"), answer.Get("state"), q.Get("nonce"), b.held()} {
				if controller.Logged(secret) {
					t.Errorf("%q was logged", secret)
				}
			}
		})
	}
}

// TestProvidersOffered looks at whom the login names: who is enabled, has an address to
// log in at, over TLS, and knows us by a name.
func TestProvidersOffered(t *testing.T) {
	c := controller.Admin(t)
	p := newProvider(t, controller, nil)
	name := c.Get("ext-jwt-signers/" + p.signer).At("data.name").(string)
	if a := open(t, controller).get("/console/login").is(http.StatusOK); !a.says("Log in with " + name) {
		t.Errorf("it is not offered: %s", a.body)
	}
	for what, change := range map[string]M{
		"disabled":     {"enabled": false},
		"no address":   {"externalAuthUrl": nil},
		"no client id": {"clientId": nil},
		"without TLS":  {"externalAuthUrl": strings.Replace(p.URL, "https:", "http:", 1)},
		"a password":   {"externalAuthUrl": strings.Replace(p.URL, "https://", "https://a:b@", 1)},
	} {
		other := newProvider(t, controller, change)
		otherName := c.Get("ext-jwt-signers/" + other.signer).At("data.name").(string)
		b := open(t, controller)
		if a := b.get("/console/login"); a.says(otherName) {
			t.Errorf("%s is offered", what)
		}
		b.post("/console/provider", url.Values{"signer": {other.signer}}).is(http.StatusNotFound)
	}
	// One that lets no admin in is of no use here.
	lone := servertest.Start(t)
	lonely := newProvider(t, lone, nil)
	lc := lone.Admin(t)
	lc.Patch("identities/"+lonely.identity, M{"isAdmin": false}).Want(http.StatusOK)
	lc.Patch("auth-policies/default", M{"primary": M{"extJwt": M{"allowed": false, "allowedSigners": []string{}}}}).Want(http.StatusOK)
	if a := open(t, lone).get("/console/login").is(http.StatusOK); a.says("Log in with ") {
		t.Errorf("a signer is offered that lets no admin in: %s", a.body)
	}
	open(t, lone).post("/console/provider", url.Values{"signer": {lonely.signer}}).is(http.StatusNotFound)
	b := open(t, controller)
	for _, signer := range []string{"", "none", `" or true or id = "`} {
		b.post("/console/provider", url.Values{"signer": {signer}}).is(http.StatusNotFound)
	}
	b.post("/console/provider", url.Values{"signer": {p.signer}}, "Sec-Fetch-Site", "cross-site").is(http.StatusForbidden)
	if b.keeps(awayName) != "" {
		t.Error("another site began a login")
	}
}

// TestProviderLeadsNowhereElse gives a login addresses of others to lead to in the end.
func TestProviderLeadsNowhereElse(t *testing.T) {
	p := newProvider(t, controller, nil)
	for _, next := range []string{"https://evil.example/console/", "//evil.example", `/\evil.example`, "javascript:alert(1)", "/console/../x", "/console/provider?code=1", "/console/" + strings.Repeat("x", 2000)} {
		b := open(t, controller)
		if to := b.back(p.visit(b.leave(p, next))).is(http.StatusOK).leadsTo().String(); to != "/console/" {
			t.Errorf("%q leads to %q", next, to)
		}
	}
}

// TestForgedCallback comes back from where nobody was sent to.
func TestForgedCallback(t *testing.T) {
	p, other := newProvider(t, controller, nil), newProvider(t, controller, nil)
	begin := func() (*browser, url.Values) {
		b := open(t, controller)
		return b, p.visit(b.leave(p, "/console/"))
	}
	for what, forge := range map[string]func(b *browser, answer url.Values) *browser{
		"another browser":        func(_ *browser, _ url.Values) *browser { return open(t, controller) },
		"no state":               func(b *browser, answer url.Values) *browser { answer.Del("state"); return b },
		"another state":          func(b *browser, answer url.Values) *browser { answer.Set("state", "x"); return b },
		"two states":             func(b *browser, answer url.Values) *browser { answer.Add("state", answer.Get("state")); return b },
		"no code":                func(b *browser, answer url.Values) *browser { answer.Del("code"); return b },
		"two codes":              func(b *browser, answer url.Values) *browser { answer.Add("code", "x"); return b },
		"no issuer":              func(b *browser, answer url.Values) *browser { answer.Del("iss"); return b },
		"another issuer":         func(b *browser, answer url.Values) *browser { answer.Set("iss", other.URL); return b },
		"the login of another":   func(_ *browser, _ url.Values) *browser { b, _ := begin(); return b },
		"a cookie that is none":  func(b *browser, _ url.Values) *browser { b.keep(awayName, "x"); return b },
		"a cookie that is empty": func(b *browser, _ url.Values) *browser { b.keep(awayName, ""); return b },
		"a cookie, changed": func(b *browser, _ url.Values) *browser {
			text := []byte(b.keeps(awayName))
			text[len(text)/2] ^= 1
			b.keep(awayName, string(text))
			return b
		},
		"a login elsewhere, though": func(b *browser, _ url.Values) *browser { b.leave(other, "/console/"); return b },
	} {
		b, answer := begin()
		b = forge(b, answer)
		if a := b.back(answer).is(http.StatusForbidden); b.held() != "" || !a.says("does not belong") {
			t.Errorf("%s: it is in, or not told why not: %s", what, a.body)
		}
	}
	b, answer := begin()
	answer.Set("error", "access_denied")
	answer.Set("error_description", "<script>alert(1)</script>")
	if a := b.back(answer).is(http.StatusUnauthorized); b.held() != "" || !a.says("did not let you in") || strings.Contains(a.body, "<script>alert") {
		t.Errorf("a refusal shows %s", a.body)
	}
	if n := p.sessions(t); n != 0 {
		t.Errorf("there are %d sessions", n)
	}
	b.get("/console/provider").is(http.StatusOK)
	b.do(http.MethodHead, "/console/provider?"+answer.Encode(), nil)
	if n := p.sessions(t); n != 0 {
		t.Errorf("there are %d sessions", n)
	}
}

// keep gives a browser a cookie.
func (b *browser) keep(name, value string) {
	u, _ := url.Parse(b.at)
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: value, Path: "/", Secure: true}})
}

// TestCallbackTwice sends an answer once more, with everything that came with it.
func TestCallbackTwice(t *testing.T) {
	p := newProvider(t, controller, nil)
	b := open(t, controller)
	answer := p.visit(b.leave(p, "/console/"))
	sealed := b.keeps(awayName)
	b.back(answer).is(http.StatusOK)
	thief := open(t, controller)
	thief.keep(awayName, sealed)
	if thief.back(answer).is(http.StatusBadGateway); thief.held() != "" {
		t.Error("an answer counts twice")
	}
	if b.back(answer).is(http.StatusForbidden); p.sessions(t) != 1 {
		t.Errorf("there are %d sessions", p.sessions(t))
	}
}

// TestMixUp has one provider pass on what another gave, and lie about who it is.
func TestMixUp(t *testing.T) {
	honest := newProvider(t, controller, nil)
	for what, lie := range map[string]func(p *provider) func(http.ResponseWriter, M, string){
		"the access token of another": func(*provider) func(http.ResponseWriter, M, string) {
			return func(w http.ResponseWriter, given M, _ string) {
				given["access_token"] = honest.token(M{"aud": "netkeep"})
				write(w, given)
			}
		},
		"the ID token of another": func(*provider) func(http.ResponseWriter, M, string) {
			return func(w http.ResponseWriter, given M, nonce string) {
				given["id_token"] = honest.token(M{"aud": "console", "nonce": nonce})
				write(w, given)
			}
		},
		"an ID token of another login": func(p *provider) func(http.ResponseWriter, M, string) {
			return func(w http.ResponseWriter, given M, _ string) {
				given["id_token"] = p.token(M{"aud": "console", "nonce": "another"})
				write(w, given)
			}
		},
		"an ID token for another": func(p *provider) func(http.ResponseWriter, M, string) {
			return func(w http.ResponseWriter, given M, nonce string) {
				given["id_token"] = p.token(M{"aud": []string{"others"}, "nonce": nonce})
				write(w, given)
			}
		},
		"an ID token by way of another": func(p *provider) func(http.ResponseWriter, M, string) {
			return func(w http.ResponseWriter, given M, nonce string) {
				given["id_token"] = p.token(M{"aud": []string{"others", "console"}, "azp": "others", "nonce": nonce})
				write(w, given)
			}
		},
	} {
		p := newProvider(t, controller, nil)
		p.tokens = lie(p)
		b := open(t, controller)
		if a := b.back(p.visit(b.leave(p, "/console/"))).is(http.StatusForbidden); b.held() != "" {
			t.Errorf("%s: somebody is in: %s", what, a.body)
		}
		if p.sessions(t)+honest.sessions(t) != 0 {
			t.Errorf("%s: there are sessions", what)
		}
	}
	for what, lie := range map[string]M{
		"another issuer":         {"issuer": honest.URL},
		"login without TLS":      {"authorization_endpoint": "http://127.0.0.1/authorize"},
		"login by a script":      {"authorization_endpoint": "javascript:alert(1)"},
		"exchange without TLS":   {"token_endpoint": "http://127.0.0.1/token"},
		"no exchange":            {"token_endpoint": ""},
		"a challenge of nothing": {"code_challenge_methods_supported": []string{"plain"}},
	} {
		p := newProvider(t, controller, nil)
		p.discovery = func(w http.ResponseWriter, doc M) {
			for name, value := range lie {
				doc[name] = value
			}
			write(w, doc)
		}
		b := open(t, controller)
		if a := b.post("/console/provider", url.Values{"signer": {p.signer}}).is(http.StatusBadGateway); b.keeps(awayName) != "" || refreshTo.MatchString(a.body) {
			t.Errorf("%s: somebody is sent there: %s", what, a.body)
		}
	}
}

// TestProviderThatFails has a provider be slow, huge and wrong.
func TestProviderThatFails(t *testing.T) {
	begin := func(answer func(w http.ResponseWriter, doc M)) {
		t.Helper()
		p := newProvider(t, controller, nil)
		p.discovery = answer
		open(t, controller).post("/console/provider", url.Values{"signer": {p.signer}}).is(http.StatusBadGateway)
	}
	over := make(chan struct{})
	begin(func(w http.ResponseWriter, _ M) { // which trickles for as long as somebody listens
		defer close(over)
		for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
			if _, err := w.Write([]byte(" ")); err != nil || http.NewResponseController(w).Flush() != nil {
				tick.Stop()
				return
			}
		}
	})
	<-over
	begin(func(w http.ResponseWriter, doc M) {
		doc["more"] = strings.Repeat("x", 2<<20)
		write(w, doc)
	})
	begin(func(w http.ResponseWriter, _ M) { write(w, "what") })
	begin(func(w http.ResponseWriter, _ M) { w.WriteHeader(http.StatusInternalServerError) })

	finish := func(status int, answer func(w http.ResponseWriter, given M, nonce string)) {
		t.Helper()
		p := newProvider(t, controller, nil)
		p.tokens = answer
		b := open(t, controller)
		if b.back(p.visit(b.leave(p, "/console/"))).is(status); b.held() != "" || p.sessions(t) != 0 {
			t.Error("somebody is in")
		}
	}
	finish(http.StatusBadGateway, func(w http.ResponseWriter, given M, _ string) {
		given["more"] = strings.Repeat("x", 2<<20)
		write(w, given)
	})
	finish(http.StatusBadGateway, func(w http.ResponseWriter, _ M, _ string) { write(w, []string{}) })
	finish(http.StatusBadGateway, func(w http.ResponseWriter, given M, _ string) {
		delete(given, "id_token")
		write(w, given)
	})
	finish(http.StatusBadGateway, func(w http.ResponseWriter, given M, _ string) {
		delete(given, "access_token")
		write(w, given)
	})
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a code was sent elsewhere") }))
	defer elsewhere.Close()
	finish(http.StatusBadGateway, func(w http.ResponseWriter, _ M, _ string) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	finish(http.StatusUnauthorized, func(w http.ResponseWriter, given M, _ string) {
		given["access_token"] = "no token"
		write(w, given)
	})
}

// TestProviderForForm ends a session while a form is filled in by somebody who logs in
// at a provider, beside the form: what was typed is still there.
func TestProviderForForm(t *testing.T) {
	p := newProvider(t, controller, nil)
	b := admin(t, controller)
	name := servertest.Unique("kept")
	action, form := b.get("/console/services/new").form(t)
	form.Set("f.name", name)
	form.Set("f.roleAttributes", strings.Repeat("a long list of words\n", 5000))
	b.hold("00000000-0000-0000-0000-000000000000")
	a := b.post(action, form).is(http.StatusUnauthorized)
	if !a.says(`target="_blank"`) || !a.says("Go on with what you typed") {
		t.Fatalf("the page is %s", a.body)
	}
	kept := url.Values{"resume": {"yes"}}
	for _, tag := range inputTag.FindAllString(a.body, -1) {
		m := map[string]string{}
		for _, at := range attribute.FindAllStringSubmatch(tag, -1) {
			m[at[1]] = unescaped(at[2])
		}
		if strings.HasPrefix(m["name"], "kept.") || m["name"] == "next" {
			kept.Set(m["name"], m["value"])
		}
	}
	if again := b.post("/console/login", kept).is(http.StatusUnauthorized); !again.says("not logged in yet") || !again.says(name) {
		t.Errorf("who is not logged in yet is shown %s", again.body)
	}
	to := b.post("/console/provider", url.Values{"signer": {p.signer}, "next": {action}, "aside": {"yes"}}).is(http.StatusOK).leadsTo()
	if a := b.back(p.visit(to)).is(http.StatusOK); !a.says("Close this tab") || refreshTo.MatchString(a.body) {
		t.Errorf("the other tab shows %s", a.body)
	}
	a = b.post("/console/login", kept).is(http.StatusOK)
	if _, again := a.form(t); again.Get("f.name") != name || again.Get("f.roleAttributes") != form.Get("f.roleAttributes") {
		t.Errorf("what was typed is gone: %s", a.body)
	}
}
