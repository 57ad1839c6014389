package authn

import (
	"context"
	"crypto"
	"crypto/x509"
	"slices"
	"strings"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
)

// Routers of others are told the tokens of sessions, because clients show them
// tokens. So a token alone does not show that a request is from the session's
// holder: what routers never have is the key of a certificate of the session.

// ErrHeld says that a token is not enough.
var ErrHeld = fault.New(fault.CodeUnauthorized, "routers may know the token of this session: the connection must present a certificate of the session; or authenticate at the Management API, whose sessions no router is told of")

// Known reports whether routers may have been told of the caller's session. One
// that was never told of is not: its token is its holder's alone.
func (c *Caller) Known() bool { return !c.session.Withheld }

// ByCertificate reports whether the caller's session was opened with a
// certificate, so that its holder has one to show whenever it connects.
func (c *Caller) ByCertificate(r kind.Reader) bool { return c.session.Certificate(r) != "" }

// Holds reports whether a connection that presented certificates is the
// session's holder's: the first of them, whose key the handshake has proved, is
// one of the session. That may be the one that it was opened with, the one that
// took its place since, or one that the session asked for.
func (c *Caller) Holds(r kind.Reader, presented []*x509.Certificate) bool {
	if len(presented) == 0 {
		return false
	}
	shown := pki.Fingerprint(presented[0])
	if shown == c.session.Fingerprint || shown == c.session.Certificate(r) {
		return true
	}
	cert, ok := model.SessionCertificates.Find(r, "fingerprint", shown)
	return ok && cert.APISessionID == c.session.ID
}

// HoldsKey reports whether a public key is that of a certificate that the
// caller's session asked for. Clients that show none to the controller ask for
// the next one with the key of the one before.
func (c *Caller) HoldsKey(r kind.Reader, key crypto.PublicKey) bool {
	certs := slices.Collect(model.SessionCertificates.Select(r, "apiSessionId", c.session.ID))
	return slices.ContainsFunc(certs, func(s *model.SessionCertificate) bool {
		cert, err := pki.ParseCertificates([]byte(s.Certificate), 1)
		return err == nil && pki.SamePublic(cert[0].PublicKey, key)
	})
}

// Repeats reports whether a JWT is as good as the one that the caller's session
// was opened with: of the same signer, for the same identity.
func (c *Caller) Repeats(ctx context.Context, r kind.Reader, tokens *Tokens, bearer string) bool {
	if bearer == "" || !strings.HasPrefix(c.session.AuthenticatorID, signerPrefix) {
		return false
	}
	proof, err := tokens.Check(ctx, r, bearer)
	return err == nil && proof.session.AuthenticatorID == c.session.AuthenticatorID && proof.identity.ID == c.identity.ID
}
