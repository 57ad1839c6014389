package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

const factorName = "__Host-netkeep-factor"

// asking returns a provider of whom a policy asks its person for a token, beside a
// password, and what the person logs in with.
func asking(t *testing.T, change M) (p *provider, password string) {
	t.Helper()
	p = newProvider(t, controller, change)
	c := controller.Admin(t)
	policy := c.Post("auth-policies", M{
		"name": servertest.Unique("asks"), "primary": M{
			"cert":   M{"allowed": true, "allowExpiredCerts": false},
			"updb":   M{"allowed": true, "minPasswordLength": 5, "requireSpecialChar": false, "requireNumberChar": false, "requireMixedCase": false, "maxAttempts": 0, "lockoutDurationMinutes": 0},
			"extJwt": M{"allowed": false, "allowedSigners": []any{}},
		},
		"secondary": M{"requireTotp": false, "requireExtJwtSigner": p.signer},
	}).Want(http.StatusCreated).ID()
	password = servertest.Unique("password")
	c.Post("authenticators", M{"method": "updb", "identityId": p.identity, "username": p.name, "password": password}).Want(http.StatusCreated)
	c.Patch("identities/"+p.identity, M{"authPolicyId": policy}).Want(http.StatusOK)
	t.Cleanup(func() {
		c := controller.Admin(t)
		c.Patch("identities/"+p.identity, M{"authPolicyId": "default"}).Want(http.StatusOK)
		c.Delete("auth-policies/" + policy).Want(http.StatusOK)
	})
	return p, password
}

// asked is the form that leads to the provider of whom a token is asked for.
func (a *answer) asked(t testing.TB) url.Values {
	t.Helper()
	_, form, found := strings.Cut(a.body, `<form action="/console/provider"`)
	if !found {
		t.Fatalf("%s asks for no token: %s", a.path, a.body)
	}
	form, _, _ = strings.Cut(form, "</form>")
	in := url.Values{}
	for _, tag := range inputTag.FindAllString(form, -1) {
		attributes := map[string]string{}
		for _, m := range attribute.FindAllStringSubmatch(tag, -1) {
			attributes[m[1]] = unescaped(m[2])
		}
		in.Set(attributes["name"], attributes["value"])
	}
	return in
}

// TestTokenFactor logs in with a password where a policy asks for a token of a signer with
// every request: the provider gives it, and the browser keeps it.
func TestTokenFactor(t *testing.T) {
	p, password := asking(t, nil)
	b := open(t, controller)
	form := b.login(p.name, password).is(http.StatusOK).asked(t)
	b.get("/console/services").is(http.StatusUnauthorized)
	answer := p.visit(b.post("/console/provider", form).is(http.StatusOK).leadsTo())
	a := b.back(answer).is(http.StatusOK)
	if next := a.leadsTo(); next.String() != "/console/" {
		t.Errorf("the login leads to %s", next)
	}
	token := b.keeps(factorName)
	for _, c := range a.Response.Cookies() {
		if c.Name == factorName && (!c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode) {
			t.Errorf("the cookie is %v", c)
		}
	}
	b.get("/console/services").is(http.StatusOK)
	if controller.Logged(token) || token == "" {
		t.Errorf("the token is %q, or was logged", token)
	}

	// Without it the session is worth nothing, and neither is it without the session.
	session := b.held()
	other := open(t, controller)
	other.hold(session)
	other.get("/console/services").is(http.StatusUnauthorized)
	third := open(t, controller)
	third.keep(factorName, token)
	if a := third.get("/console/services").is(http.StatusUnauthorized); a.says(p.name) {
		t.Errorf("the token alone opens %s", a.body)
	}

	// A login asks anew, and a logout forgets.
	if a := b.login(p.name, password).is(http.StatusOK); !a.says("Log in with ") || b.keeps(factorName) != "" {
		t.Errorf("the next login has %q: %s", b.keeps(factorName), a.body)
	}
}

// TestTokenFactorOfOthers is not taken for that of the person, and begins in no other
// browser and for no signer that is not asked for.
func TestTokenFactorOfOthers(t *testing.T) {
	p, password := asking(t, nil)
	stranger, _ := asking(t, nil)
	b := open(t, controller)
	form := b.login(p.name, password).is(http.StatusOK).asked(t)
	for what, change := range map[string]url.Values{
		"another signer": {"signer": {stranger.signer}}, "no session's form": {"token": {""}}, "a session's form of before": {"token": {strings.Repeat("0", 64)}},
	} {
		wrong := url.Values{}
		for name, values := range form {
			wrong[name] = values
		}
		for name, values := range change {
			wrong[name] = values
		}
		if b.post("/console/provider", wrong).is(http.StatusForbidden); b.keeps(awayName) != "" {
			t.Errorf("%s begins a login", what)
		}
	}
	open(t, controller).post("/console/provider", form).is(http.StatusForbidden)

	// The provider takes the browser for somebody else.
	own := p.name
	p.name = stranger.name
	b.back(p.visit(b.post("/console/provider", form).is(http.StatusOK).leadsTo())).is(http.StatusOK)
	p.name = own
	if a := b.get("/console/services").is(http.StatusUnauthorized); !a.says("Log in with ") {
		t.Errorf("the token of somebody else leads to %s", a.body)
	}
	if b.hold(""); b.get("/console/services").is(http.StatusUnauthorized).says(stranger.name) {
		t.Error("it opens a session")
	}
}

// TestTokenFactorNowhere says so where a signer does not tell where to log in.
func TestTokenFactorNowhere(t *testing.T) {
	p, password := asking(t, M{"clientId": nil})
	if a := open(t, controller).login(p.name, password).is(http.StatusOK); !a.says("does not say where to log in") || a.says("One-time code") {
		t.Errorf("the page is %s", a.body)
	}
}
