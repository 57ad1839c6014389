// Package signon has a person log in at an identity provider and brings back the token
// that the provider gives: the authorization code flow of OpenID Connect, with PKCE, run
// by the server. It owns what is sent to the browser and to the provider, and what is
// believed of their answers; what it has to remember meanwhile is sealed into a cookie of
// the browser. Whether the token lets somebody in is for others to say. It reaches
// providers by what it is given for that, and imports nothing of ours.
package signon

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Lasts is how long somebody has to log in at the provider.
const Lasts = 10 * time.Minute

// Provider is who somebody logs in with.
type Provider struct {
	ID       string // of the signer
	Name     string
	URL      string // below which its discovery document is
	ClientID string
	Audience string // to ask a token for; empty for none
	Scopes   []string
	UseID    bool // whether its ID token is shown, and not its access token
}

// Usable reports whether somebody can be sent there.
func (p Provider) Usable() bool { return p.ClientID != "" && secure(p.URL) }

// Desk sends people to providers and takes them back.
type Desk struct {
	// Get and Post reach providers, in bounded time and size.
	Get  func(ctx context.Context, url string) ([]byte, http.Header, error)
	Post func(ctx context.Context, url string, header http.Header, body []byte) ([]byte, error)
	// Keys seal what the browser keeps, the first of them what is new. All
	// controllers have the same.
	Keys func() ([][]byte, error)
	Now  func() time.Time

	known catalogue
}

// What is said of a login that comes to nothing, besides what the network says.
var (
	ErrForged   = errors.New("signon: the answer does not belong to a login that this browser began")
	ErrOver     = errors.New("signon: the login took too long")
	ErrDeclined = errors.New("signon: the provider did not let the person in")
	ErrProvider = errors.New("signon: the provider does not do as OpenID Connect says")
)

// Ticket is what has to be remembered while somebody is at a provider.
type Ticket struct {
	Signer   string    `json:"signer"`
	Issuer   string    `json:"issuer"`
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Redirect string    `json:"redirect"`
	Until    time.Time `json:"until"`
	Errand
}

// Errand is what somebody goes to a provider for.
type Errand struct {
	Next   string `json:"next"`   // where the person wanted to go
	Aside  bool   `json:"aside"`  // whether it logs in beside a page that waits for it
	Factor bool   `json:"factor"` // whether it has a session, which asks for the token
}

// Begin returns the address of the provider to send the browser to, and what it is to
// keep meanwhile. redirect is where the provider sends it back to.
func (d *Desk) Begin(ctx context.Context, p Provider, redirect string, errand Errand) (to, sealed string, err error) {
	at, err := d.discover(ctx, p)
	if err != nil {
		return "", "", err
	}
	t := Ticket{
		Signer: p.ID, Issuer: at.Issuer, State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text(), Redirect: redirect, Errand: errand,
		Until: d.Now().Add(Lasts),
	}
	if sealed, err = d.sealed().Write(t); err != nil {
		return "", "", err
	}
	u, err := url.Parse(at.Authorize)
	if err != nil {
		return "", "", ErrProvider
	}
	sum := sha256.Sum256([]byte(t.Verifier))
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": p.ClientID, "redirect_uri": redirect, "scope": scope(p.Scopes), "state": t.State, "nonce": t.Nonce,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	if p.Audience != "" && !p.UseID {
		q.Set("audience", p.Audience) // some make access tokens that others can read only for one
	}
	u.RawQuery = q.Encode()
	return u.String(), sealed, nil
}

// scope is what is asked for: who it is, and what the signer wants beyond.
func scope(more []string) string {
	all := []string{"openid"}
	for _, s := range more {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return strings.Join(all, " ")
}

// Open reads what a browser has kept, if the answer that it came back with belongs to
// it. Nothing else of the answer counts before that.
func (d *Desk) Open(sealed string, answer url.Values) (Ticket, error) {
	var t Ticket
	if err := d.sealed().Read(sealed, &t); err != nil {
		return Ticket{}, ErrForged
	}
	if len(answer["state"]) != 1 || subtle.ConstantTimeCompare([]byte(t.State), []byte(answer.Get("state"))) != 1 {
		return Ticket{}, ErrForged
	}
	if !d.Now().Before(t.Until) {
		return t, ErrOver
	}
	return t, nil
}

// Finish exchanges the code of an answer for a token of the provider. The ticket is what
// Open returned for the same answer.
func (d *Desk) Finish(ctx context.Context, p Provider, t Ticket, answer url.Values) (string, error) {
	at, err := d.discover(ctx, p)
	if err != nil {
		return "", err
	}
	// An answer that names another provider than the one that was asked was led astray.
	if iss := answer["iss"]; at.Issuer != t.Issuer || len(iss) > 1 || len(iss) == 1 && iss[0] != at.Issuer || len(iss) == 0 && at.NamesItself {
		return "", ErrForged
	}
	if answer.Has("error") {
		return "", ErrDeclined
	}
	if len(answer["code"]) != 1 || answer.Get("code") == "" {
		return "", ErrForged
	}
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {answer.Get("code")}, "redirect_uri": {t.Redirect}, "client_id": {p.ClientID}, "code_verifier": {t.Verifier},
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	body, err := d.Post(ctx, at.Token, header, []byte(form.Encode()))
	if err != nil {
		return "", fmt.Errorf("exchanging the code: %w", err)
	}
	var given struct {
		Access string `json:"access_token"`
		ID     string `json:"id_token"`
	}
	if json.Unmarshal(body, &given) != nil {
		return "", ErrProvider
	}
	if err := d.belongs(given.ID, at.Issuer, p.ClientID, t.Nonce); err != nil {
		return "", err
	}
	if token := pick(p, given.Access, given.ID); token != "" {
		return token, nil
	}
	return "", ErrProvider
}

// pick is the token that is shown to the controller.
func pick(p Provider, access, id string) string {
	if p.UseID {
		return id
	}
	return access
}

// leeway is how far the clocks of a provider may be off.
const leeway = time.Minute

// belongs checks that an ID token is of this login. It came from the provider itself,
// over TLS, which vouches for it as a signature would; what is shown to the controller
// is checked by its signature there.
func (d *Desk) belongs(token, issuer, client, nonce string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ErrProvider
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ErrProvider
	}
	var said struct {
		Issuer   string   `json:"iss"`
		Audience audience `json:"aud"`
		Party    string   `json:"azp"`
		Nonce    string   `json:"nonce"`
		Ends     float64  `json:"exp"`
	}
	if json.Unmarshal(data, &said) != nil {
		return ErrProvider
	}
	switch {
	case said.Issuer != issuer, !slices.Contains(said.Audience, client), cmp.Or(said.Party, client) != client:
		return ErrForged
	case subtle.ConstantTimeCompare([]byte(said.Nonce), []byte(nonce)) != 1:
		return ErrForged
	case !d.Now().Add(-leeway).Before(time.Unix(int64(said.Ends), 0)):
		return ErrOver
	}
	return nil
}

// audience is a text or a list of them.
type audience []string

// UnmarshalJSON is for package json.
func (a *audience) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}
