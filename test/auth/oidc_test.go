package auth_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// program is one that logs in by OpenID Connect.
type program struct {
	t        testing.TB
	at       string // of the controller
	http     *http.Client
	client   string
	redirect string
	verifier string
	id       string // of its login
}

// told is what it is told.
type told struct {
	status int
	header http.Header
	text   string
	json   M
}

const itsRedirect = "http://localhost:8080/auth/callback"

// connect returns a program that shows a certificate if it is given one.
func connect(t testing.TB, s *servertest.Server, certs ...tls.Certificate) *program {
	config := s.TLS()
	config.Certificates = certs
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &program{
		t: t, at: s.URL, client: "native", redirect: itsRedirect, verifier: strings.Repeat("v", 20) + servertest.Unique("verifier-of-a-login"),
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

func (p *program) send(method, path string, form url.Values, header ...string) told {
	p.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	if strings.HasPrefix(path, "/") {
		path = p.at + path
	}
	req, err := http.NewRequestWithContext(p.t.Context(), method, path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := p.http.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	out := told{status: resp.StatusCode, header: resp.Header, text: string(text)}
	_ = json.Unmarshal(text, &out.json)
	return out
}

// want fails the test unless the answer has a status.
func (a told) want(t testing.TB, status int) told {
	t.Helper()
	if a.status != status {
		t.Fatalf("the answer is %d, not %d: %s", a.status, status, a.text)
	}
	return a
}

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// asks is what the program begins with.
func (p *program) asks() url.Values {
	return url.Values{
		"client_id": {p.client}, "response_type": {"code"}, "scope": {"openid offline_access"}, "state": {"its state"}, "nonce": {"its nonce"},
		"code_challenge": {challenge(p.verifier)}, "code_challenge_method": {"S256"}, "redirect_uri": {p.redirect},
	}
}

// begin begins a login.
func (p *program) begin() *program {
	p.t.Helper()
	at := p.send("GET", "/oidc/authorize?"+p.asks().Encode(), nil).want(p.t, http.StatusFound).header.Get("Location")
	p.id = p.send("GET", at, nil).want(p.t, http.StatusOK).header.Get("auth-request-id")
	if p.id == "" {
		p.t.Fatal("the login has no id")
	}
	return p
}

// password shows a user name and password.
func (p *program) password(username, password string) told {
	p.t.Helper()
	return p.send("POST", "/oidc/login/username", url.Values{
		"id": {p.id}, "username": {username}, "password": {password}, "envOs": {"linux"}, "sdkType": {"a test"}, "configTypes": {"all"},
	})
}

// code follows the controller back to where the program came from.
func (p *program) code(a told) string {
	p.t.Helper()
	back := p.send("GET", a.want(p.t, http.StatusFound).header.Get("Location"), nil).want(p.t, http.StatusFound).header.Get("Location")
	u, err := url.Parse(back)
	if err != nil || !strings.HasPrefix(back, p.redirect+"?") || u.Query().Get("state") != "its state" {
		p.t.Fatalf("the program is sent to %s: %v", back, err)
	}
	return u.Query().Get("code")
}

// trade exchanges a code.
func (p *program) trade(code string, change ...string) told {
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {p.client}, "code_verifier": {p.verifier}, "code": {code}, "redirect_uri": {p.redirect}}
	for i := 0; i+1 < len(change); i += 2 {
		form.Set(change[i], change[i+1])
	}
	return p.send("POST", "/oidc/oauth/token", form)
}

// refresh exchanges a refresh token as OpenZiti's SDKs do.
func (p *program) refresh(token, wanted string) told {
	const types = "urn:ietf:params:oauth:token-type:"
	return p.send("POST", "/oidc/oauth/token", url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "client_id": {p.client}, "subject_token": {token},
		"subject_token_type": {types + "refresh_token"}, "requested_token_type": {types + wanted},
	})
}

// with asks the Client API something with an access token.
func (p *program) with(token, path string) told {
	return p.send("GET", api.ClientRoot+"/"+path, nil, "Authorization", "Bearer "+token)
}

// enters logs somebody in, whole.
func (p *program) enters(username, password string) (access, refresh string) {
	p.t.Helper()
	got := p.trade(p.code(p.begin().password(username, password))).want(p.t, http.StatusOK).json
	return got["access_token"].(string), got["refresh_token"].(string)
}

// claims is what a JWT says.
func claims(t testing.TB, jwt string) (said M) {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(jwt, ".")[1])
	if err == nil {
		err = json.Unmarshal(raw, &said)
	}
	if err != nil {
		t.Fatalf("%q is no JWT: %v", jwt, err)
	}
	return said
}

// TestOIDCPassword logs in with a password, uses what comes of it at both APIs,
// refreshes it and leaves.
func TestOIDCPassword(t *testing.T) {
	u := shared.AddUser(t, true)
	p := connect(t, shared)
	got := p.trade(p.code(p.begin().password(u.Username, u.Password))).want(t, http.StatusOK).json
	access, refresh := got["access_token"].(string), got["refresh_token"].(string)
	if said := claims(t, got["id_token"].(string)); said["nonce"] != "its nonce" || said["sub"] != u.ID || said["name"] != u.Username {
		t.Errorf("the ID token says %v", said)
	}
	said := claims(t, access)
	if said["sub"] != u.ID || said["z_t"] != "a" || said["iss"] != p.at+"/oidc" {
		t.Errorf("the access token says %v", said)
	}
	session := p.with(access, "current-api-session").want(t, http.StatusOK).json["data"].(M)
	if session["id"] != said["z_asid"] || session["identityId"] != u.ID {
		t.Errorf("the session is %v, and the token names %v", session, said["z_asid"])
	}
	p.send("GET", api.ManagementRoot+"/identities?limit=1", nil, "Authorization", "Bearer "+access).want(t, http.StatusOK)
	p.send("GET", api.FabricRoot+"/routers?limit=1", nil, "Authorization", "Bearer "+access).want(t, http.StatusOK)

	next := p.refresh(refresh, "refresh_token").want(t, http.StatusOK).json
	id := p.refresh(refresh, "id_token").want(t, http.StatusOK).json["access_token"].(string)
	if said := claims(t, id); said["sub"] != u.ID {
		t.Errorf("the second ID token says %v", said)
	}
	p.with(id, "current-api-session").want(t, http.StatusUnauthorized)
	access = next["access_token"].(string)
	plain := p.send("POST", "/oidc/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {"native"}, "refresh_token": {next["refresh_token"].(string)}}).want(t, http.StatusOK).json
	for _, token := range []string{access, plain["access_token"].(string)} {
		if now := p.with(token, "current-api-session").want(t, http.StatusOK).json["data"].(M); now["id"] != session["id"] {
			t.Errorf("a refreshed token is of session %v, not %v", now["id"], session["id"])
		}
	}
	p.send("POST", "/oidc/revoke", url.Values{"client_id": {"native"}, "token": {plain["refresh_token"].(string)}}).want(t, http.StatusOK)
	p.with(access, "current-api-session").want(t, http.StatusUnauthorized)
	if n := sessionsOf(u.ID); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// TestOIDCEnds ends sessions in every way that there is: tokens are worth nothing from
// then on, and are refreshed no more.
func TestOIDCEnds(t *testing.T) {
	for name, end := range map[string]func(p *program, id, access, hint string){
		"deleted by an admin": func(p *program, id, access, _ string) {
			shared.Admin(p.t).Delete("api-sessions/" + claims(p.t, access)["z_asid"].(string)).Want(http.StatusOK)
		},
		"identity disabled": func(p *program, id, _, _ string) {
			shared.Admin(p.t).Post("identities/"+id+"/disable", M{"durationMinutes": 0}).Want(http.StatusOK)
		},
		"logout": func(p *program, _, access, _ string) {
			p.send("DELETE", api.ClientRoot+"/current-api-session", nil, "Authorization", "Bearer "+access).want(p.t, http.StatusOK)
		},
		"end of session": func(p *program, _, _, hint string) {
			p.send("GET", "/oidc/end_session?id_token_hint="+hint, nil).want(p.t, http.StatusOK)
		},
	} {
		t.Run(name, func(t *testing.T) {
			u, p := shared.AddUser(t, false), connect(t, shared)
			got := p.trade(p.code(p.begin().password(u.Username, u.Password))).want(t, http.StatusOK).json
			access, refresh := got["access_token"].(string), got["refresh_token"].(string)
			p.with(access, "services").want(t, http.StatusOK)
			end(p, u.ID, access, got["id_token"].(string))
			p.with(access, "services").want(t, http.StatusUnauthorized)
			if said := p.refresh(refresh, "refresh_token").want(t, http.StatusBadRequest).json; said["error"] != "invalid_grant" {
				t.Errorf("the refresh says %v", said)
			}
		})
	}
}

// TestOIDCReplay uses codes and refresh tokens twice: whoever had them first has them
// no more either.
func TestOIDCReplay(t *testing.T) {
	t.Run("code", func(t *testing.T) {
		u, p := shared.AddUser(t, false), connect(t, shared)
		code := p.code(p.begin().password(u.Username, u.Password))
		access := p.trade(code).want(t, http.StatusOK).json["access_token"].(string)
		p.trade(code).want(t, http.StatusBadRequest)
		p.with(access, "services").want(t, http.StatusUnauthorized)
	})
	t.Run("refresh token", func(t *testing.T) {
		u, p := shared.AddUser(t, false), connect(t, shared)
		_, first := p.enters(u.Username, u.Password)
		next := p.refresh(first, "refresh_token").want(t, http.StatusOK).json
		p.refresh(first, "refresh_token").want(t, http.StatusBadRequest)
		p.refresh(next["refresh_token"].(string), "refresh_token").want(t, http.StatusBadRequest)
		p.with(next["access_token"].(string), "services").want(t, http.StatusUnauthorized)
	})
	t.Run("login", func(t *testing.T) { // one login makes one session
		u, p := shared.AddUser(t, false), connect(t, shared)
		p.begin().password(u.Username, u.Password).want(t, http.StatusFound)
		p.password(u.Username, u.Password).want(t, http.StatusUnauthorized)
		if n := sessionsOf(u.ID); n != 1 {
			t.Errorf("there are %d sessions", n)
		}
	})
}

// TestOIDCStolen exchanges what somebody else could have got hold of.
func TestOIDCStolen(t *testing.T) {
	u, p := shared.AddUser(t, false), connect(t, shared)
	code := p.code(p.begin().password(u.Username, u.Password))
	turned := "A"
	if code[:1] == turned {
		turned = "B"
	}
	for name, change := range map[string][]string{
		"no verifier":      {"code_verifier", ""},
		"another verifier": {"code_verifier", strings.Repeat("x", 43)},
		"the challenge":    {"code_verifier", challenge(p.verifier)},
		"another client":   {"client_id", "openziti"},
		"another place":    {"redirect_uri", "http://localhost:8081/auth/callback"},
		"a changed code":   {"code", turned + code[1:]},
		"the login's id":   {"code", p.id},
	} {
		if said := p.trade(code, change...).want(t, http.StatusBadRequest).json; said["error"] != "invalid_grant" {
			t.Errorf("%s: %v", name, said)
		}
	}
	if said := p.trade(code, "client_id", "somebody").want(t, http.StatusUnauthorized).json; said["error"] != "invalid_client" {
		t.Errorf("an unknown client is told %v", said)
	}
	got := p.trade(code).want(t, http.StatusOK).json
	refresh := got["refresh_token"].(string)
	other := *p
	other.client = "openziti"
	other.refresh(refresh, "refresh_token").want(t, http.StatusBadRequest)
	cut := strings.Split(refresh, ".")
	p.refresh(cut[0]+".2."+cut[2], "refresh_token").want(t, http.StatusBadRequest)
	p.refresh(got["access_token"].(string), "refresh_token").want(t, http.StatusBadRequest)
	p.refresh(refresh, "refresh_token").want(t, http.StatusOK)
}

// TestOIDCRequests begins logins that are not to be.
func TestOIDCRequests(t *testing.T) {
	p := connect(t, shared)
	for name, change := range map[string][]string{
		"another client":       {"client_id", "somebody"},
		"another machine":      {"redirect_uri", "https://example.com/auth/callback"},
		"a name like ours":     {"redirect_uri", "http://localhost.example.com/auth/callback"},
		"a user in the place":  {"redirect_uri", "http://localhost@example.com/auth/callback"},
		"another path":         {"redirect_uri", "http://localhost:8080/elsewhere"},
		"a path in disguise":   {"redirect_uri", "http://localhost:8080/auth%2fcallback"},
		"an empty fragment":    {"redirect_uri", "http://localhost:8080/auth/callback#"},
		"a query in the place": {"redirect_uri", "http://localhost:8080/auth/callback?a=b"},
		"a script":             {"redirect_uri", "javascript:alert(1)"},
		"no place":             {"redirect_uri", ""},
		"no challenge":         {"code_challenge", ""},
		"a plain challenge":    {"code_challenge_method", "plain"},
		"a short challenge":    {"code_challenge", "abc"},
		"a token at once":      {"response_type", "token"},
		"a fragment":           {"response_mode", "fragment"},
		"a long state":         {"state", strings.Repeat("s", 1000)},
		"no question":          {"prompt", "none"},
		"a request object":     {"request", "e30.e30.x"},
		"no scope":             {"scope", ""},
	} {
		q := p.asks()
		q.Set(change[0], change[1])
		a := p.send("GET", "/oidc/authorize?"+q.Encode(), nil)
		if a.status != http.StatusBadRequest || a.header.Get("Location") != "" || a.json["error"] == nil {
			t.Errorf("%s: %d to %q: %s", name, a.status, a.header.Get("Location"), a.text)
		}
	}
	for _, id := range []string{"", "x", strings.Repeat("A", 300), strings.Repeat("A", 10_000)} {
		p.id = id
		p.password("nobody", "nothing").want(t, http.StatusUnauthorized)
		p.send("GET", "/oidc/login/username?authRequestID="+id, nil).want(t, http.StatusUnauthorized)
		p.send("GET", "/oidc/authorize/callback?id="+id, nil).want(t, http.StatusUnauthorized)
		p.send("POST", "/oidc/login/totp", url.Values{"id": {id}, "code": {"123456"}}).want(t, http.StatusUnauthorized)
	}
	p.begin()
	p.send("GET", "/oidc/authorize/callback?id="+p.id, nil).want(t, http.StatusUnauthorized) // nothing was shown
	p.send("POST", "/oidc/login/totp", url.Values{"id": {p.id}, "code": {"123456"}}).want(t, http.StatusUnauthorized)
	p.send("POST", "/oidc/login/smartcard", url.Values{"id": {p.id}}).want(t, http.StatusNotFound)
	p.send("POST", "/oidc/login/username", url.Values{"id": {p.id}, "password": {strings.Repeat("p", 70_000)}}).want(t, http.StatusRequestEntityTooLarge)
	p.send("DELETE", "/oidc/keys", nil).want(t, http.StatusMethodNotAllowed)
	p.send("POST", "/oidc/oauth/token?grant_type=refresh_token&client_id=native&refresh_token=x", url.Values{}).want(t, http.StatusBadRequest)
}

// TestOIDCCode asks for a second factor before there is a code: one that is enrolled,
// and one that is to be.
func TestOIDCCode(t *testing.T) {
	t.Run("enrolled", func(t *testing.T) {
		u, p := shared.AddUser(t, false), connect(t, shared)
		f := enroll(t, u.ID)
		a := p.begin().password(u.Username, u.Password).want(t, http.StatusOK)
		asked := a.json["authQueries"].([]any)[0].(M)
		if a.header.Get("totp-required") != "true" || asked["typeId"] != "TOTP" || asked["isTotpEnrolled"] != true {
			t.Errorf("the second factor is asked for so: %v %v", a.header, a.json)
		}
		again := p.send("GET", "/oidc/login/auth-queries?id="+p.id, nil).want(t, http.StatusOK)
		if again.text != a.text {
			t.Errorf("asked again it says %s", again.text)
		}
		p.send("POST", "/oidc/login/totp", url.Values{"id": {p.id}, "code": {"000000"}}).want(t, http.StatusBadRequest)
		done := p.send("POST", "/oidc/login/totp", url.Values{"id": {p.id}, "code": {f.code(t)}})
		access := p.trade(p.code(done)).want(t, http.StatusOK).json["access_token"].(string)
		p.with(access, "services").want(t, http.StatusOK)
		p.send("POST", "/oidc/login/totp", url.Values{"id": {p.id}, "code": {f.codes[0]}}).want(t, http.StatusUnauthorized)
	})
	t.Run("to be enrolled", func(t *testing.T) {
		policy := addPolicy(t, func(_, secondary M) { secondary["requireTotp"] = true })
		id := add(t, M{"authPolicyId": policy})
		username, _ := addPassword(t, id, "a long password")
		p := connect(t, shared)
		a := p.begin().password(username, "a long password").want(t, http.StatusOK)
		if asked := a.json["authQueries"].([]any)[0].(M); asked["isTotpEnrolled"] != false {
			t.Errorf("the second factor is asked for so: %v", a.json)
		}
		made := p.send("POST", "/oidc/login/totp/enroll", url.Values{"id": {p.id}}).want(t, http.StatusCreated).json
		at, err := url.Parse(made["provisioningUrl"].(string))
		if err != nil {
			t.Fatal(err)
		}
		f := &factor{id: id, secret: at.Query().Get("secret")}
		done := p.send("POST", "/oidc/login/totp/enroll/verify", url.Values{"id": {p.id}, "code": {f.code(t)}})
		p.with(p.trade(p.code(done)).want(t, http.StatusOK).json["access_token"].(string), "services").want(t, http.StatusOK)
	})
}

// TestOIDCOthers logs in with what is no password.
func TestOIDCOthers(t *testing.T) {
	id := add(t, nil)
	t.Run("token", func(t *testing.T) {
		p := connect(t, shared).begin()
		p.send("POST", "/oidc/login/ext-jwt", url.Values{"id": {p.id}}).want(t, http.StatusUnauthorized)
		done := p.send("POST", "/oidc/login/ext-jwt", url.Values{"id": {p.id}}, "Authorization", "Bearer "+house(t).token(t, M{"sub": id}))
		p.with(p.trade(p.code(done)).want(t, http.StatusOK).json["access_token"].(string), "services").want(t, http.StatusOK)
	})
	t.Run("wrong password", func(t *testing.T) {
		u, p := shared.AddUser(t, false), connect(t, shared).begin()
		p.password(u.Username, "wrong").want(t, http.StatusUnauthorized)
		if n := sessionsOf(u.ID); n != 0 {
			t.Errorf("there are %d sessions", n)
		}
		p.password(u.Username, u.Password).want(t, http.StatusFound)
	})
}

// TestOIDCForged shows what looks like an access token.
func TestOIDCForged(t *testing.T) {
	u, p := shared.AddUser(t, false), connect(t, shared)
	access, _ := p.enters(u.Username, u.Password)
	part := strings.Split(access, ".")
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	header, err := base64.RawURLEncoding.DecodeString(part[0])
	if err != nil {
		t.Fatal(err)
	}
	none := encode(strings.Replace(string(header), "ES256", "none", 1))
	for name, token := range map[string]string{
		"no signature":         part[0] + "." + part[1] + ".",
		"no algorithm":         none + "." + part[1] + ".",
		"another algorithm":    encode(strings.Replace(string(header), "ES256", "HS256", 1)) + "." + part[1] + "." + part[2],
		"another session":      part[0] + "." + encode(`{"iss":"`+p.at+`/oidc","aud":"openziti","exp":99999999999,"z_t":"a","z_asid":"x"}`) + "." + part[2],
		"of another signer":    house(t).token(t, M{"sub": u.ID, "z_t": "a", "z_asid": claims(t, access)["z_asid"], "iss": p.at + "/oidc", "aud": "openziti"}),
		"nothing but dots":     "..",
		"a session's own name": claims(t, access)["z_asid"].(string),
	} {
		if a := p.with(token, "services"); a.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, a.status, a.text)
		}
	}
	// Of two that say different things, neither counts.
	mine := shared.Login(t, u.Username, u.Password).Token
	p.send("GET", api.ClientRoot+"/services", nil, "Authorization", "Bearer "+access, "zt-session", mine).want(t, http.StatusUnauthorized)
	p.send("GET", api.ClientRoot+"/services", nil, "Authorization", "Bearer "+access, "Authorization", "Bearer "+access).want(t, http.StatusUnauthorized)
	p.with(access, "services").want(t, http.StatusOK)
}

// TestOIDCTells asks what is offered.
func TestOIDCTells(t *testing.T) {
	p := connect(t, shared)
	found := p.send("GET", "/oidc/.well-known/openid-configuration", nil).want(t, http.StatusOK).json
	if found["issuer"] != p.at+"/oidc" || found["token_endpoint"] != p.at+"/oidc/oauth/token" {
		t.Errorf("it offers %v", found)
	}
	keys := p.send("GET", "/oidc/keys", nil).want(t, http.StatusOK).json["keys"].([]any)
	if len(keys) == 0 || keys[0].(M)["alg"] != "ES256" || keys[0].(M)["d"] != nil {
		t.Errorf("the keys are %v", keys)
	}
	version := shared.Nobody(t).Get(api.ClientRoot + "/version").Want(http.StatusOK).Data()
	if said := version["capabilities"].([]any); len(said) != 1 || said[0] != "OIDC_AUTH" || version["apiVersions"].(M)["edge-oidc"] == nil {
		t.Errorf("the version says %v", version)
	}
}
