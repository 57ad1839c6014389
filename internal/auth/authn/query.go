package authn

import (
	"context"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Query is a factor that a caller has yet to show.
type Query struct {
	TypeID     string `json:"typeId" doc:"What to show: MFA is a one-time or recovery code, EXT-JWT a token of another issuer."`
	Provider   string `json:"provider" kind:"nullable" doc:"Who checks it; url for a token, which comes from httpUrl."`
	HTTPMethod string `json:"httpMethod" kind:"omit" doc:"Method of the request that shows it; left out where every request has to carry it."`
	HTTPURL    string `json:"httpUrl" doc:"Where to show it, or for a token, where to get one."`
	MinLength  int    `json:"minLength" kind:"omit" doc:"How many characters a code has at least."`
	MaxLength  int    `json:"maxLength" kind:"omit" doc:"How many characters a code has at most."`
	Format     string `json:"format" kind:"omit" doc:"What a code is made of."`

	ID       string   `json:"id" kind:"omit" doc:"Id of the signer whose token it is."`
	ClientID string   `json:"clientId" kind:"omit" doc:"What the issuer of a token calls the application to log in with."`
	Scopes   []string `json:"scopes" doc:"What to ask the issuer of a token for, beyond the token itself; empty if there is nothing."`
}

// outstanding lists the factors that a request lacks. A one-time code is
// remembered by the session; a JWT has to come with every request.
func (s *APISessions) outstanding(ctx context.Context, r kind.Reader, p Proof, session *model.APISession, bearer string) []Query {
	var queries []Query
	rules := p.policy.Secondary
	if p.lacksCode(session) {
		queries = append(queries, Query{
			TypeID: "MFA", Provider: "ziti", HTTPMethod: "POST", HTTPURL: "./authenticate/mfa",
			MinLength: 4, MaxLength: 6, Format: "alphaNumeric",
		})
	}
	if rules.RequireExtJWTSigner != "" && !s.showsJWT(ctx, r, p, bearer) {
		query := Query{TypeID: "EXT-JWT", Provider: "url", ID: rules.RequireExtJWTSigner}
		if signer, ok := model.ExtJWTSigners.Get(r, query.ID); ok {
			query.HTTPURL, query.ClientID, query.Scopes = signer.ExternalAuthURL, signer.ClientID, signer.Scopes
		}
		queries = append(queries, query)
	}
	return queries
}

// showsJWT reports whether the bearer token is one of the required signer for
// this very identity.
func (s *APISessions) showsJWT(ctx context.Context, r kind.Reader, p Proof, bearer string) bool {
	if bearer == "" {
		return false
	}
	claims, err := s.Tokens.Verify(ctx, r, bearer)
	return err == nil && claims.signer.ID == p.policy.Secondary.RequireExtJWTSigner && claims.identity == p.identity.ID
}
