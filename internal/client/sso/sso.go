// Package sso has a person sign in at an identity provider from this machine, and brings
// back the token that a controller takes: in the person's browser, or on another device by
// an address and a code. It owns what the provider is asked and what is believed of its
// answers, and gets a newer token when one has ended. Where tokens are kept, and whether
// one lets anybody in, is for others to say. It must not import what a controller is made
// of, and says nothing to a terminal: it is told how to.
package sso

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// What errors of this package may be. Their texts say what to do.
var (
	ErrAway     = errors.New("sso: the provider cannot be reached")
	ErrOdd      = errors.New("sso: the provider does not do as OpenID Connect says")
	ErrForged   = errors.New("sso: the answer does not belong to what was asked")
	ErrDeclined = errors.New("sso: the provider did not let the person in")
	ErrOver     = errors.New("sso: what was shown or asked has come to its end")
	ErrSigner   = errors.New("sso: there is no such signer")
)

// problem is a sentence about one of the above.
type problem struct {
	kind error
	text string
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

func say(kind error, format string, args ...any) error {
	return &problem{kind, fmt.Sprintf(format, args...)}
}

// Options is how a provider is asked.
type Options struct {
	Now func() time.Time
	// Port of this machine that a browser is led back to; any if it is 0. There are
	// providers that know one port alone.
	Port int
	// Again is what a person does to begin anew, as a command.
	Again string
}

const (
	// patience is how long a provider may take for one answer, to its last byte.
	patience = 30 * time.Second
	// most is how many bytes an answer may have.
	most = 1 << 20
	// Lasts is how long a person has to sign in.
	Lasts = 10 * time.Minute
	// leeway is how far clocks may be apart.
	leeway = time.Minute
)

// Provider is an identity provider that has said where it is asked for what.
type Provider struct {
	signer Signer
	opt    Options
	oidc   *oidc.Provider
	config oauth2.Config
	http   *http.Client
	clock  *clock
	says   struct {
		Challenges  []string `json:"code_challenge_methods_supported"`
		NamesItself bool     `json:"authorization_response_iss_parameter_supported"`
		Scopes      []string `json:"scopes_supported"`
		Revoke      string   `json:"revocation_endpoint"`
		EndSession  string   `json:"end_session_endpoint"`
		Keys        string   `json:"jwks_uri"`
	}
	issuer string
}

const wellKnown = "/.well-known/openid-configuration"

// Meet asks a provider where people sign in and where tokens are from.
func Meet(ctx context.Context, s Signer, opt Options) (*Provider, error) {
	switch {
	case s.ClientID == "":
		return nil, say(ErrSigner, "the signer %q does not say as which application one signs in: have an admin give it a clientId", s.Name)
	case !secure(s.URL):
		return nil, say(ErrSigner, "the signer %q sends people to %q, which is no address with https: have an admin mend its externalAuthUrl", s.Name, s.URL)
	}
	p := &Provider{signer: s, opt: opt, clock: &clock{now: opt.Now}}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	p.http = &http.Client{
		Transport: &bounded{transport, p.clock}, Timeout: patience,
		// A redirect would take codes and tokens elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if err := p.discover(ctx); err != nil {
		return nil, err
	}
	p.config = oauth2.Config{ClientID: s.ClientID, Endpoint: p.oidc.Endpoint(), Scopes: p.scopes()}
	p.config.Endpoint.AuthStyle = oauth2.AuthStyleInParams // it has no secret to try another with
	return p, nil
}

// Name is what the network calls the provider.
func (p *Provider) Name() string { return p.signer.Name }

// with has the libraries ask as we do.
func (p *Provider) with(ctx context.Context) context.Context { return oidc.ClientContext(ctx, p.http) }

func (p *Provider) discover(ctx context.Context) (err error) {
	p.issuer = strings.TrimSuffix(strings.TrimSuffix(p.signer.URL, wellKnown), "/")
	p.oidc, err = oidc.NewProvider(p.with(ctx), p.issuer)
	if other, ok := errors.AsType[*oidc.IssuerMismatchError](err); ok && other.Provided == p.issuer+"/" {
		p.issuer += "/" // which some have at their end
		p.oidc, err = oidc.NewProvider(p.with(ctx), p.issuer)
	}
	if other, ok := errors.AsType[*oidc.IssuerMismatchError](err); ok {
		return say(ErrForged, "the provider at %s says that it is %q: it could take the place of that one; have an admin look at the externalAuthUrl of the signer %q", p.issuer, other.Provided, p.signer.Name)
	}
	if err != nil {
		return p.away(ctx, err)
	}
	if err := p.oidc.Claims(&p.says); err != nil {
		return p.odd("what it says of itself cannot be read")
	}
	at := p.oidc.Endpoint()
	for _, address := range []string{at.AuthURL, at.TokenURL, p.says.Keys} {
		if !secure(address) {
			return p.odd(fmt.Sprintf("it names %q, which is no address with https", address))
		}
	}
	for _, address := range []string{at.DeviceAuthURL, p.says.Revoke, p.says.EndSession} {
		if address != "" && !secure(address) {
			return p.odd(fmt.Sprintf("it names %q, which is no address with https", address))
		}
	}
	if p.says.Challenges != nil && !slices.Contains(p.says.Challenges, "S256") {
		return p.odd("it does not know PKCE with S256")
	}
	return nil
}

// scopes is what is asked for: who it is, a token to get newer ones with if there is such
// a thing, and what the signer wants.
func (p *Provider) scopes() []string {
	all := []string{oidc.ScopeOpenID}
	if slices.Contains(p.says.Scopes, oidc.ScopeOfflineAccess) {
		all = append(all, oidc.ScopeOfflineAccess)
	}
	for _, s := range p.signer.Scopes {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// asking is what else every request for a token says.
func (p *Provider) asking(more ...oauth2.AuthCodeOption) []oauth2.AuthCodeOption {
	if p.signer.Audience != "" && !p.signer.UseID {
		more = append(more, oauth2.SetAuthURLParam("audience", p.signer.Audience)) // some make tokens that others can read only for one
	}
	return more
}

func (p *Provider) odd(why string) error {
	return say(ErrOdd, "%s is no provider that people can sign in with: %s; have an admin look at the signer %q", p.issuer, why, p.signer.Name)
}

// away says why there is no answer.
func (p *Provider) away(ctx context.Context, err error) error {
	switch large := (*tooLarge)(nil); {
	case errors.As(err, &large):
		return p.odd(large.Error())
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	}
	var net *url.Error
	switch {
	case errors.As(err, &net) && net.Timeout():
		return say(ErrAway, "the provider at %s does not answer in %v: try again later, or look whether this machine reaches it", p.issuer, patience)
	case errors.As(err, &net):
		return say(ErrAway, "the provider at %s cannot be reached (%v): look whether this machine reaches and trusts it, and try again", p.issuer, net.Err)
	case p.clock.broke():
		return say(ErrAway, "the provider at %s does not answer, or breaks off: try again", p.issuer)
	}
	return p.odd(short(err.Error()))
}

// short is the beginning of what somebody else says.
func short(text string) string {
	const enough = 200
	if len(text) > enough {
		text = strings.ToValidUTF8(text[:enough], "") + "..."
	}
	return fmt.Sprintf("%q", text)
}

// secure reports whether an address is one over TLS, and nothing but an address.
func secure(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.Fragment == ""
}

// bounded reads so much of an answer and no more, and notes what time it is elsewhere.
type bounded struct {
	next  http.RoundTripper
	clock *clock
}

func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	b.clock.lost.Store(err != nil)
	if err != nil {
		return nil, err
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		b.clock.behind.Store(int64(at.Sub(b.clock.now())))
	}
	resp.Body = &answer{resp.Body, most, b.clock}
	return resp, nil
}

type answer struct {
	io.ReadCloser
	left  int64
	clock *clock
}

func (a *answer) Read(p []byte) (int, error) {
	// One byte more than may come tells whether there is more.
	n, err := a.ReadCloser.Read(p[:min(int64(len(p)), a.left+1)])
	if a.left -= int64(n); a.left < 0 {
		return 0, &tooLarge{}
	}
	a.clock.cut.Store(err != nil && err != io.EOF)
	return n, err
}

type tooLarge struct{}

func (*tooLarge) Error() string { return fmt.Sprintf("its answer has more than %d MiB", most>>20) }

// clock is this machine's beside the provider's.
type clock struct {
	now    func() time.Time
	behind atomic.Int64
	lost   atomic.Bool // there was no answer to the last question
	cut    atomic.Bool // it broke off
}

// broke reports whether what went wrong last is that the provider did not answer: the
// libraries do not say so of keys.
func (c *clock) broke() bool { return c.cut.Load() || c.lost.Load() }

// wrong says how far this machine's clock is off, if it is.
func (c *clock) wrong() error {
	by := time.Duration(c.behind.Load())
	if by.Abs() <= leeway {
		return nil
	}
	which := "behind"
	if by < 0 {
		which = "ahead of"
	}
	return say(ErrOver, "the clock of this machine is %s %s the provider's: set it, and try again", by.Abs().Round(time.Second), which)
}
