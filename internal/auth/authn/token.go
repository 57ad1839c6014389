package authn

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/golang-jwt/jwt/v5"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Tokens checks JWTs of external signers.
type Tokens struct {
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

// maxToken bounds a token before anything is made of it.
const maxToken = 16 << 10

// Check returns the identity that a token of any signer names, for a login.
func (t *Tokens) Check(ctx context.Context, r kind.Reader, token string) (Proof, error) {
	claims, err := t.Verify(ctx, r, token)
	if err != nil {
		return Proof{}, errDenied
	}
	proof, err := prove(r, claims.identity, signerPrefix+claims.signer.ID, t.now())
	if err != nil {
		return Proof{}, err
	}
	proof.session.ExternalID, proof.session.NotAfter = claims.external, claims.end
	if !proof.identity.NamedBy(claims.signer.ID) {
		tellNaming(t.sets.log, claims.signer.ID, proof.identity)
	}
	if proof.flaw(r, t.now()) != "" {
		return Proof{}, errDenied
	}
	return proof, nil
}

var errToken = errors.New("authn: the token is not acceptable")

// Verify makes every check on every path: the signer by iss, its key by kid,
// a signature method that fits the key, exp and nbf, aud, and the claim that
// names an identity.
func (t *Tokens) Verify(ctx context.Context, r kind.Reader, token string) (Claims, error) {
	if len(token) > maxToken || !unambiguous(token) {
		return Claims{}, errToken
	}
	var signer *model.ExtJWTSigner
	claims := jwt.MapClaims{}
	parser := jwt.NewParser(jwt.WithExpirationRequired(), jwt.WithTimeFunc(t.now),
		jwt.WithValidMethods(signatures), jwt.WithStrictDecoding())
	_, err := parser.ParseWithClaims(token, claims, func(parsed *jwt.Token) (any, error) {
		issuer, err := claims.GetIssuer()
		if err != nil || issuer == "" {
			return nil, errToken
		}
		found, ok := model.ExtJWTSigners.Find(r, "issuer", issuer)
		if !ok || !found.Enabled {
			return nil, errToken
		}
		kid, _ := parsed.Header["kid"].(string)
		_, critical := parsed.Header["crit"] // we know no extension that could be
		if kid == "" || critical || !datable(claims) {
			return nil, errToken
		}
		signer = found
		key := t.sets.key(ctx, found, kid)
		if !fits(key, parsed.Method) {
			return nil, errToken
		}
		return key, nil
	})
	if err != nil {
		return Claims{}, errToken
	}
	return named(r, signer, claims)
}

// unambiguous reports whether everybody reads the same in a token. Of two
// members with one name, readers differ in which they believe.
func unambiguous(token string) bool {
	header, rest, _ := strings.Cut(token, ".")
	claims, _, _ := strings.Cut(rest, ".")
	for _, part := range []string{header, claims} {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || !jsontext.Value(text).IsValid() {
			return false
		}
	}
	return !strings.ContainsAny(token, "\r\n") // which the decoder would skip
}

// lastDate is the end of the year 9999.
const lastDate = 253402300799

// datable reports whether the times of a token are times. Larger numbers
// would wrap around, and a beginning in the far future lie in the past.
func datable(claims jwt.MapClaims) bool {
	for _, name := range []string{"exp", "nbf", "iat"} {
		if at, ok := claims[name].(float64); ok && (at < 0 || at > lastDate) {
			return false
		}
	}
	return true
}

// signatures are the methods that any key may use. A shared secret and none
// are not among them.
var signatures = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// fits reports whether a method is one for this kind of key, so that a token
// cannot choose how its signature is understood.
func fits(key crypto.PublicKey, method jwt.SigningMethod) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		switch method.(type) {
		case *jwt.SigningMethodRSA, *jwt.SigningMethodRSAPSS:
			return true
		}
	case *ecdsa.PublicKey:
		m, ok := method.(*jwt.SigningMethodECDSA)
		return ok && m.CurveBits == k.Curve.Params().BitSize
	case ed25519.PublicKey:
		_, ok := method.(*jwt.SigningMethodEd25519)
		return ok
	}
	return false
}

// named finds the identity that the claims name.
func named(r kind.Reader, signer *model.ExtJWTSigner, claims jwt.MapClaims) (Claims, error) {
	if signer.Audience != "" {
		audience, err := claims.GetAudience()
		if err != nil || !slices.Contains(audience, signer.Audience) {
			return Claims{}, errToken
		}
	}
	name, _ := claims[cmp.Or(signer.ClaimsProperty, "sub")].(string)
	if name == "" {
		return Claims{}, errToken
	}
	end, err := claims.GetExpirationTime()
	if err != nil || end == nil {
		return Claims{}, errToken
	}
	known := Claims{signer: signer, end: end.Time}
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
