package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"netkeep.internal/internal/web/signon"
)

// entry is what the pages show by which somebody gets in.
type entry struct {
	Next        string
	Username    string
	Certificate string // whom the certificate that the browser shows is made out to
	Problem     string
	Kept        []keptInput
	NoFactor    bool // a code is asked for, and there is nothing that makes one
	Token       bool // a token of a signer is asked for, and no code
	Providers   []signon.Provider
}

// keptInput is something that was typed before the session ended.
type keptInput struct{ Name, Value string }

// keptPrefix is what the names of such inputs begin with.
const keptPrefix = "kept."

// login lets somebody in.
func (v *visit) login() {
	if v.r.Method != http.MethodPost {
		now, err := v.recognise()
		switch {
		case err != nil:
			v.fail(err)
		case now != nil && len(now.Queries) == 0:
			http.Redirect(v.w, v.r, within(v.r.URL.Query().Get("next")), http.StatusSeeOther)
		default:
			v.loginPage(http.StatusOK, entry{Next: v.r.URL.Query().Get("next")})
		}
		return
	}
	if !v.receive(strangerForm) {
		return
	}
	in := entry{Next: v.form.Get("next"), Username: v.form.Get("username"), Kept: v.kept()}
	if v.form.Has("resume") {
		v.resume(in)
		return
	}
	a, err := v.ask(v.credentials(in.Username))
	var f *failure
	switch {
	case errors.As(err, &f):
		in.Problem = refusal(f)
		if f.status == http.StatusTooManyRequests {
			v.w.Header().Set("Retry-After", "5")
		}
		v.loginPage(f.status, in)
		return
	case err != nil:
		v.fail(err)
		return
	}
	var now current
	if err := a.data(&now); err != nil {
		v.fail(err)
		return
	}
	v.token, v.person = now.Token, now.Identity.Name
	v.setCookie(now.Token)
	v.setFactor("") // one of before may be somebody else's
	if len(now.Queries) > 0 {
		v.codePage(http.StatusOK, in)
		return
	}
	v.enter(in)
}

// credentials is how the visitor shows who it is.
func (v *visit) credentials(username string) request {
	q := request{method: http.MethodPost, path: v.ManagementRoot + "/authenticate", body: struct{}{}}
	if v.form.Has("certificate") {
		q.query = url.Values{"method": {"cert"}}
		return q
	}
	q.query = url.Values{"method": {"password"}}
	q.body = map[string]string{"username": username, "password": v.form.Get("password")}
	return q
}

// refusal says why somebody is not let in, and not more than the API does.
func refusal(f *failure) string {
	switch f.status {
	case http.StatusBadRequest:
		return "Give a user name and its password."
	case http.StatusUnauthorized:
		return "That is not right, or not allowed. Nobody is told which."
	}
	return f.says()
}

// enter leads on who is in, to a form as it was if one was being filled in.
func (v *visit) enter(in entry) {
	next := within(in.Next)
	if len(in.Kept) == 0 {
		http.Redirect(v.w, v.r, next, http.StatusSeeOther)
		return
	}
	v.form = url.Values{}
	for _, k := range in.Kept {
		v.form.Add(strings.TrimPrefix(k.Name, keptPrefix), k.Value)
	}
	u, _ := url.Parse(next)
	parts := strings.Split(strings.TrimPrefix(u.Path, Root), "/")
	if d := v.kindAt(parts[0]); d != nil {
		of := resource{v.Console, d}
		switch {
		case len(parts) == 2 && parts[1] == "new":
			v.createAgain(of, "You are logged in again. Nothing was saved yet: look it through and save.")
			return
		case len(parts) == 3 && parts[2] == "edit":
			v.editAgain(of, parts[1], "You are logged in again. Nothing was saved yet: look it through and save.")
			return
		}
	}
	if len(parts) == 1 && parts[0] == "invite" {
		v.inviteAgain("You are logged in again. Nothing was saved yet: look it through and save.")
		return
	}
	http.Redirect(v.w, v.r, next, http.StatusSeeOther)
}

// code asks for what a session lacks.
func (v *visit) code() {
	now, err := v.recognise()
	switch {
	case err != nil:
		v.fail(err)
		return
	case now == nil && v.r.Method == http.MethodPost:
		v.loginAgain()
		return
	case now == nil:
		v.loginPage(http.StatusUnauthorized, entry{})
		return
	case v.r.Method != http.MethodPost:
		v.codePage(http.StatusOK, entry{Next: v.r.URL.Query().Get("next")})
		return
	}
	if !v.receive(strangerForm) {
		return
	}
	in := entry{Next: v.form.Get("next"), Kept: v.kept()}
	if !v.ours() {
		in.Problem = "The page was of another session. Give the code again."
		v.codePage(http.StatusForbidden, in)
		return
	}
	_, err = v.ask(request{method: http.MethodPost, path: v.ManagementRoot + "/authenticate/mfa", body: map[string]string{"code": strings.TrimSpace(v.form.Get("code"))}})
	var f *failure
	switch {
	case errors.As(err, &f):
		in.Problem = f.says()
		v.codePage(f.status, in)
	case err != nil:
		v.fail(err)
	default:
		v.enter(in)
	}
}

// logout ends the session, here and everywhere.
func (v *visit) logout() {
	if v.r.Method != http.MethodPost {
		http.Redirect(v.w, v.r, Root, http.StatusSeeOther)
		return
	}
	now, err := v.recognise()
	if err != nil {
		v.fail(err)
		return
	}
	if now != nil {
		if !v.receive(strangerForm) {
			return
		}
		if !v.ours() {
			v.refuse(http.StatusForbidden, "This page is of another session", "You are still logged in. Open the console again and log out there.")
			return
		}
		if _, err := v.ask(request{method: http.MethodDelete, path: v.ManagementRoot + "/current-api-session"}); err != nil {
			v.fail(err)
			return
		}
	}
	v.setCookie("")
	v.setFactor("")
	http.Redirect(v.w, v.r, Root+"login", http.StatusSeeOther)
}

// loginPage asks who somebody is.
func (v *visit) loginPage(status int, in entry) {
	if v.r.TLS != nil && len(v.r.TLS.PeerCertificates) > 0 {
		in.Certificate = v.r.TLS.PeerCertificates[0].Subject.CommonName
		if in.Certificate == "" {
			in.Certificate = "without a name"
		}
	}
	in.Next, in.Providers = within(in.Next), v.providers()
	v.show(status, "login", page{Title: "Log in", Body: in})
}

// codePage asks for a one-time code, and for a token of a signer once there is no code to
// ask for.
func (v *visit) codePage(status int, in entry) {
	in.Next = within(in.Next)
	if signer := v.asksToken(); signer != "" {
		v.tokenPage(status, in, signer)
		return
	}
	var factor struct {
		Verified bool `json:"isVerified"`
	}
	err := v.get(v.ManagementRoot+"/current-identity/mfa", nil, &factor)
	in.NoFactor = err != nil || !factor.Verified
	v.show(status, "code", page{Title: "One-time code", Body: in, Bare: true})
}

// loginAgain asks somebody to log in whose session ended while a form was filled in,
// and keeps what was typed, except for secrets.
func (v *visit) loginAgain() {
	if !v.receive(strangerForm) {
		return
	}
	in := entry{Next: v.r.URL.RequestURI(), Problem: "Your session has ended. What you typed is kept, except for passwords."}
	secrets := v.secrets()
	for name, values := range v.form {
		if strings.HasPrefix(name, inputPrefix) && !secrets[name] || strings.HasPrefix(name, wasPrefix) || strings.HasPrefix(name, hasPrefix) {
			for _, value := range values {
				in.Kept = append(in.Kept, keptInput{keptPrefix + name, value})
			}
		}
	}
	v.loginPage(http.StatusUnauthorized, in)
}

// secrets are the names of inputs whose values are not shown again.
func (v *visit) secrets() map[string]bool {
	parts := strings.Split(strings.TrimPrefix(v.r.URL.Path, Root), "/")
	names := map[string]bool{}
	if d := v.kindAt(parts[0]); d != nil {
		of := resource{v.Console, d}
		creates, _ := of.creates()
		edits, _ := of.edits()
		for _, l := range append(leavesOf(creates, ""), leavesOf(edits, "")...) {
			names[inputPrefix+l.path] = l.field.Secret
		}
	}
	return names
}

// kept are the inputs that a login carries along.
func (v *visit) kept() (kept []keptInput) {
	for name, values := range v.form {
		if strings.HasPrefix(name, keptPrefix) {
			for _, value := range values {
				kept = append(kept, keptInput{name, value})
			}
		}
	}
	return kept
}
