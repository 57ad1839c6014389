package console

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/servertest"
)

const cookieName = "__Host-netkeep"

// cookie is the one that an answer sets.
func cookie(a *http.Response) *http.Cookie {
	for _, c := range a.Cookies() {
		if c.Name == cookieName {
			return c
		}
	}
	return nil
}

// held is the session that a browser has.
func (b *browser) held() string {
	u, _ := url.Parse(b.at)
	for _, c := range b.http.Jar.Cookies(u) {
		if c.Name == cookieName {
			return c.Value
		}
	}
	return ""
}

// hold gives a browser a session.
func (b *browser) hold(token string) {
	u, _ := url.Parse(b.at)
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: cookieName, Value: token, Path: "/", Secure: true}})
}

func TestLogin(t *testing.T) {
	b := open(t, controller)
	if a := b.get("/console/identities?filter=x").is(http.StatusUnauthorized); !a.says(`value="/console/identities?filter=x"`) {
		t.Errorf("the login does not lead back: %s", a.body)
	}
	if a := b.login(servertest.Username, "not the password").is(http.StatusUnauthorized); !a.says("That is not right") || b.held() != "" {
		t.Errorf("a wrong password is answered with %s", a.body)
	}
	b.login("", "").is(http.StatusBadRequest)
	once := *b.http
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	b.http = &once
	a := b.post("/console/login", url.Values{"username": {servertest.Username}, "password": {servertest.Password}, "next": {"/console/identities?filter=x"}}).is(http.StatusSeeOther)
	if to := a.Header.Get("Location"); to != "/console/identities?filter=x" {
		t.Errorf("the login leads to %q", to)
	}
	c := cookie(a.Response)
	if c == nil || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 {
		t.Errorf("the cookie is %v", c)
	}
	b.get("/console/").is(http.StatusOK)
	token := b.held()
	controller.Nobody(t).With("net-session", token).Get("current-api-session").Want(http.StatusOK)

	// Who sends no token of a form is not logged out by anybody else.
	b.post("/console/logout", url.Values{}).is(http.StatusForbidden)
	_, form := b.get("/console/identities/new").form(t)
	b.post("/console/logout", url.Values{"token": form["token"]}).is(http.StatusSeeOther)
	controller.Nobody(t).With("net-session", token).Get("current-api-session").Want(http.StatusUnauthorized)
	b.get("/console/").is(http.StatusUnauthorized)
}

// TestLoginLeadsNowhereElse gives the login addresses of others to lead to.
func TestLoginLeadsNowhereElse(t *testing.T) {
	for _, next := range []string{
		"https://evil.example/console/", "//evil.example/console/", `/\evil.example/console/`, `\\evil.example`, "/console/../edge/management/v1/", "/console/../../evil",
		"javascript:alert(1)", "/edge/client/v1/version", "/console/login", "/console/logout", "", "/consolex", "/console/%2e%2e/x\r\nSet-Cookie: a=b", "https:/console/", "/console\t/", "?x", "data:text/html,x",
	} {
		b := open(t, controller)
		once := *b.http
		once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		b.http = &once
		a := b.post("/console/login", url.Values{"username": {servertest.Username}, "password": {servertest.Password}, "next": {next}})
		if to := a.Header.Get("Location"); a.StatusCode != http.StatusSeeOther || to != "/console/" {
			t.Errorf("%q leads to %q (%d)", next, to, a.StatusCode)
		}
		if a.Header.Values("Set-Cookie")[0][:len(cookieName)] != cookieName || len(a.Header.Values("Set-Cookie")) != 1 {
			t.Errorf("%q sets %q", next, a.Header.Values("Set-Cookie"))
		}
	}
}

// TestNotAnAdmin logs somebody in who may not manage the network.
func TestNotAnAdmin(t *testing.T) {
	u := controller.AddUser(t, false)
	b := open(t, controller)
	if a := b.login(u.Username, u.Password).is(http.StatusForbidden); !a.says("Not for you") || !a.says(u.Username) {
		t.Errorf("the page is %s", a.body)
	}
	for _, path := range []string{"/console/identities", "/console/identities/new", "/console/audit-entries"} {
		if a := b.get(path); a.StatusCode == http.StatusOK && a.says("<td>") {
			t.Errorf("%s shows something: %s", path, a.body)
		}
	}
}

// TestFirstVisitByLink comes from another site, where browsers keep the cookie back.
func TestFirstVisitByLink(t *testing.T) {
	b := open(t, controller)
	a := b.get("/console/identities?sort=name", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate").is(http.StatusOK)
	if !a.says(`<meta http-equiv="refresh" content="0; url=/console/identities?sort=name">`) {
		t.Errorf("the page does not go on by itself: %s", a.body)
	}
	b.get("/console/identities?sort=name", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "navigate").is(http.StatusUnauthorized)
}

// TestSessionThatEnded ends a session while a form is filled in: the form comes back
// with what was typed, except for secrets.
func TestSessionThatEnded(t *testing.T) {
	b := admin(t, controller)
	name := servertest.Unique("kept")
	action, form := b.get("/console/services/new").form(t)
	form.Set("f.name", name)
	form.Set("f.roleAttributes", "one\ntwo <b>")
	b.post("/console/logout", url.Values{"token": form["token"]})
	b.hold("00000000-0000-0000-0000-000000000000")
	a := b.post(action, form).is(http.StatusUnauthorized)
	if !a.says("Your session has ended") {
		t.Fatalf("the page is %s", a.body)
	}
	login := url.Values{"username": {servertest.Username}, "password": {servertest.Password}}
	for _, tag := range inputTag.FindAllString(a.body, -1) {
		if m := map[string]string{}; strings.Contains(tag, `type="hidden"`) {
			for _, at := range attribute.FindAllStringSubmatch(tag, -1) {
				m[at[1]] = at[2]
			}
			login.Set(m["name"], unescaped(m["value"]))
		}
	}
	a = b.post("/console/login", login).is(http.StatusOK)
	action, form = a.form(t)
	if form.Get("f.name") != name || form.Get("f.roleAttributes") != "one\ntwo <b>" || !a.says("You are logged in again") {
		t.Fatalf("the form is %v in %s", form, a.body)
	}
	b.post(action, form).is(http.StatusOK)
	if got := controller.Admin(t).Get("services?filter=" + url.QueryEscape(`name="`+name+`"`)).List(); len(got) != 1 {
		t.Errorf("it was not saved: %v", got)
	}

	// A password that was typed is not kept.
	action, form = b.get("/console/authenticators/new").form(t)
	form.Set("f.password", "a very secret word")
	b.hold("00000000-0000-0000-0000-000000000000")
	if a := b.post(action, form).is(http.StatusUnauthorized); a.says("a very secret word") {
		t.Errorf("a password was shown again: %s", a.body)
	}
}

// TestFormOfAnotherSession sends a form that was opened before somebody logged in anew:
// it is shown again and not carried out.
func TestFormOfAnotherSession(t *testing.T) {
	b := admin(t, controller)
	name := servertest.Unique("other")
	action, form := b.get("/console/services/new").form(t)
	form.Set("f.name", name)
	for _, token := range []string{"", "x", strings.Repeat("A", 43)} {
		form.Set("token", token)
		if _, again := b.post(action, form).is(http.StatusOK).form(t); again.Get("f.name") != name {
			t.Errorf("what was typed is lost: %v", again)
		}
	}
	if n := controller.Admin(t).Get("services?filter=" + url.QueryEscape(`name="`+name+`"`)).Total(); n != 0 {
		t.Errorf("%d services were made by forms of nobody", n)
	}
}

// TestOtherSites has other sites send forms, with everything that they could know.
func TestOtherSites(t *testing.T) {
	b := admin(t, controller)
	action, form := b.get("/console/services/new").form(t)
	host := strings.TrimPrefix(b.at, "https://")
	for what, header := range map[string][]string{
		"another site":           {"Sec-Fetch-Site", "cross-site"},
		"another port":           {"Sec-Fetch-Site", "same-site"},
		"nowhere":                {"Sec-Fetch-Site", "none"},
		"an older browser":       {"Sec-Fetch-Site", "", "Origin", "https://evil.example"},
		"a frame in a sandbox":   {"Sec-Fetch-Site", "", "Origin", "null"},
		"something that is mute": {"Sec-Fetch-Site", "", "Origin", ""},
		"without TLS":            {"Sec-Fetch-Site", "", "Origin", "http://" + host},
		"another port, older":    {"Sec-Fetch-Site", "", "Origin", "https://" + strings.Split(host, ":")[0] + ":1"},
	} {
		name := servertest.Unique("forged")
		form.Set("f.name", name)
		b.post(action, form, header...).is(http.StatusForbidden)
		b.post("/console/login", url.Values{"username": {servertest.Username}, "password": {servertest.Password}}, header...).is(http.StatusForbidden)
		if n := controller.Admin(t).Get("services?filter=" + url.QueryEscape(`name="`+name+`"`)).Total(); n != 0 {
			t.Errorf("%s made a service", what)
		}
	}
	form.Set("f.name", servertest.Unique("older"))
	b.post(action, form, "Sec-Fetch-Site", "", "Origin", b.at).is(http.StatusOK)
}

// TestAnotherController takes the cookie of one network to another, and that of one
// session to nobody.
func TestAnotherController(t *testing.T) {
	other := servertest.Start(t)
	b := admin(t, controller)
	token := b.held()
	there := open(t, other)
	for _, cookie := range []string{token, "", "x", strings.Repeat("a", 8000), "00000000-0000-0000-0000-000000000000", "../..", `"`} {
		there.hold(cookie)
		there.get("/console/identities").is(http.StatusUnauthorized)
	}
	b.get("/console/identities").is(http.StatusOK)
}

// TestLoginAttempts guesses as fast as it can: the bound of the API holds here too.
func TestLoginAttempts(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Limits.Logins = 5 })
	b := open(t, s)
	refused := 0
	for range 20 {
		switch a := b.login("somebody", "a wrong password"); a.StatusCode {
		case http.StatusUnauthorized:
		case http.StatusTooManyRequests:
			refused++
		default:
			t.Fatalf("a guess is answered with %s", a.Status)
		}
	}
	if refused < 10 {
		t.Errorf("%d of 20 guesses were turned away", refused)
	}
}

// TestOneTimeCode logs in somebody who has a second factor.
func TestOneTimeCode(t *testing.T) {
	u := controller.AddUser(t, true)
	c := controller.Login(t, u.Username, u.Password)
	c.Post("current-identity/mfa", nil).Want(http.StatusCreated)
	codes := c.Get("current-identity/mfa").Want(http.StatusOK)
	recovery, _ := codes.At("data.recoveryCodes.0").(string)
	c.Post("current-identity/mfa/verify", servertest.M{"code": totp(t, codes.At("data.provisioningUrl").(string))}).Want(http.StatusOK)

	b := open(t, controller)
	a := b.login(u.Username, u.Password).is(http.StatusOK)
	if !a.says("One-time code") {
		t.Fatalf("no code is asked for: %s", a.body)
	}
	b.get("/console/identities").is(http.StatusUnauthorized)
	token := regexpToken.FindStringSubmatch(a.body)[1]
	b.post("/console/code", url.Values{"code": {recovery}}).is(http.StatusForbidden)
	b.post("/console/code", url.Values{"code": {"000000"}, "token": {token}}).is(http.StatusBadRequest)
	if a := b.post("/console/code", url.Values{"code": {recovery}, "token": {token}, "next": {"/console/services"}}).is(http.StatusOK); a.path != "/console/services" {
		t.Errorf("the code leads to %s", a.path)
	}
	b.get("/console/identities").is(http.StatusOK)
}

// TestCertificate logs in with what the browser shows on the connection.
func TestCertificate(t *testing.T) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	cert := certificateOf(t, controller)
	config := controller.TLS()
	config.Certificates = append(config.Certificates, cert)
	b := visitor(t, controller, jar, config)
	if a := b.get("/console/login").is(http.StatusOK); !a.says("Log in with the certificate") {
		t.Fatalf("the certificate is not offered: %s", a.body)
	}
	b.post("/console/login", url.Values{"certificate": {"yes"}}).is(http.StatusOK)
	b.get("/console/identities").is(http.StatusOK)
	if a := open(t, controller).get("/console/login").is(http.StatusOK); a.says("certificate") {
		t.Errorf("a certificate is offered that nobody showed: %s", a.body)
	}
}

// TestLargeFormOfSessionThatEnded keeps as much as a person types, and says what to do
// about more.
func TestLargeFormOfSessionThatEnded(t *testing.T) {
	b := admin(t, controller)
	action, form := b.get("/console/services/new").form(t)
	b.hold("00000000-0000-0000-0000-000000000000")
	text := strings.Repeat("abcdefghi\n", 20_000)
	form.Set("f.roleAttributes", text)
	a := b.post(action, form).is(http.StatusUnauthorized)
	login := url.Values{"username": {servertest.Username}, "password": {servertest.Password}}
	for _, tag := range inputTag.FindAllString(a.body, -1) {
		m := map[string]string{}
		for _, at := range attribute.FindAllStringSubmatch(tag, -1) {
			m[at[1]] = unescaped(at[2])
		}
		if m["type"] == "hidden" {
			login.Set(m["name"], m["value"])
		}
	}
	delete(login, "resume")
	if _, again := b.post("/console/login", login).is(http.StatusOK).form(t); again.Get("f.roleAttributes") != text {
		t.Error("what was typed is lost")
	}
	b.hold("00000000-0000-0000-0000-000000000000")
	form.Set("f.roleAttributes", text+text)
	if a := b.post(action, form).is(http.StatusRequestEntityTooLarge); !a.says("Log in in another tab") {
		t.Errorf("the page is %s", a.body)
	}
	// Logged in in another tab, the same form comes back whole.
	b.login(servertest.Username, servertest.Password).is(http.StatusOK)
	if _, again := b.post(action, form).is(http.StatusOK).form(t); again.Get("f.roleAttributes") != text+text {
		t.Error("what was typed is lost")
	}
}
