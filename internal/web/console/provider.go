package console

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/web/signon"
)

// awayName is the cookie of a browser whose person is logging in at a provider. The
// provider leads back from another site, where browsers keep strict cookies back.
const awayName = "__Host-netkeep-away"

// mostProviders is how many a login page offers.
const mostProviders = 20

// signerPrefix is what the authenticator of a session begins with that a token opened.
const signerPrefix = "extJwtId:"

// providers are those whom a stranger can log in with: enabled signers with an address
// to log in at and a name for us, as the Client API tells anybody, by which an admin
// could get in. Nobody else has a use for these pages.
func (v *visit) providers() []signon.Provider {
	all := slices.DeleteFunc(v.signers(url.Values{"sort": {"name"}, "limit": {"100"}}), func(p signon.Provider) bool { return !v.Admits(p.ID) })
	return all[:min(len(all), mostProviders)]
}

func (v *visit) signers(query url.Values) (all []signon.Provider) {
	if v.SignOn == nil {
		return nil
	}
	var page struct {
		Data []struct {
			ID       string   `json:"id"`
			Name     string   `json:"name"`
			URL      string   `json:"externalAuthUrl"`
			ClientID string   `json:"clientId"`
			Audience string   `json:"audience"`
			Scopes   []string `json:"scopes"`
			Target   string   `json:"targetToken"`
		} `json:"data"`
	}
	a, err := v.ask(request{method: http.MethodGet, path: v.ClientRoot + "/external-jwt-signers", query: query})
	if err != nil || a.read(&page) != nil {
		return nil // there are other ways in
	}
	for _, s := range page.Data {
		p := signon.Provider{ID: s.ID, Name: s.Name, URL: s.URL, ClientID: s.ClientID, Audience: s.Audience, Scopes: s.Scopes, UseID: s.Target == "ID"}
		if p.Usable() {
			all = append(all, p)
		}
	}
	return all
}

// providerOf is the provider with an id. One that opens no session may give a token that
// a session asks for.
func (v *visit) providerOf(id string, factor bool) (signon.Provider, bool) {
	if all := v.signers(url.Values{"filter": {"id = " + quote(id)}}); len(all) == 1 && (factor || v.Admits(id)) {
		return all[0], true
	}
	return signon.Provider{}, false
}

// provider sends a person to an identity provider, and lets in who comes back from it.
func (v *visit) provider() {
	switch {
	case v.SignOn == nil:
		v.missing()
	case v.r.Method == http.MethodPost:
		v.toProvider()
	case v.r.Method == http.MethodGet && v.r.URL.RawQuery != "":
		v.fromProvider()
	default:
		http.Redirect(v.w, v.r, Root+"login", http.StatusSeeOther)
	}
}

// maxNext is how long an address may be that somebody is led to after all.
const maxNext = 1024

func (v *visit) toProvider() {
	if !v.receive(strangerForm) {
		return
	}
	in := entry{Next: v.form.Get("next")}
	next := within(in.Next)
	if len(next) > maxNext {
		next = Root
	}
	factor := v.form.Has("factor")
	if factor && !v.mayAsk(v.form.Get("signer")) {
		in.Problem = "The page was of another session, or nothing more is asked for. Log in again."
		v.loginPage(http.StatusForbidden, in)
		return
	}
	p, ok := v.providerOf(v.form.Get("signer"), factor)
	if !ok {
		in.Problem = "Nobody can log in like that any more."
		v.loginPage(http.StatusNotFound, in)
		return
	}
	var to, sealed string
	err := v.away(func(ctx context.Context) (err error) {
		to, sealed, err = v.SignOn.Begin(ctx, p, "https://"+v.r.Host+Root+"provider", signon.Errand{Next: next, Aside: v.form.Has("aside"), Factor: factor})
		return err
	})
	if err != nil {
		v.notBack(p, err, in)
		return
	}
	v.setAway(sealed)
	v.show(http.StatusOK, "away", page{Title: "One moment", Bare: true, Body: awayView{Head: "One moment", Text: "You log in with " + p.Name + ".", To: to, Link: "Go there"}})
}

// awayView is a page that leads on by itself.
type awayView struct{ Head, Text, To, Link string }

// away does something that depends on a provider: few at once may wait for one.
func (v *visit) away(do func(context.Context) error) error {
	from, _ := netip.ParseAddrPort(v.r.RemoteAddr)
	party := limit.At(from.Addr())
	if err := v.Away.Take(party); err != nil {
		return err
	}
	defer v.Away.Leave(party)
	return do(v.r.Context())
}

// setAway has the browser remember that its person logs in elsewhere, or forget it.
func (v *visit) setAway(sealed string) {
	cookie := &http.Cookie{Name: awayName, Value: sealed, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(signon.Lasts.Seconds())}
	if sealed == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(v.w, cookie)
}

// fromProvider lets in who comes back, if it began here.
func (v *visit) fromProvider() {
	answer, sealed := v.r.URL.Query(), ""
	if cookie, err := v.r.Cookie(awayName); err == nil {
		sealed = cookie.Value
	}
	t, err := v.SignOn.Open(sealed, answer)
	if err != nil && !errors.Is(err, signon.ErrOver) {
		// The login that this browser began, if it did, goes on.
		v.notBack(signon.Provider{}, err, entry{})
		return
	}
	v.setAway("") // it counts once
	in := entry{Next: t.Next}
	p, ok := v.providerOf(t.Signer, t.Factor)
	if !ok {
		in.Problem = "Nobody can log in like that any more."
		v.loginPage(http.StatusNotFound, in)
		return
	}
	var token string
	if err == nil {
		err = v.away(func(ctx context.Context) (err error) {
			token, err = v.SignOn.Finish(ctx, p, t, answer)
			return err
		})
	}
	if err != nil {
		v.notBack(p, err, in)
		return
	}
	if t.Factor {
		v.keepFactor(p, t, token, in)
		return
	}
	v.admit(p, t, token, in)
}

// admit opens a session with what a provider gave, as anybody could who has it.
func (v *visit) admit(p signon.Provider, t signon.Ticket, token string, in entry) {
	a, err := v.ask(request{method: http.MethodPost, path: v.ManagementRoot + "/authenticate", query: url.Values{"method": {"ext-jwt"}}, body: struct{}{}, bearer: token})
	var f *failure
	var now current
	switch {
	case errors.As(err, &f):
		in.Problem = refusal(f)
		if f.status == http.StatusUnauthorized {
			in.Problem = p.Name + " knows you, and this network does not let you in with it."
		}
		v.loginPage(f.status, in)
		return
	case err != nil:
		v.fail(err)
		return
	}
	if err := a.data(&now); err != nil {
		v.fail(err)
		return
	}
	v.token, v.person = now.Token, now.Identity.Name
	if now.Authenticator != signerPrefix+p.ID { // the token is of somebody else than who was asked
		_, _ = v.ask(request{method: http.MethodDelete, path: v.ManagementRoot + "/current-api-session"})
		v.token, v.person = "", ""
		v.notBack(p, signon.ErrForged, in)
		return
	}
	v.setCookie(now.Token)
	v.setFactor("")
	if len(now.Queries) > 0 {
		v.codePage(http.StatusOK, in)
		return
	}
	v.goOn(t)
}

// goOn leads on who came back from a provider.
func (v *visit) goOn(t signon.Ticket) {
	if t.Aside {
		v.show(http.StatusOK, "away", page{Title: "You are logged in", Bare: true, Body: awayView{Head: "You are logged in", Text: "Close this tab, and go on with what you typed in the other one."}})
		return
	}
	// A redirect would still be one by the other site, and the cookie not be sent.
	v.show(http.StatusOK, "away", page{Title: "One moment", Bare: true, Body: awayView{Head: "One moment", Text: "You are logged in.", To: within(t.Next), Link: "Go on to the console"}})
}

// notBack says why a login at a provider came to nothing.
func (v *visit) notBack(p signon.Provider, err error, in entry) {
	status := http.StatusBadGateway
	switch {
	case errors.Is(err, signon.ErrForged):
		status, in.Problem = http.StatusForbidden, "This does not belong to a login that began in this browser. Nothing was done: log in again."
	case errors.Is(err, signon.ErrOver):
		status, in.Problem = http.StatusForbidden, "That took too long. Log in again."
	case errors.Is(err, signon.ErrDeclined):
		status, in.Problem = http.StatusUnauthorized, p.Name+" did not let you in."
	case errors.Is(err, limit.ErrFull), errors.Is(err, limit.ErrShare):
		status, in.Problem = http.StatusServiceUnavailable, "Too many people log in like this at the moment. Try again."
		v.w.Header().Set("Retry-After", "5")
	case errors.Is(err, signon.ErrProvider):
		in.Problem = p.Name + " does not answer as an identity provider should. Log in another way, and tell who looks after it."
	default:
		in.Problem = p.Name + " cannot be reached, or not in time. Try again, or log in another way."
	}
	if status == http.StatusBadGateway {
		v.Log.Warn("a login at an identity provider failed", "signer", p.Name, "error", err)
	}
	v.loginPage(status, in)
}

// resume goes on with a form for somebody who has logged in beside it.
func (v *visit) resume(in entry) {
	now, err := v.recognise()
	switch {
	case err != nil:
		v.fail(err)
	case now == nil:
		in.Problem = "You are not logged in yet."
		v.loginPage(http.StatusUnauthorized, in)
	case len(now.Queries) > 0:
		v.codePage(http.StatusUnauthorized, in)
	default:
		v.enter(in)
	}
}
