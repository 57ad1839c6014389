package authn

import (
	"crypto/x509"
	"log/slog"
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
)

// Certificates checks client certificates.
type Certificates struct {
	// Bundle is the certificates of our own authority at present.
	Bundle func() []*x509.Certificate
	Now    func() time.Time
	Log    *slog.Logger
}

// ForClients is what a certificate must be good for to show who somebody is,
// here and when enrolling: one that is made for servers, mail or programs is
// often easier to come by. One that does not speak of purposes has them all.
var ForClients = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}

// Check returns the identity of the first of the presented certificates, the
// one whose key the TLS handshake has proved. The others only help to build
// its chain.
func (c *Certificates) Check(r kind.Reader, presented []*x509.Certificate) (Proof, error) {
	if len(presented) == 0 {
		return Proof{}, errDenied
	}
	now := c.Now()
	anchors, cas := anchorsForAuth(r, c.Bundle())
	leaf, err := pki.NewRoots(anchors).VerifyLeaf(presented, pki.VerifyOptions{Now: now, Usages: ForClients})
	if err != nil || leaf.Certificate().IsCA {
		return Proof{}, errDenied // a CA vouches for others and is nobody itself
	}
	proof, err := c.owner(r, leaf, cas)
	if err != nil {
		return Proof{}, err
	}
	proof.session.NotAfter, proof.session.Fingerprint = kind.MomentOf(leaf.NotAfter()), pki.Fingerprint(leaf.Certificate())
	if leaf.NotYetValid(now) || proof.flaw(r, now) != "" {
		return Proof{}, errDenied
	}
	return proof, nil
}

// owner finds whose certificate it is: by the external id in it, if the CA
// that issued it says where one is and may name whom it means, and else by its
// fingerprint.
func (c *Certificates) owner(r kind.Reader, leaf pki.VerifiedLeaf, cas map[string]*model.CA) (Proof, error) {
	var named *model.Identity // by a CA that may not
	issuer := ""
	for _, cert := range leaf.Chain()[1:] {
		ca := cas[pki.Fingerprint(cert)]
		if ca == nil {
			continue
		}
		if issuer = ca.ID; ca.ExternalIDClaim == nil {
			continue
		}
		if id, ok := ca.ExternalIDClaim.Find(leaf.Certificate()); ok {
			identity, ok := model.Identities.Find(r, "externalId", id)
			if !ok {
				return Proof{}, errDenied
			}
			if mayName(r, identity, ca.ID) {
				return c.named(r, ca, identity)
			}
			named = identity
			break // it may still be somebody's own
		}
	}
	a, ok := model.Authenticators.Find(r, "fingerprint", pki.Fingerprint(leaf.Certificate()))
	if !ok {
		if named != nil {
			tellNaming(c.Log, issuer, named)
		}
		return Proof{}, errDenied
	}
	proof, err := prove(r, a.IdentityID, a.ID, c.Now())
	if err != nil {
		return Proof{}, err
	}
	proof.session.CAID = issuer
	return proof, nil
}

// named returns the proof of an identity whose external id a CA has put into a
// certificate.
func (c *Certificates) named(r kind.Reader, ca *model.CA, identity *model.Identity) (Proof, error) {
	proof, err := prove(r, identity.ID, internalAuthenticator, c.Now())
	if err != nil {
		return Proof{}, err
	}
	proof.session.CAID, proof.session.ExternalID = ca.ID, identity.ExternalID
	return proof, nil
}

// anchorsForAuth are our own authority and the CAs of others that may
// authenticate, with the latter by fingerprint.
func anchorsForAuth(r kind.Reader, bundle []*x509.Certificate) ([]*x509.Certificate, map[string]*model.CA) {
	anchors, cas := append([]*x509.Certificate(nil), bundle...), map[string]*model.CA{}
	for ca := range model.CAs.All(r) {
		if !ca.IsVerified || !ca.IsAuthEnabled {
			continue
		}
		if cert, err := ca.Certificate(); err == nil {
			anchors = append(anchors, cert)
			cas[ca.Fingerprint] = ca
		}
	}
	return anchors, cas
}
