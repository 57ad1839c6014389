package console

import (
	"net/http"
	"strings"

	"netkeep.internal/internal/web/signon"
)

// factorName is the cookie of a token that every request of a session has to carry, where
// an authentication policy asks for one of a signer beside what opened the session.
const factorName = "__Host-netkeep-factor"

// maxFactor is how long a token may be: browsers keep no larger cookies.
const maxFactor = 3900

// authQuery is something that a session asks for before it is whole.
type authQuery struct {
	Type   string `json:"typeId"`
	Signer string `json:"id"`
}

// factor is the token that the browser has; empty for none, or for what can be none.
func (v *visit) factor() string {
	cookie, err := v.r.Cookie(factorName)
	if err != nil || v.anew || len(cookie.Value) > maxFactor || strings.ContainsAny(cookie.Value, " \t,") {
		return ""
	}
	return cookie.Value
}

// setFactor has the browser keep a token until it is closed, or forget it.
func (v *visit) setFactor(token string) {
	v.anew = true
	if _, err := v.r.Cookie(factorName); err != nil && token == "" {
		return
	}
	cookie := &http.Cookie{Name: factorName, Value: token, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if token == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(v.w, cookie)
}

// asksToken is the signer of which the session asks for a token; empty if it asks for
// none, or for a code first.
func (v *visit) asksToken() (signer string) {
	var now current
	if err := v.get(v.ManagementRoot+"/current-api-session", nil, &now); err != nil {
		return ""
	}
	for _, q := range now.Queries {
		switch q.Type {
		case "MFA":
			return ""
		case "EXT-JWT":
			signer = q.Signer
		}
	}
	return signer
}

// tokenPage sends somebody to the provider of the token that its session asks for.
func (v *visit) tokenPage(status int, in entry, signer string) {
	in.Token = true
	if p, ok := v.providerOf(signer, true); ok {
		in.Providers = []signon.Provider{p}
	}
	v.show(status, "code", page{Title: "One more login", Body: in, Bare: true})
}

// mayAsk reports whether the form is of a session that asks for a token of a signer.
func (v *visit) mayAsk(signer string) bool {
	now, err := v.recognise()
	return err == nil && now != nil && v.ours() && v.asksToken() == signer
}

// keepFactor has the browser keep the token that a provider gave. Whether it is good, and
// of whom, the APIs judge at every request: it opens no session.
func (v *visit) keepFactor(p signon.Provider, t signon.Ticket, token string, in entry) {
	if len(token) > maxFactor {
		in.Problem = p.Name + " gave a token that is too long for a browser to keep. Use the command line, and have the provider put less into its tokens."
		v.loginPage(http.StatusBadGateway, in)
		return
	}
	v.setFactor(token)
	v.goOn(t)
}
