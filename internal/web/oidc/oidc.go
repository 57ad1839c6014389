// Package oidc lets clients log in by OpenID Connect: the authorization code flow with
// PKCE, whose login steps are requests of programs and no pages. What a login has come
// to is sealed into what the client carries from step to step, and from the first
// credential on in the record of its API session, so that each step may reach another
// controller and a login that nobody finishes costs no memory. Who somebody is, and
// what a session is worth, is for authn to say. It must not import api or rest.
package oidc

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/op"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/auth/token"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/web/ticket"
)

// Root is the path that all paths begin with.
const Root = authn.IssuerPath

// Attempt is one to authenticate, for those who keep note of them.
type Attempt struct {
	By               state.Author
	Method, Username string
	Certificates     []*x509.Certificate
	Who              *model.Identity // if it succeeded
}

// Provider answers below Root.
type Provider struct {
	State     *state.State
	Sessions  *authn.APISessions
	Passwords *authn.Passwords
	Certs     *authn.Certificates
	Tokens    *authn.Tokens
	Factors   *authn.Factors
	// Address is the host and port under which clients reach the controller.
	Address string
	// Keys seal what clients carry, and Public are the keys that access tokens are checked
	// with. IDs makes ID tokens: there are clients that take those of RSA keys alone.
	Keys   func() ([][]byte, error)
	Public func() []jose.JSONWebKey
	IDs    *token.Derived
	// Snap is the state as it is now by the clock, and View a snapshot as it is now.
	View func(*state.Snapshot) *state.Snapshot
	// Logins is how often an address may try, Requests how many requests are worked on,
	// and Bodies and Pace bound how they arrive.
	Logins   *limit.Rate[limit.Party]
	Requests *limit.Slots
	Bodies   *limit.Bodies
	Pace     limit.Pace
	// Tried is told of every attempt to authenticate, Coded of every second factor, and
	// Stolen of what was used a second time.
	Tried  func(Attempt, error)
	Coded  func(state.Author, *model.Identity, error)
	Stolen func(state.Author, *model.APISession, string)
	Now    func() time.Time
	Log    *slog.Logger
}

// maxBody bounds what a request may send.
const maxBody = 64 << 10

// Handler answers requests.
func (p *Provider) Handler() http.Handler {
	steps := http.NewServeMux()
	steps.HandleFunc("GET /login/{method}", p.showLogin)
	steps.HandleFunc("POST /login/{method}", p.logIn)
	steps.HandleFunc("GET /login/auth-queries", p.listQueries)
	steps.HandleFunc("POST /login/totp", p.showCode)
	steps.HandleFunc("POST /login/totp/enroll", p.enroll)
	steps.HandleFunc("POST /login/totp/enroll/verify", p.verify)
	steps.HandleFunc("GET /authorize/callback", p.callBack)
	steps.HandleFunc("GET /end_session", p.endSession)
	steps.HandleFunc("POST /end_session", p.endSession)
	quiet := slog.New(slog.DiscardHandler) // what programs send wrong is theirs to mend
	steps.Handle("/", op.RegisterServer(&server{Provider: p}, endpoints, op.WithServerCORSOptions(nil), op.WithFallbackLogger(quiet)))
	return http.StripPrefix(Root, p.bounded(steps))
}

// bounded keeps what requests may take within bounds, and has their bodies read
// before anything else is done.
func (p *Provider) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodPost {
			refuse(w, fault.New(fault.CodeMethod, "below "+Root+" only GET and POST are answered"))
			return
		}
		party := limit.At(from(r))
		if err := p.Requests.Take(party); err != nil {
			refuse(w, fault.New(fault.CodeUnavailable, "the controller is busy; try again"))
			return
		}
		defer p.Requests.Leave(party)
		release, err := p.receive(w, r)
		if err != nil {
			refuse(w, err)
			return
		}
		defer release()
		next.ServeHTTP(w, r.WithContext(withAuthor(r.Context(), author(r))))
	})
}

// receive reads the body of a request, which is small.
func (p *Provider) receive(w http.ResponseWriter, r *http.Request) (release func(), err error) {
	if r.ContentLength == 0 || r.Method == http.MethodGet {
		r.Body = http.NoBody
		return func() {}, nil
	}
	data, release, err := p.Bodies.Read(limit.At(from(r)), limit.Source{
		Reader: http.MaxBytesReader(w, r.Body, maxBody), Size: r.ContentLength, Until: http.NewResponseController(w).SetReadDeadline,
	}, maxBody, p.Pace)
	if err == nil {
		r.Body = body(data)
		return release, nil
	}
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case large:
		return nil, fault.New(fault.CodeBodyTooLarge, "the body is larger than 65536 bytes")
	case errors.Is(err, limit.ErrSlow):
		return nil, fault.New(fault.CodeBodyTooSlow, "the body did not arrive in time; send it at once")
	case errors.Is(err, limit.ErrFull), errors.Is(err, limit.ErrShare):
		return nil, fault.New(fault.CodeUnavailable, "the controller is busy; try again")
	}
	return nil, fault.Wrap(fault.CodeBody, err)
}

// issuer is what tokens say that they are from.
func (p *Provider) issuer() string { return "https://" + p.Address + Root }

// snap is the state as it is now.
func (p *Provider) snap() *state.Snapshot { return p.View(p.State.Snapshot()) }

// seal is how clients carry something for us.
func (p *Provider) seal(purpose string) ticket.Seal {
	return ticket.Seal{Keys: p.Keys, Purpose: "netkeep openid connect " + purpose, Most: maxTicket}
}

// maxTicket bounds what clients carry; it is part of addresses.
const maxTicket = 6 << 10

// from is where a request came from.
func from(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// author is who makes the writes of a request from nobody.
func author(r *http.Request) state.Author {
	by := state.Nobody
	by.Request, by.Operation = state.NewID(), "oidc"+strings.ReplaceAll(r.URL.Path, "/", " ")
	if at := from(r); at.IsValid() {
		by.Source = at.String()
	}
	return by
}

// random is a text that nobody guesses.
func random() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
