package sso

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/oauth2"
)

// Tokens are what a provider gave for somebody who signed in. Whoever has them is that
// person: they are kept where nobody else reads, and never logged.
type Tokens struct {
	Signer  Signer    `json:"signer"`
	Show    string    `json:"show"`              // what a controller is shown
	Refresh string    `json:"refresh,omitempty"` // what newer ones are had for
	ID      string    `json:"id,omitempty"`      // by which the provider knows who signs out
	Subject string    `json:"subject,omitempty"` // who it is, as the provider says
	Ends    time.Time `json:"ends,omitzero"`     // of Show
}

// String keeps tokens out of what is printed, whoever prints them.
func (t *Tokens) String() string { return "tokens of " + t.Signer.Name }

// soon is how long before its end a token is not worth to be shown.
const soon = 30 * time.Second

// Good reports whether the token can still be shown.
func (t *Tokens) Good(now time.Time) bool {
	return t != nil && t.Show != "" && (t.Ends.IsZero() || now.Before(t.Ends.Add(-soon)))
}

// mostToken is more than a header may have.
const mostToken = 32 << 10

// accept looks at what a provider gave. nonce is what an ID token must repeat, and subject
// whom it must be of, each if it is not empty.
func (p *Provider) accept(ctx context.Context, got *oauth2.Token, nonce, subject string) (*Tokens, error) {
	t := &Tokens{Signer: p.signer, Refresh: got.RefreshToken, Subject: subject}
	t.ID, _ = got.Extra("id_token").(string)
	switch {
	case len(t.ID) > mostToken, len(got.AccessToken) > mostToken, len(t.Refresh) > mostToken:
		return nil, p.odd("its tokens are too large")
	case t.ID != "":
		who, err := p.belongs(ctx, t.ID, nonce, got.AccessToken)
		if err != nil {
			return nil, err
		}
		if subject != "" && who != subject {
			return nil, say(ErrForged, "the provider at %s gave a token of somebody else: sign in again with %s, and tell an admin", p.issuer, p.opt.Again)
		}
		t.Subject = who
	case nonce != "" || p.signer.UseID && subject == "":
		return nil, p.odd("it gave no ID token")
	case p.signer.UseID:
		return nil, say(ErrOver, "the provider at %s gives no newer ID tokens: sign in again with %s", p.issuer, p.opt.Again)
	}
	if t.Show = got.AccessToken; p.signer.UseID {
		t.Show = t.ID
	}
	if err := p.fits(t, got); err != nil {
		return nil, err
	}
	return t, nil
}

// belongs checks that an ID token is of this sign-in, and says whose it is.
func (p *Provider) belongs(ctx context.Context, raw, nonce, access string) (subject string, err error) {
	verifier := p.oidc.VerifierContext(p.with(ctx), &oidc.Config{ClientID: p.signer.ClientID, Now: func() time.Time { return p.opt.Now().Add(-leeway) }})
	token, err := verifier.Verify(p.with(ctx), raw)
	if _, over := errors.AsType[*oidc.TokenExpiredError](err); over {
		if wrong := p.clock.wrong(); wrong != nil {
			return "", wrong
		}
		return "", say(ErrOver, "the provider at %s gave a token that has ended: begin again with %s", p.issuer, p.opt.Again)
	}
	if err != nil {
		if wrong := p.clock.wrong(); wrong != nil && p.opt.Now().Before(peek(raw).begins()) {
			return "", wrong
		}
		if p.clock.broke() {
			return "", p.away(ctx, err)
		}
		return "", p.forged(short(err.Error()))
	}
	var said struct {
		Party string `json:"azp"`
	}
	switch err := token.Claims(&said); {
	case err != nil:
		return "", p.odd("its ID token cannot be read")
	case said.Party != "" && said.Party != p.signer.ClientID:
		return "", p.forged("it is for another application")
	case nonce != "" && subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1:
		return "", p.forged("its nonce is another")
	case token.AccessTokenHash != "" && token.VerifyAccessToken(access) != nil:
		return "", p.forged("it goes with another access token")
	case token.Subject == "":
		return "", p.odd("its ID token says not whose it is")
	case token.IssuedAt.After(p.opt.Now().Add(5*leeway)) && p.clock.wrong() != nil:
		return "", p.clock.wrong()
	}
	return token.Subject, nil
}

func (p *Provider) forged(why string) error {
	return say(ErrForged, "the ID token that came does not belong to this sign-in (%s), and nothing was taken: begin again with %s, and tell an admin if it happens twice", why, p.opt.Again)
}

// fits makes sure that a controller can make something of what it is shown, and notes when
// that ends. Whether it is good is the controller's to say, by its signature.
func (p *Provider) fits(t *Tokens, got *oauth2.Token) error {
	said := peek(t.Show)
	if said == nil {
		return say(ErrOdd, "the provider at %s gives access tokens that only it can read: have an admin set targetToken of the signer %q to ID, or have the provider give JWTs", p.issuer, p.signer.Name)
	}
	if want := p.signer.Audience; want != "" && !slices.Contains(said.Audience, want) {
		other := ""
		if id := peek(t.ID); id != nil && !p.signer.UseID && slices.Contains(id.Audience, want) {
			other = ", or set its targetToken to ID, since the ID token is for that"
		}
		return say(ErrForged, "the provider at %s gave a token for %s, and the controller takes those for %q: have an admin look at the audience of the signer %q%s", p.issuer, short(strings.Join(said.Audience, ", ")), want, p.signer.Name, other)
	}
	if t.Ends = moment(said.Ends); t.Ends.IsZero() {
		t.Ends = got.Expiry
	}
	if !t.Ends.IsZero() && !p.opt.Now().Add(-leeway).Before(t.Ends) {
		if wrong := p.clock.wrong(); wrong != nil {
			return wrong
		}
		return say(ErrOver, "the provider at %s gave a token that has ended: begin again with %s", p.issuer, p.opt.Again)
	}
	return nil
}

// claims is what a token says, which nobody has checked.
type claims struct {
	Audience audience       `json:"aud"`
	Begins   float64        `json:"nbf"`
	Ends     float64        `json:"exp"`
	Other    jsontext.Value `json:",embed"`
}

// peek reads a token; nil if it cannot be read.
func peek(raw string) *claims {
	parts, said := strings.Split(raw, "."), &claims{}
	if len(parts) != 3 {
		return nil
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(data, said) != nil {
		return nil
	}
	return said
}

func (c *claims) begins() time.Time {
	if c == nil {
		return time.Time{}
	}
	return moment(c.Begins)
}

// moment is a time as tokens have it; none if it is not a sensible one.
func moment(seconds float64) time.Time {
	if seconds <= 0 || seconds > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0).UTC()
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

// Renew gets newer tokens in the place of those that somebody signed in with. ErrOver says
// that the person has to sign in again.
func (p *Provider) Renew(ctx context.Context, old *Tokens) (*Tokens, error) {
	if old.Refresh == "" {
		return nil, say(ErrOver, "the sign-in at %s has ended: sign in again with %s", p.issuer, p.opt.Again)
	}
	got, err := p.config.TokenSource(p.with(ctx), &oauth2.Token{RefreshToken: old.Refresh}).Token()
	if no, ok := errors.AsType[*oauth2.RetrieveError](err); ok && no.ErrorCode == "invalid_grant" {
		return nil, say(ErrOver, "the sign-in at %s has ended: sign in again with %s", p.issuer, p.opt.Again)
	}
	if err != nil {
		return nil, p.refused(ctx, err)
	}
	t, err := p.accept(ctx, got, "", old.Subject)
	if err != nil {
		return nil, err
	}
	if t.ID == "" {
		t.ID = old.ID
	}
	return t, nil
}

// SignOut has the provider forget that somebody signed in from here, and end the person's
// session with it, as far as it lets clients do that.
func (p *Provider) SignOut(ctx context.Context, t *Tokens) error {
	var failed error
	if p.says.Revoke != "" && t.Refresh != "" {
		failed = p.tell(ctx, p.says.Revoke, url.Values{"token": {t.Refresh}, "token_type_hint": {"refresh_token"}, "client_id": {p.signer.ClientID}})
	}
	if p.says.EndSession != "" && t.ID != "" {
		failed = errors.Join(failed, p.tell(ctx, p.says.EndSession, url.Values{"id_token_hint": {t.ID}, "client_id": {p.signer.ClientID}}))
	}
	return failed
}

// tell posts a form to a provider whose answer says nothing but whether it was taken.
func (p *Provider) tell(ctx context.Context, address string, form url.Values) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := p.http.Do(req)
	if err != nil {
		return p.away(ctx, err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode >= http.StatusBadRequest {
		return say(ErrDeclined, "the provider at %s did not forget the sign-in (status %d); sign out there in a browser", p.issuer, resp.StatusCode)
	}
	return nil
}
