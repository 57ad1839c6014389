package authn

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"netkeep.internal/internal/auth/people"
	"netkeep.internal/internal/auth/token"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Tokens checks JWTs of external signers.
type Tokens struct {
	// People is where those become identities whom a token names and nobody
	// knows; if nil, nobody does.
	People *people.Register

	sets keySets
	now  func() time.Time
}

// NewTokens returns a checker that fetches keys with get.
func NewTokens(get func(ctx context.Context, url string) ([]byte, http.Header, error), now func() time.Time, log *slog.Logger) *Tokens {
	return &Tokens{sets: keySets{get: get, now: now, log: log}, now: now}
}

// Claims is a token whose signature, issuer, audience and times were checked.
type Claims struct {
	signer   *model.ExtJWTSigner
	identity string
	external string // id by which it names the identity; empty if it does not
	end      time.Time
}

// Check returns the identity that a token of any signer names, for a login.
func (t *Tokens) Check(ctx context.Context, r kind.Reader, text string) (Proof, error) {
	claims, err := t.Verify(ctx, r, text)
	if err != nil {
		return Proof{}, errDenied
	}
	return t.accept(r, claims)
}

// accept lets somebody in whom a token names.
func (t *Tokens) accept(r kind.Reader, claims Claims) (Proof, error) {
	proof, err := prove(r, claims.identity, signerPrefix+claims.signer.ID, t.now())
	if err != nil {
		return Proof{}, err
	}
	proof.session.ExternalID, proof.session.NotAfter = claims.external, kind.MomentOf(claims.end)
	if !proof.identity.NamedBy(claims.signer.ID) {
		tellNaming(t.sets.log, claims.signer.ID, proof.identity)
	}
	if proof.flaw(r, t.now()) != "" {
		return Proof{}, errDenied
	}
	return proof, nil
}

var errToken = errors.New("authn: the token is not acceptable")

// Verify checks a token and finds the identity that it names: its signer by
// iss, that signer's key by kid, aud, and the claim that names somebody.
func (t *Tokens) Verify(ctx context.Context, r kind.Reader, text string) (Claims, error) {
	signer, said, err := t.read(ctx, r, text)
	if err != nil {
		return Claims{}, err
	}
	return named(r, signer, said)
}

// read checks a token, and returns whose it is and what it says.
func (t *Tokens) read(ctx context.Context, r kind.Reader, text string) (signer *model.ExtJWTSigner, said token.Claims, err error) {
	said, err = token.Check(text, t.now, func(issuer, keyID string) crypto.PublicKey {
		found, ok := model.ExtJWTSigners.Find(r, "issuer", issuer)
		if !ok || !found.Enabled {
			return nil
		}
		signer = found
		return t.sets.key(ctx, found, keyID)
	})
	if err != nil || claimed(signer, said) == "" || signer.Audience != "" && !said.For(signer.Audience) {
		return nil, token.Claims{}, errToken
	}
	return signer, said, nil
}

// claimed is what a token says that somebody is.
func claimed(signer *model.ExtJWTSigner, said token.Claims) string {
	return said.Text(cmp.Or(signer.ClaimsProperty, "sub"))
}

// named finds the identity that the claims name.
func named(r kind.Reader, signer *model.ExtJWTSigner, said token.Claims) (Claims, error) {
	name := claimed(signer, said)
	known := Claims{signer: signer, end: said.Ends()}
	identity, ok := model.Identities.Get(r, name)
	if signer.UseExternalID {
		identity, ok = model.Identities.Find(r, "externalId", name)
		known.external = name
	}
	if !ok {
		return Claims{}, errToken
	}
	known.identity = identity.ID
	return known, nil
}
