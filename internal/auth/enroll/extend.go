package enroll

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"net/url"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/terse"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
)

// Extend issues a new certificate for an authenticator of the caller. The old
// one stays good until the new one is shown to have arrived.
func (d *Desk) Extend(ctx context.Context, by state.Author, r kind.Reader, who *authn.Caller, id string, presented []*x509.Certificate, csr []byte) ([]*x509.Certificate, error) {
	a, err := authn.Own(r, who, id)
	if err != nil {
		return nil, err
	}
	if a.Method != model.MethodCert {
		return nil, fault.New(fault.CodeAuthenticator, "only a certificate can be extended")
	}
	if len(presented) == 0 || pki.Fingerprint(presented[0]) != a.Fingerprint {
		return nil, errPresented
	}
	if _, err := pki.NewRoots(d.Bundle()).VerifyLeaf(presented, pki.VerifyOptions{Now: d.Now()}); err != nil {
		return nil, fault.New(fault.CodeAuthenticator, "the certificate was not issued by this controller")
	}
	chain, err := d.issue(a.IdentityID, csr, d.Lifetimes.Identity)
	if err != nil {
		return nil, err
	}
	err = d.State.Update(ctx, by, func(tx *state.Tx) error {
		return model.Authenticators.Edit(tx, id, func(a *model.Authenticator) error {
			if pki.Fingerprint(presented[0]) != a.Fingerprint {
				return errPresented // another has taken its place meanwhile
			}
			a.PendingCertPEM = terse.Of(pki.EncodeCertificates(chain[0]))
			return nil
		})
	})
	if err == nil {
		d.issued(by, r, model.Identities.Def, a.IdentityID, chain[0])
	}
	return chain, err
}

var errPresented = fault.New(fault.CodeUnauthorized, "the connection must present the authenticator's present certificate")

// Confirm puts the new certificate in the old one's place. Sessions that the
// old one opened stay.
func (d *Desk) Confirm(ctx context.Context, by state.Author, r kind.Reader, who *authn.Caller, id string, shown []byte) error {
	a, err := authn.Own(r, who, id)
	if err != nil {
		return err
	}
	if a.PendingCertPEM == "" {
		return fault.New(fault.CodeAuthenticator, "no new certificate is waiting; extend first")
	}
	certs, err := pki.ParseCertificates(shown, maxShown)
	if err != nil || terse.Of(pki.EncodeCertificates(certs[0])) != a.PendingCertPEM {
		return fault.On(fault.CodeClientCert, "clientCert", "must be the certificate that was issued last", nil)
	}
	return d.State.Update(ctx, by, func(tx *state.Tx) error {
		return model.Authenticators.Edit(tx, id, func(now *model.Authenticator) error {
			if now.PendingCertPEM != a.PendingCertPEM {
				return fault.New(fault.CodeAuthenticator, "another certificate was issued meanwhile")
			}
			now.LastExtendRolledKeys = rolled(now.CertPEM.String(), certs[0])
			now.IsExtendRequested, now.IsKeyRollRequested = false, false
			now.CertPEM, now.Fingerprint, now.PendingCertPEM = now.PendingCertPEM, pki.Fingerprint(certs[0]), ""
			now.NotAfter = kind.MomentOf(certs[0].NotAfter)
			return nil
		})
	})
}

// rolled reports whether a certificate has another key than the one before.
func rolled(before string, after *x509.Certificate) bool {
	was, err := pki.ParseCertificates([]byte(before), 1)
	return err == nil && !bytes.Equal(was[0].RawSubjectPublicKeyInfo, after.RawSubjectPublicKeyInfo)
}

// Request asks the holder of a certificate to have it extended before it is
// time, and with a new key if that is wanted. Whoever holds it finds that in its
// session. One that was issued before, and has yet to arrive, is not meant: it may
// be of the key that is to be replaced.
func (d *Desk) Request(ctx context.Context, by state.Author, id string, newKey bool) error {
	now := d.Now().UTC().Truncate(time.Millisecond)
	return d.State.Update(ctx, by, func(tx *state.Tx) error {
		return model.Authenticators.Edit(tx, id, func(a *model.Authenticator) error {
			if a.Method != model.MethodCert {
				return fault.New(fault.CodeAuthenticator, "only a certificate can be extended, and this is a user name and password")
			}
			if !a.IssuedHere() {
				return fault.New(fault.CodeAuthenticator, "the certificate was issued by a CA of others, where it has to be renewed")
			}
			a.IsExtendRequested, a.IsKeyRollRequested, a.ExtendRequestedAt = true, newKey, &now
			a.PendingCertPEM = ""
			return nil
		})
	})
}

// maxShown is how many certificates a client may send back: the chain it got.
const maxShown = 5

// Ephemeral issues a certificate that ends with the caller's session. A session
// has only so many; those that have expired make room. Routers are told of the
// session from then on, if they were not: so the first one is for whoever has the
// token, and any other for who holds a certificate of the session, as the
// connection shows, or the key of one that it asked for.
func (d *Desk) Ephemeral(ctx context.Context, by state.Author, r kind.Reader, who *authn.Caller, holds bool, csr []byte) (*model.SessionCertificate, []*x509.Certificate, error) {
	session := who.Session().ID
	if _, err := d.expired(r, session); err != nil {
		return nil, nil, err // before there is any work in it
	}
	req, err := pki.ParseCSR(csr)
	if err != nil {
		return nil, nil, err
	}
	holds = holds || who.HoldsKey(r, req.PublicKey)
	id := state.NewID()
	chain, err := d.issue(who.Identity().ID, csr, d.Lifetimes.Ephemeral, sessionURI(who.Identity().ID, session, id))
	if err != nil {
		return nil, nil, err
	}
	leaf := chain[0]
	var rec *model.SessionCertificate
	err = d.State.UpdateSessions(ctx, by, func(tx *state.Tx) error {
		if err := reveal(tx, session, holds); err != nil {
			return err
		}
		old, err := d.expired(tx, session)
		if err != nil {
			return err
		}
		for _, id := range old {
			if err := model.SessionCertificates.Delete(tx, id); err != nil {
				return err
			}
		}
		rec = &model.SessionCertificate{
			Meta: kind.Meta{ID: id}, APISessionID: session, Subject: leaf.Subject.String(), Fingerprint: pki.Fingerprint(leaf),
			Certificate: string(pki.EncodeCertificates(leaf)), ValidFrom: leaf.NotBefore, ValidTo: leaf.NotAfter,
		}
		return model.SessionCertificates.Create(tx, rec)
	})
	if err == nil {
		d.issued(by, r, model.Identities.Def, who.Identity().ID, leaf)
	}
	return rec, chain, err
}

// sessionURI is the name of a certificate of a session. Routers of OpenZiti 2.0 know it by
// that to be of the session that an access token names: the token was made before it.
func sessionURI(identity, session, id string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: "netkeep", Path: "/identity/" + identity + "/apiSession/" + session + "/apiSessionCertificate/" + id}
}

// reveal has routers be told of a session. One that they may know already takes
// more than its token.
func reveal(tx *state.Tx, session string, holds bool) error {
	now, ok := model.APISessions.Get(tx, session)
	if ok && now.Withheld {
		return model.APISessions.Edit(tx, session, func(s *model.APISession) error {
			s.Withheld = false
			return nil
		})
	}
	if !holds {
		return authn.ErrHeld
	}
	return nil
}

// expired returns the certificates of a session that have expired. It fails if
// there are as many others as there may be.
func (d *Desk) expired(r kind.Reader, session string) (ids []string, err error) {
	good, now := 0, d.Now()
	for c := range model.SessionCertificates.Select(r, "apiSessionId", session) {
		if now.After(c.ValidTo) {
			ids = append(ids, c.ID)
		} else {
			good++
		}
	}
	if good >= d.SessionCertificates {
		return nil, fault.New(fault.CodeCertificates, fmt.Sprintf("this API session has %d certificates already; delete one that is not used", good))
	}
	return ids, nil
}

// Revert deletes an authenticator and invites its identity to enroll again in
// the same way.
func (d *Desk) Revert(ctx context.Context, by state.Author, a *model.Authenticator, invite *model.Enrollment) (id string, err error) {
	err = d.State.Update(ctx, by, func(tx *state.Tx) error {
		if err := model.Authenticators.Delete(tx, a.ID); err != nil {
			return err
		}
		fresh := *invite
		err := model.Enrollments.Create(tx, &fresh)
		id = fresh.ID
		return err
	})
	return id, err
}
