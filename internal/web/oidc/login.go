package oidc

import (
	"cmp"
	"crypto/x509"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/limit"
)

// errLogin is for what nobody has begun here, or began too long ago.
var errLogin = fault.New(fault.CodeUnauthorized, "there is no login with this id, or its time is over; begin another at "+Root+"/authorize")

// How somebody may show who it is, by the last part of the path.
var methods = map[string]string{"username": "password", "password": "password", "cert": "cert", "ext-jwt": "ext-jwt"}

// idHeader tells a program what it has begun, and codeHeader that a one-time code is
// asked for.
const (
	idHeader   = "auth-request-id"
	codeHeader = "totp-required"
)

// showLogin tells a program what it has begun.
func (p *Provider) showLogin(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("authRequestID")
	_, begun := p.began(id)
	switch {
	case methods[r.PathValue("method")] == "":
		refuse(w, errPath)
	case !begun:
		refuse(w, errLogin)
	default:
		w.Header().Set(idHeader, id)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("This is for programs: send who you are with POST.\n"))
	}
}

var errPath = fault.New(fault.CodeNotFound, "there is nothing at this path")

// logIn checks a primary credential, and opens a session for who shows it.
func (p *Provider) logIn(w http.ResponseWriter, r *http.Request) {
	method := methods[r.PathValue("method")]
	if method == "" {
		refuse(w, errPath)
		return
	}
	said, err := read(r)
	if err != nil {
		refuse(w, err)
		return
	}
	q, begun := p.began(said.ID)
	if !begun {
		refuse(w, errLogin)
		return
	}
	if wait := p.Logins.Take(limit.At(from(r))); wait > 0 {
		refuse(w, fault.Later("there were too many attempts from this address; wait and try again", wait))
		return
	}
	by := authorOf(r.Context())
	who, err := p.open(r, method, said, q)
	tried := Attempt{By: by, Method: method, Username: said.Username, Certificates: certificates(r)}
	if err == nil {
		tried.Who, tried.By = who.Identity(), authn.By(who.Identity()).On(by)
	}
	p.Tried(tried, err)
	if err != nil {
		refuse(w, err)
		return
	}
	p.proceed(w, r, who, q)
}

// open opens a session for whoever shows who it is.
func (p *Provider) open(r *http.Request, method string, said said, q request) (*authn.Caller, error) {
	by, jwt := authorOf(r.Context()), bearer(r)
	proof, err := p.prove(r, by, method, said, jwt)
	if err != nil {
		return nil, err
	}
	who, err := p.Sessions.Open(r.Context(), by, proof, authn.Request{
		ConfigTypes: said.ConfigTypes, EnvInfo: &said.EnvInfo, SDKInfo: &said.SDKInfo, Bearer: jwt, Login: q.login(), Client: q.Client,
	})
	if authn.Replayed(err) {
		return nil, errLogin
	}
	return who, err
}

func (p *Provider) prove(r *http.Request, by state.Author, method string, said said, jwt string) (authn.Proof, error) {
	switch method {
	case "cert":
		proof, err := p.Certs.Check(p.snap(), certificates(r))
		if err == nil {
			return proof, nil
		}
		// It may have been issued by another controller a moment ago.
		snap, blind := p.State.Current(r.Context())
		if blind != nil {
			return proof, err
		}
		return p.Certs.Check(p.View(snap), certificates(r))
	case "ext-jwt":
		return p.Tokens.SignIn(r.Context(), by, p.snap, jwt)
	}
	switch {
	case said.Username == "":
		return authn.Proof{}, fault.Invalid("username", "is required", nil)
	case said.Password == "":
		return authn.Proof{}, fault.Invalid("password", "is required", nil)
	}
	return p.Passwords.Check(r.Context(), by, p.snap(), authn.Login{Username: said.Username, Password: said.Password, From: from(r)})
}

// proceed sends a client on that has shown everything, and tells any other what is
// missing.
func (p *Provider) proceed(w http.ResponseWriter, r *http.Request, who *authn.Caller, q request) {
	if !who.Complete() {
		p.ask(w, who)
		return
	}
	next, err := p.land(who.Session(), q)
	if err != nil {
		p.Log.Error("a login by OpenID Connect could not be finished", "error", err)
		refuse(w, err)
		return
	}
	http.Redirect(w, r, Root+"/authorize/callback?"+url.Values{"id": {next}}.Encode(), http.StatusFound)
}

// ask tells what a client has yet to show.
func (p *Provider) ask(w http.ResponseWriter, who *authn.Caller) {
	queries := p.queriesOf(who)
	if slices.ContainsFunc(queries, func(q query) bool { return q.TypeID == totp }) {
		w.Header().Set(codeHeader, "true")
	}
	answer(w, http.StatusOK, map[string]any{"authQueries": queries})
}

// query is a factor that is still to be shown.
type query struct {
	TypeID     string   `json:"typeId"`
	Provider   string   `json:"provider"`
	HTTPMethod string   `json:"httpMethod,omitempty"`
	HTTPURL    string   `json:"httpUrl"`
	MinLength  int      `json:"minLength,omitempty"`
	MaxLength  int      `json:"maxLength,omitempty"`
	Format     string   `json:"format,omitempty"`
	ID         string   `json:"id,omitempty"`
	ClientID   string   `json:"clientId,omitempty"`
	Scopes     []string `json:"scopes"`
	// Enrolled is whether there is a second factor to show, or one is to be enrolled.
	Enrolled bool `json:"isTotpEnrolled"`
}

// totp is what a one-time code is called here.
const totp = "TOTP"

func (p *Provider) queriesOf(who *authn.Caller) []query {
	all := []query{}
	mfa, has := model.MFAOf(p.snap(), who.Identity().ID)
	for _, q := range who.Queries() {
		one := query{
			TypeID: q.TypeID, Provider: q.Provider, HTTPMethod: q.HTTPMethod, HTTPURL: q.HTTPURL, MinLength: q.MinLength, MaxLength: q.MaxLength,
			Format: q.Format, ID: q.ID, ClientID: q.ClientID, Scopes: append([]string{}, q.Scopes...),
		}
		if q.TypeID == "MFA" {
			one.TypeID, one.HTTPURL, one.Enrolled = totp, "."+Root+"/login/totp", has && mfa.IsVerified
		}
		all = append(all, one)
	}
	return all
}

// listQueries tells a client once more what it has yet to show.
func (p *Provider) listQueries(w http.ResponseWriter, r *http.Request) {
	who, _, err := p.amid(r, cmp.Or(r.URL.Query().Get("id"), r.URL.Query().Get("authRequestID")))
	if err != nil {
		refuse(w, err)
		return
	}
	p.ask(w, who)
}

// amid returns who is amid a login.
func (p *Provider) amid(r *http.Request, id string) (*authn.Caller, request, error) {
	q, begun := p.began(id)
	if !begun {
		return nil, q, errLogin
	}
	snap := p.snap()
	session, ok := p.Sessions.OfLogin(snap, q.login())
	if !ok { // it may have been opened at another controller a moment ago
		now, err := p.State.Current(r.Context())
		if err != nil {
			return nil, q, errLogin
		}
		if snap = p.View(now); snap != nil {
			session, ok = p.Sessions.OfLogin(snap, q.login())
		}
	}
	if !ok {
		return nil, q, errLogin
	}
	who, err := p.Sessions.Resume(r.Context(), snap, session, bearer(r))
	return who, q, err
}

// showCode takes a one-time or recovery code.
func (p *Provider) showCode(w http.ResponseWriter, r *http.Request) {
	p.factor(w, r, func(by state.Author, who *authn.Caller, said said) error {
		return p.Factors.Show(r.Context(), by, who, said.Code)
	})
}

// verify takes the first code of a second factor that is being enrolled.
func (p *Provider) verify(w http.ResponseWriter, r *http.Request) {
	p.factor(w, r, func(by state.Author, who *authn.Caller, said said) error {
		return p.Factors.Confirm(r.Context(), by, who, said.Code)
	})
}

// factor has a client show a second factor, and sends it on.
func (p *Provider) factor(w http.ResponseWriter, r *http.Request, show func(state.Author, *authn.Caller, said) error) {
	who, q, said, err := p.resumed(r)
	if err != nil {
		refuse(w, err)
		return
	}
	by := authn.By(who.Identity()).On(authorOf(r.Context()))
	err = show(by, who, said)
	p.Coded(by, who.Identity(), err)
	if err == nil {
		who, _, err = p.amid(r, said.ID)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	p.proceed(w, r, who, q)
}

func (p *Provider) resumed(r *http.Request) (*authn.Caller, request, said, error) {
	said, err := read(r)
	if err != nil {
		return nil, request{}, said, err
	}
	who, q, err := p.amid(r, said.ID)
	return who, q, said, err
}

// enroll gives somebody a second factor who has to have one and has none.
func (p *Provider) enroll(w http.ResponseWriter, r *http.Request) {
	who, _, _, err := p.resumed(r)
	if err == nil {
		_, err = p.Factors.Start(r.Context(), authn.By(who.Identity()).On(authorOf(r.Context())), who)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	mfa, ok := model.MFAOf(p.snap(), who.Identity().ID)
	if !ok {
		refuse(w, errLogin) // somebody has taken it away again
		return
	}
	answer(w, http.StatusCreated, map[string]any{
		"id": mfa.ID, "isVerified": false, "provisioningUrl": p.Factors.ProvisioningURL(who, mfa), "recoveryCodes": mfa.RecoveryCodes,
		"createdAt": mfa.CreatedAt.Time(), "updatedAt": mfa.UpdatedAt.Time(), "tags": map[string]any{}, "_links": map[string]any{},
	})
}

// certificates is the chain that a client presented in the handshake.
func certificates(r *http.Request) []*x509.Certificate {
	if r.TLS == nil {
		return nil
	}
	return r.TLS.PeerCertificates
}

// bearer is the JWT that a request carries; none if there is more than one.
func bearer(r *http.Request) string {
	if all := r.Header.Values("Authorization"); len(all) == 1 {
		if jwt, is := strings.CutPrefix(all[0], "Bearer "); is {
			return jwt
		}
	}
	return ""
}
