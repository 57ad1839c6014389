package oidc

import (
	"cmp"
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/auth/token"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
)

const (
	// accessTime is how long an access token is good for, as long as its session is.
	accessTime = authn.BearerTime
	// codeTime is how long a client may take to come back with its code.
	codeTime = time.Minute
)

// code is what a client gets for a login, and exchanges for tokens, once.
type code struct {
	Session, Login   string
	Client, Redirect string
	Nonce, Challenge string
	Scopes           []string
	Until            time.Time
}

// land returns what has a client sent back that has shown everything.
func (p *Provider) land(session *model.APISession, q request) (string, error) {
	until := p.Now().Add(codeTime)
	text, err := p.seal("code").Write(code{
		Session: session.ID, Login: q.login(), Client: q.Client, Redirect: q.Redirect, Nonce: q.Nonce, Challenge: q.Challenge, Scopes: q.Scopes, Until: until,
	})
	if err != nil {
		return "", err
	}
	return p.seal("landing").Write(landing{Redirect: q.Redirect, State: q.State, Code: text, Until: until})
}

// server is the provider in the words of the library.
type server struct {
	op.UnimplementedServer
	*Provider
}

// VerifyClient finds the program that asks.
func (s *server) VerifyClient(_ context.Context, r *op.Request[op.ClientCredentials]) (op.Client, error) {
	if r.Method != http.MethodPost || len(r.URL.RawQuery) > 0 {
		return nil, oidc.ErrInvalidRequest().WithDescription("send this with POST, and all of it in the body")
	}
	if !slices.Contains(clients, r.Data.ClientID) || r.Data.ClientAssertion != "" {
		return nil, op.NewStatusError(oidc.ErrInvalidClient().WithDescription("client_id is not known here; it is one of %s", strings.Join(clients, ", ")), http.StatusUnauthorized)
	}
	return client{id: r.Data.ClientID}, nil
}

// errGrant is the one answer to whatever is not good for tokens.
func errGrant() error {
	return oidc.ErrInvalidGrant().WithDescription("it is unknown, over or used already, or its session has ended; log in again")
}

// CodeExchange gives out the first tokens of a session.
func (s *server) CodeExchange(ctx context.Context, r *op.ClientRequest[oidc.AccessTokenRequest]) (*op.Response, error) {
	var c code
	in := r.Data
	if err := s.seal("code").Read(in.Code, &c); err != nil || !s.Now().Before(c.Until) {
		return nil, errGrant()
	}
	if c.Client != r.Client.GetID() || c.Redirect != in.RedirectURI || !proves(in.CodeVerifier, c.Challenge) {
		return nil, errGrant()
	}
	session, _, err := s.find(ctx, c.Session, 0)
	if err != nil || session.Login != c.Login {
		return nil, errGrant()
	}
	if session, err = s.next(ctx, session, 0); err != nil {
		return nil, err
	}
	said, err := s.give(session, c.Scopes, c.Nonce)
	if err != nil {
		return nil, err
	}
	return op.NewResponse(&oidc.AccessTokenResponse{
		AccessToken: said.access, TokenType: oidc.BearerToken, RefreshToken: said.refresh, ExpiresIn: said.seconds, IDToken: said.id,
	}), nil
}

// proves reports whether a verifier is the one that a challenge was made of.
func proves(verifier, challenge string) bool {
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

// find returns a session that has given out tokens as often as somebody says, at
// least, and the state in which it has.
func (p *Provider) find(ctx context.Context, id string, turn int) (*model.APISession, *state.Snapshot, error) {
	snap := p.snap()
	session, ok := model.APISessions.Get(snap, id)
	if !ok || session.Turn < turn { // another controller may know more
		now, err := p.State.Current(ctx)
		if err != nil {
			return nil, nil, oidc.ErrServerError().WithDescription("the controller cannot find out about the session; try again")
		}
		snap = p.View(now)
		session, ok = model.APISessions.Get(snap, id)
	}
	if !ok || session.Client == "" || session.Turn < turn || p.Sessions.Flaw(snap, session) != "" {
		return nil, nil, errGrant()
	}
	return session, snap, nil
}

// next has a session give out its next tokens. What was used already ends it: either
// of the two who had it has stolen it.
func (p *Provider) next(ctx context.Context, session *model.APISession, turn int) (*model.APISession, error) {
	by := p.holding(ctx, session)
	turned, err := p.Sessions.Turn(ctx, by, session.ID, turn)
	switch {
	case err == nil:
		return turned, nil
	case authn.Replayed(err):
		what := "a refresh token was used twice"
		if turn == 0 {
			what = "a code was used twice"
		}
		p.Stolen(by, session, what)
		if err := p.Sessions.End(ctx, by, session.ID); err != nil && !fault.Is(err, fault.CodeNotFound) {
			p.Log.Error("a session whose token was used twice could not be ended", "session", session.ID, "error", err)
		}
		return nil, errGrant()
	case fault.Is(err, fault.CodeNotFound):
		return nil, errGrant()
	}
	p.Log.Error("tokens could not be given out", "error", err)
	return nil, op.NewStatusError(oidc.ErrServerError().WithDescription("the controller could not write down that it gives out tokens; try again"), http.StatusServiceUnavailable)
}

// holding is whoever holds a session as the author of a write.
func (p *Provider) holding(ctx context.Context, session *model.APISession) state.Author {
	by := authorOf(ctx)
	if who, ok := model.Identities.Get(p.snap(), session.IdentityID); ok {
		by = authn.By(who).On(by)
	}
	by.Session = session.ID
	return by
}

// given are the tokens that a client gets.
type given struct {
	access, refresh, id string
	seconds             uint64
}

// give makes the tokens of a session's turn.
func (p *Provider) give(session *model.APISession, scopes []string, nonce string) (out given, err error) {
	until := p.Now().Add(accessTime)
	out.seconds = uint64(accessTime / time.Second)
	if out.access, err = p.Sessions.Bear(p.snap(), session, p.issuer(), scopes, until); err != nil {
		return out, err
	}
	if out.id, err = p.identify(session, nonce); err != nil {
		return out, err
	}
	if slices.Contains(scopes, oidc.ScopeOfflineAccess) {
		out.refresh, err = p.Sessions.RefreshToken(session, p.issuer())
	}
	return out, err
}

// idClaims are what an ID token says. It opens nothing here.
type idClaims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience []string `json:"aud"`
	Expires  int64    `json:"exp"`
	Issued   int64    `json:"iat"`
	AuthTime int64    `json:"auth_time"`
	Nonce    string   `json:"nonce,omitempty"`
	Party    string   `json:"azp"`
	Session  string   `json:"sid"`
	Name     string   `json:"name"`
	Type     string   `json:"z_t"`
}

// idType is what an ID token says of itself, so that it is not taken for another.
const idType = "i"

// identify makes an ID token.
func (p *Provider) identify(session *model.APISession, nonce string) (string, error) {
	now := p.Now()
	said := idClaims{
		Issuer: p.issuer(), Subject: session.IdentityID, Audience: []string{session.Client}, Expires: now.Add(accessTime).Unix(), Issued: now.Unix(),
		AuthTime: session.CreatedAt.Time().Unix(), Nonce: nonce, Party: session.Client, Session: session.ID, Type: idType,
	}
	if who, ok := model.Identities.Get(p.snap(), session.IdentityID); ok {
		said.Name = who.Name
	}
	return p.IDs.Sign(said)
}

// refreshed are the scopes of tokens that are got with a refresh token.
var refreshed = []string{oidc.ScopeOpenID, oidc.ScopeOfflineAccess}

// RefreshToken gives out the next tokens of a session.
func (s *server) RefreshToken(ctx context.Context, r *op.ClientRequest[oidc.RefreshTokenRequest]) (*op.Response, error) {
	out, err := s.refresh(ctx, r.Client.GetID(), r.Data.RefreshToken)
	if err != nil {
		return nil, err
	}
	return op.NewResponse(&oidc.AccessTokenResponse{
		AccessToken: out.access, TokenType: oidc.BearerToken, RefreshToken: out.refresh, ExpiresIn: out.seconds, IDToken: out.id,
	}), nil
}

func (p *Provider) refresh(ctx context.Context, client, text string) (given, error) {
	session, _, turn, err := p.holder(ctx, client, text)
	if err != nil {
		return given{}, err
	}
	if session, err = p.next(ctx, session, turn); err != nil {
		return given{}, err
	}
	return p.give(session, refreshed, "")
}

// holder returns the session that a refresh token is of, for the client that it was
// made for.
func (p *Provider) holder(ctx context.Context, client, text string) (*model.APISession, *state.Snapshot, int, error) {
	id, turn, ok := p.Sessions.ReadRefresh(text)
	if !ok || turn == 0 {
		return nil, nil, 0, errGrant()
	}
	session, snap, err := p.find(ctx, id, turn)
	if err == nil && session.Client != client {
		err = errGrant()
	}
	return session, snap, turn, err
}

// TokenExchange does for OpenZiti's SDKs what RefreshToken does: they exchange a
// refresh token for the next one, and then the same for an ID token, which is worth
// nothing here. Nothing else is exchanged: who has an access token has it for a while,
// and routers see those.
func (s *server) TokenExchange(ctx context.Context, r *op.ClientRequest[oidc.TokenExchangeRequest]) (*op.Response, error) {
	in := r.Data
	if in.SubjectTokenType != oidc.RefreshTokenType || in.ActorToken != "" {
		return nil, oidc.ErrInvalidRequest().WithDescription("only refresh tokens are exchanged; log in again if there is none")
	}
	if len(in.Audience)+len(in.Resource) > 0 {
		return nil, oidc.ErrInvalidTarget()
	}
	if in.RequestedTokenType == oidc.IDTokenType {
		return s.exchangeForID(ctx, r.Client.GetID(), in.SubjectToken)
	}
	out, err := s.refresh(ctx, r.Client.GetID(), in.SubjectToken)
	if err != nil {
		return nil, err
	}
	return op.NewResponse(&oidc.TokenExchangeResponse{
		AccessToken: out.access, IssuedTokenType: cmp.Or(in.RequestedTokenType, oidc.RefreshTokenType), TokenType: oidc.BearerToken,
		ExpiresIn: out.seconds, Scopes: refreshed, RefreshToken: out.refresh, IDToken: out.id,
	}), nil
}

// exchangeForID gives out an ID token, also for the refresh token that was the last
// but one.
func (s *server) exchangeForID(ctx context.Context, client, text string) (*op.Response, error) {
	session, _, turn, err := s.holder(ctx, client, text)
	if err != nil {
		return nil, err
	}
	if turn < session.Turn-1 {
		return nil, errGrant()
	}
	id, err := s.identify(session, "")
	if err != nil {
		return nil, err
	}
	return op.NewResponse(&oidc.TokenExchangeResponse{
		AccessToken: id, IssuedTokenType: oidc.IDTokenType, TokenType: "N_A", ExpiresIn: uint64(accessTime / time.Second),
	}), nil
}

// Revocation ends the session of a refresh token or an access token. Who asks for what
// there is not is told that it is gone, as RFC 7009 has it.
func (s *server) Revocation(ctx context.Context, r *op.ClientRequest[oidc.RevocationRequest]) (*op.Response, error) {
	if err := s.end(ctx, r.Client.GetID(), r.Data.Token); err != nil {
		return nil, op.NewStatusError(oidc.ErrServerError().WithDescription("the controller could not end the session; try again"), http.StatusServiceUnavailable)
	}
	return op.NewResponse(struct{}{}), nil
}

// end ends the session of a token, if a client has one.
func (p *Provider) end(ctx context.Context, client, text string) error {
	id, _, ok := p.Sessions.ReadRefresh(text)
	if !ok {
		if id, ok = p.Sessions.Named(text); !ok {
			return nil
		}
	}
	return p.endNamed(ctx, id, client)
}

// endNamed ends a session that was opened for a client.
func (p *Provider) endNamed(ctx context.Context, id, client string) error {
	session, ok := model.APISessions.Get(p.snap(), id)
	if !ok {
		now, err := p.State.Current(ctx)
		if err != nil {
			return err
		}
		session, ok = model.APISessions.Get(now, id)
	}
	if !ok || session.Client != client {
		return nil
	}
	if err := p.Sessions.End(ctx, p.holding(ctx, session), id); err != nil && !fault.Is(err, fault.CodeNotFound) {
		return err
	}
	return nil
}

// hinted returns the session that an ID token is of, and its client.
func (p *Provider) hinted(text string) (id, client string, ok bool) {
	said, err := token.Check(text, p.Now, func(_, keyID string) crypto.PublicKey { return p.IDs.Key(keyID) })
	if err != nil || said.Text("z_t") != idType {
		return "", "", false
	}
	return said.Text("sid"), said.Text("azp"), true
}
