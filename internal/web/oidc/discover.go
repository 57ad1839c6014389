package oidc

import (
	"context"
	"net/http"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"netkeep.internal/internal/lang/fault"
)

// endpoints are those that the library answers at. The others are not offered.
var endpoints = op.Endpoints{
	Authorization: op.NewEndpoint("authorize"), Token: op.NewEndpoint("oauth/token"), Revocation: op.NewEndpoint("revoke"), JwksURI: op.NewEndpoint("keys"),
}

// Discovery tells what is offered, and where.
func (s *server) Discovery(context.Context, *op.Request[struct{}]) (*op.Response, error) {
	at := s.issuer()
	return op.NewResponse(&oidc.DiscoveryConfiguration{
		Issuer: at, AuthorizationEndpoint: endpoints.Authorization.Absolute(at), TokenEndpoint: endpoints.Token.Absolute(at),
		RevocationEndpoint: endpoints.Revocation.Absolute(at), JwksURI: endpoints.JwksURI.Absolute(at), EndSessionEndpoint: at + "/end_session",
		ScopesSupported: refreshed, ResponseTypesSupported: []string{"code"}, ResponseModesSupported: []string{"query"},
		GrantTypesSupported:   client{}.GrantTypes(),
		SubjectTypesSupported: []string{"public"}, IDTokenSigningAlgValuesSupported: []string{string(jose.RS256)},
		TokenEndpointAuthMethodsSupported: []oidc.AuthMethod{oidc.AuthMethodNone}, RevocationEndpointAuthMethodsSupported: []oidc.AuthMethod{oidc.AuthMethodNone},
		CodeChallengeMethodsSupported: []oidc.CodeChallengeMethod{oidc.CodeChallengeMethodS256},
		ClaimsSupported:               []string{"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "azp", "sid", "name"},
	}), nil
}

// Keys tells the keys that tokens are checked with.
func (s *server) Keys(context.Context, *op.Request[struct{}]) (*op.Response, error) {
	all := s.Public()
	for _, one := range s.IDs.Public() {
		all = append(all, jose.JSONWebKey{Key: one.Key, KeyID: one.ID, Algorithm: string(jose.RS256), Use: "sig"})
	}
	return op.NewResponse(&jose.JSONWebKeySet{Keys: all}), nil
}

// endSession ends the session of whoever sends one of its tokens. Nobody is sent
// anywhere from here.
func (p *Provider) endSession(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, fault.New(fault.CodeBody, "the body cannot be read"))
		return
	}
	id, client, ok := p.hinted(r.Form.Get("id_token_hint"))
	if !ok {
		refuse(w, fault.Invalid("id_token_hint", "must be an ID token of this network whose time is not over", nil))
		return
	}
	if err := p.endNamed(r.Context(), id, client); err != nil {
		refuse(w, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{})
}
