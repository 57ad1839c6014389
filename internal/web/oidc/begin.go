package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// request is what a client begins a login with, and carries through all of its steps.
type request struct {
	ID        string
	Client    string
	Redirect  string
	State     string
	Nonce     string
	Challenge string
	Scopes    []string
	Until     time.Time
}

// loginTime is how long a login may take, whose second factor a person may have to
// look for.
const loginTime = 10 * time.Minute

// login is what an API session remembers of the login that it is of.
func (q request) login() string {
	sum := sha256.Sum256([]byte("login " + q.ID))
	return hex.EncodeToString(sum[:])
}

// clients are the programs that may log in, by the ids that those of OpenZiti have.
// They are programs of anybody: the id opens nothing.
var clients = []string{"native", "openziti"}

// client is one of them, in the words of the library.
type client struct {
	id       string
	redirect string // where it wants to be sent back to, if it may
}

func (c client) GetID() string                       { return c.id }
func (c client) RedirectURIs() []string              { return []string{c.redirect} }
func (c client) PostLogoutRedirectURIs() []string    { return nil }
func (c client) ApplicationType() op.ApplicationType { return op.ApplicationTypeNative }
func (c client) AuthMethod() oidc.AuthMethod         { return oidc.AuthMethodNone }
func (c client) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}
func (c client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken, oidc.GrantTypeTokenExchange}
}
func (c client) LoginURL(id string) string {
	return loginAt + "?" + url.Values{"authRequestID": {id}}.Encode()
}
func (c client) AccessTokenType() op.AccessTokenType  { return op.AccessTokenTypeJWT }
func (c client) IDTokenLifetime() time.Duration       { return accessTime }
func (c client) DevMode() bool                        { return false }
func (c client) IsScopeAllowed(string) bool           { return false }
func (c client) IDTokenUserinfoClaimsAssertion() bool { return false }
func (c client) ClockSkew() time.Duration             { return 0 }
func (c client) RestrictAdditionalIdTokenScopes() func([]string) []string {
	return func([]string) []string { return nil }
}
func (c client) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return func([]string) []string { return nil }
}

// loginAt is where a client is sent to show who it is.
const loginAt = Root + "/login/username"

// mayReturn reports whether a client may be sent back to an address: one of its own
// machine, or one that is only known there.
func mayReturn(address string) bool {
	if address == "openziti://auth/callback" {
		return true
	}
	u, err := url.Parse(address)
	if err != nil || len(address) > maxText || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	own := slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())
	return own && u.User == nil && !strings.ContainsAny(address, "?#") && u.EscapedPath() == "/auth/callback" && u.Opaque == ""
}

// maxText bounds the texts that a client chooses.
const maxText = 512

// VerifyAuthRequest checks what a client begins with. The library looks at the rest.
func (s *server) VerifyAuthRequest(_ context.Context, r *op.Request[oidc.AuthRequest]) (*op.ClientRequest[oidc.AuthRequest], error) {
	q := r.Data
	wrong := oidc.ErrInvalidRequest()
	switch {
	case q.RequestParam != "":
		return nil, oidc.ErrRequestNotSupported()
	case !slices.Contains(clients, q.ClientID):
		return nil, wrong.WithDescription("client_id is not known here; it is one of %s", strings.Join(clients, ", "))
	case !mayReturn(q.RedirectURI):
		return nil, wrong.WithDescription("redirect_uri must be /auth/callback on localhost, over http or https and on any port")
	case q.CodeChallenge == "" || q.CodeChallengeMethod != oidc.CodeChallengeMethodS256:
		return nil, wrong.WithDescription("code_challenge is missing, or code_challenge_method is not S256; a login needs PKCE")
	case len(q.CodeChallenge) != 43:
		return nil, wrong.WithDescription("code_challenge must be the SHA-256 of the verifier, in 43 characters")
	case len(q.State) > maxText || len(q.Nonce) > maxText:
		return nil, wrong.WithDescription("state and nonce have at most %d characters each", maxText)
	case q.ResponseMode != "" && q.ResponseMode != oidc.ResponseModeQuery:
		return nil, wrong.WithDescription("response_mode must be query")
	case !slices.Contains(q.Scopes, oidc.ScopeOpenID):
		return nil, oidc.ErrInvalidScope().WithDescription("scope must have openid, and offline_access for a refresh token")
	case slices.Contains(q.Prompt, oidc.PromptNone):
		return nil, oidc.ErrLoginRequired()
	}
	return &op.ClientRequest[oidc.AuthRequest]{Request: r, Client: client{q.ClientID, q.RedirectURI}}, nil
}

// Authorize begins a login. Nothing of it is kept here.
func (s *server) Authorize(_ context.Context, r *op.ClientRequest[oidc.AuthRequest]) (*op.Redirect, error) {
	id, err := s.seal("login").Write(request{
		ID: random(), Client: r.Client.GetID(), Redirect: r.Data.RedirectURI, State: r.Data.State, Nonce: r.Data.Nonce,
		Challenge: r.Data.CodeChallenge, Scopes: r.Data.Scopes, Until: s.Now().Add(loginTime),
	})
	if err != nil {
		return nil, oidc.ErrServerError()
	}
	return op.NewRedirect(r.Client.LoginURL(id)), nil
}

// began reads what a client has begun with.
func (p *Provider) began(id string) (q request, ok bool) {
	err := p.seal("login").Read(id, &q)
	return q, err == nil && p.Now().Before(q.Until)
}

// landing is where a client is sent back to, with its code.
type landing struct {
	Redirect, State, Code string
	Until                 time.Time
}

// callBack sends a client that has shown everything back to where it came from.
func (p *Provider) callBack(w http.ResponseWriter, r *http.Request) {
	var at landing
	if err := p.seal("landing").Read(r.URL.Query().Get("id"), &at); err != nil || !p.Now().Before(at.Until) {
		refuse(w, errLogin)
		return
	}
	answer := url.Values{"code": {at.Code}}
	if at.State != "" {
		answer.Set("state", at.State)
	}
	http.Redirect(w, r, at.Redirect+"?"+answer.Encode(), http.StatusFound)
}
