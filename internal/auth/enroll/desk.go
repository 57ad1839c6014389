package enroll

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/terse"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/pki"
)

// Desk takes enrollments in: it checks what is shown, signs what is asked for
// under a grant of ours, and lets each token work once.
type Desk struct {
	State  *state.State
	Signer *pki.Signer
	// Bundle is the certificates of our own authority at present.
	Bundle    func() []*x509.Certificate
	Passwords *authn.Passwords
	Tokens    *authn.Tokens
	Now       func() time.Time
	Log       *slog.Logger
	Lifetimes Lifetimes
	// Recorder takes note of what is issued.
	Recorder *audit.Recorder
	// SessionCertificates is how many certificates an API session may have.
	SessionCertificates int
}

// Lifetimes is how long the certificates that we issue are good for.
type Lifetimes struct {
	Identity  time.Duration
	Router    time.Duration
	Ephemeral time.Duration
}

// find returns the outstanding enrollment of a token, which must be for one of
// the methods.
func (d *Desk) find(r kind.Reader, token string, methods ...string) (*model.Enrollment, error) {
	e, ok := model.Enrollments.Find(r, "token", token)
	if !ok || token == "" {
		return nil, errToken
	}
	for _, m := range methods {
		if e.Method != m {
			continue
		}
		if !d.Now().Before(e.ExpiresAt) {
			return nil, fault.New(fault.CodeEnrollExpired, "the enrollment has expired; ask for a new one")
		}
		return e, nil
	}
	return nil, errToken
}

var errToken = fault.New(fault.CodeEnrollToken, "there is no enrollment with this token; it may have been used")

// Method returns how a token enrolls.
func (d *Desk) Method(r kind.Reader, token string) (string, error) {
	e, ok := model.Enrollments.Find(r, "token", token)
	if !ok || token == "" {
		return "", errToken
	}
	return e.Method, nil
}

// Invited returns whom a token is for: an identity or a router.
func (d *Desk) Invited(r kind.Reader, token string) state.Author {
	e, ok := model.Enrollments.Find(r, "token", token)
	if !ok || token == "" {
		return state.Nobody
	}
	if i, ok := model.Identities.Get(r, e.IdentityID); ok {
		return authn.By(i)
	}
	for _, id := range []string{e.EdgeRouterID, e.TransitRouterID} {
		if id != "" {
			return state.Author{Kind: model.Routers.Def.Name, ID: id}
		}
	}
	return state.Nobody
}

// redeem uses up an enrollment in the same write as what it brings about, so
// that of many who hold the token one wins.
func (d *Desk) redeem(ctx context.Context, by state.Author, e *model.Enrollment, then func(tx *state.Tx) error) error {
	by = state.Author{Kind: model.Enrollments.Def.Name, ID: e.ID}.On(by)
	return d.State.Update(ctx, by, func(tx *state.Tx) error {
		now, still := model.Enrollments.Get(tx, e.ID)
		if !still || now.Token != e.Token {
			return errToken
		}
		if err := model.Enrollments.Delete(tx, e.ID); err != nil {
			return err
		}
		return then(tx)
	})
}

// issue signs a client certificate for the holder of a CSR's key. What it says
// is ours to decide: of the CSR only the key counts.
func (d *Desk) issue(name string, csr []byte, lifetime time.Duration, uris ...*url.URL) ([]*x509.Certificate, error) {
	req, err := pki.ParseCSR(csr)
	if err != nil {
		return nil, err
	}
	grant, err := pki.ClientGrant(name, uris, lifetime)
	if err != nil {
		return nil, err
	}
	return d.sign(grant, req)
}

func (d *Desk) sign(grant pki.Grant, req *x509.CertificateRequest) ([]*x509.Certificate, error) {
	chain, err := d.Signer.Sign(grant, req.PublicKey)
	if err != nil {
		return nil, fault.Wrap(fault.CodeCSR, err)
	}
	return chain, nil
}

// issued has the audit log tell of certificates that somebody got.
func (d *Desk) issued(by state.Author, r kind.Reader, of *kind.Def, id string, leaves ...*x509.Certificate) {
	whom := audit.Target{Kind: of.Name, ID: id}
	if rec, ok := r.Lookup(of, id); ok {
		whom.Name = of.Label(rec)
	}
	for _, leaf := range leaves {
		d.Recorder.Note(audit.Fact{
			Event: audit.Issued, By: by, Target: whom,
			Reason: fmt.Sprintf("serial number %x, until %s", leaf.SerialNumber, leaf.NotAfter.UTC().Format(time.RFC3339)),
		})
	}
}

// certificateAuthenticator is the credential of whoever holds the key of a
// certificate.
func certificateAuthenticator(identityID, caID string, cert *x509.Certificate) *model.Authenticator {
	return &model.Authenticator{
		IdentityID: identityID, Method: model.MethodCert,
		CertPEM: terse.Of(pki.EncodeCertificates(cert)), Fingerprint: pki.Fingerprint(cert), NotAfter: kind.MomentOf(cert.NotAfter),
		SeldomAuthenticator: &model.SeldomAuthenticator{CAID: caID},
	}
}

// unused refuses a certificate that is somebody's already.
func unused(r kind.Reader, cert *x509.Certificate) error {
	if _, taken := model.Authenticators.Find(r, "fingerprint", pki.Fingerprint(cert)); taken {
		return fault.New(fault.CodeCertInUse, "the certificate is in use by an identity already")
	}
	return nil
}
