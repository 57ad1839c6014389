package sso

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// callback is where browsers are led back to, as clients of others have it too: a provider
// that knows those knows us.
const callback = "/auth/callback"

// InBrowser has the person sign in with a browser of this machine, which open leads to an
// address. The answer is taken from this machine alone, once.
func (p *Provider) InBrowser(ctx context.Context, open func(address string) error) (*Tokens, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.opt.Port)))
	if err != nil {
		return nil, fmt.Errorf("the browser cannot be led back here (%w): name another port with --sso-port, or sign in on another device with --sso-device", err)
	}
	w := &waiting{
		provider: p, state: rand.Text(), nonce: rand.Text(), verifier: oauth2.GenerateVerifier(), host: listener.Addr().String(),
		done: make(chan outcome, 1),
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Lasts, say(ErrOver, "nobody signed in within %v: begin again with %s", Lasts, p.opt.Again))
	defer cancel()
	w.config = p.config
	w.config.RedirectURL = "http://" + w.host + callback
	server := &http.Server{
		Handler: w, ReadTimeout: patience, WriteTimeout: 2 * patience, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: log.New(io.Discard, "", 0),
	}
	server.SetKeepAlivesEnabled(false)
	go func() { _ = server.Serve(listener) }()
	defer func() {
		// The page that says so is still on its way.
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if server.Shutdown(late) != nil {
			_ = server.Close()
		}
	}()
	address := w.config.AuthCodeURL(w.state, p.asking(oidc.Nonce(w.nonce), oauth2.S256ChallengeOption(w.verifier))...)
	if err := open(address); err != nil {
		return nil, err
	}
	select {
	case o := <-w.done:
		return o.tokens, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type outcome struct {
	tokens *Tokens
	err    error
}

// waiting is a person on the way to a provider and back.
type waiting struct {
	provider               *Provider
	config                 oauth2.Config
	state, nonce, verifier string
	host                   string // by which browsers know us
	once                   sync.Once
	done                   chan outcome
}

// ServeHTTP takes what a provider led a browser back with.
func (w *waiting) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	answer, err := url.ParseQuery(r.URL.RawQuery)
	switch {
	case r.Host != w.host, r.URL.Path != callback: // another name for this address is somebody else's
		http.NotFound(out, r)
		return
	case r.Method != http.MethodGet || err != nil || !answer.Has("state"):
		http.Error(out, "This is no answer of a provider.", http.StatusBadRequest)
		return
	}
	first := false
	w.once.Do(func() { first = true })
	if !first {
		show(out, http.StatusConflict, "There was an answer already.", "This one counts for nothing. You may close this page.")
		return
	}
	tokens, err := w.take(r.Context(), answer)
	if err != nil {
		show(out, http.StatusBadRequest, "You are not signed in.", err.Error())
	} else {
		show(out, http.StatusOK, "You are signed in.", "You may close this page and go back to where you came from.")
	}
	w.done <- outcome{tokens, err}
}

// take exchanges the code of an answer for tokens, if it is the one that is waited for.
func (w *waiting) take(ctx context.Context, answer url.Values) (*Tokens, error) {
	p := w.provider
	if len(answer["state"]) != 1 || subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(w.state)) != 1 {
		return nil, say(ErrForged, "an answer came that does not belong to this sign-in, and nothing was taken from it: begin again with %s, and tell an admin if it happens twice", p.opt.Again)
	}
	if iss := answer["iss"]; len(iss) > 1 || len(iss) == 1 && iss[0] != p.issuer || len(iss) == 0 && p.says.NamesItself {
		return nil, say(ErrForged, "the answer is of another provider than %s, and nothing was taken from it: begin again with %s, and tell an admin if it happens twice", p.issuer, p.opt.Again)
	}
	if answer.Has("error") {
		return nil, p.declined(answer.Get("error"), answer.Get("error_description"))
	}
	if len(answer["code"]) != 1 || answer.Get("code") == "" {
		return nil, p.odd("its answer has no code")
	}
	got, err := w.config.Exchange(p.with(ctx), answer.Get("code"), oauth2.VerifierOption(w.verifier))
	if err != nil {
		return nil, p.refused(ctx, err)
	}
	return p.accept(ctx, got, w.nonce, "")
}

// declined says that the provider or the person did not want.
func (p *Provider) declined(code, why string) error {
	if why != "" {
		why = ": " + short(why)
	}
	switch code {
	case "access_denied":
		return say(ErrDeclined, "the provider at %s did not let you in, or you did not want to%s; begin again with %s", p.issuer, why, p.opt.Again)
	case "expired_token":
		return say(ErrOver, "the code was not typed in time: begin again with %s", p.opt.Again)
	}
	return say(ErrDeclined, "the provider at %s refused with %s%s; have an admin look at the signer %q", p.issuer, short(code), why, p.signer.Name)
}

// refused says why a provider gave no tokens.
func (p *Provider) refused(ctx context.Context, err error) error {
	if no, ok := errors.AsType[*oauth2.RetrieveError](err); ok && no.ErrorCode != "" {
		return p.declined(no.ErrorCode, no.ErrorDescription)
	} else if ok && no.Response.StatusCode >= http.StatusInternalServerError {
		return say(ErrAway, "the provider at %s cannot answer at present (status %d): try again later", p.issuer, no.Response.StatusCode)
	}
	return p.away(ctx, err)
}

// show answers the browser with a page that needs nothing else.
func show(out http.ResponseWriter, status int, head, text string) {
	h := out.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	out.WriteHeader(status)
	fmt.Fprintf(out, `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>%[1]s</title>
<style>body{font:1.1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:20vh auto;padding:0 1rem;color:#1b1b1b;background:#fff}</style></head>
<body><main><h1>%[1]s</h1><p>%[2]s</p></main></body></html>
`, html.EscapeString(head), html.EscapeString(text))
}
