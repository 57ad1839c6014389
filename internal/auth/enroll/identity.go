package enroll

import (
	"context"
	"crypto/x509"
	"strings"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/auth/people"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/pki"
)

// OTT enrolls an identity with a key of its own, for which it gets a
// certificate.
func (d *Desk) OTT(ctx context.Context, by state.Author, r kind.Reader, token string, csr []byte) ([]*x509.Certificate, error) {
	e, err := d.find(r, token, model.MethodOTT)
	if err != nil {
		return nil, err
	}
	chain, err := d.issue(e.IdentityID, csr, d.Lifetimes.Identity)
	if err != nil {
		return nil, err
	}
	err = d.redeem(ctx, by, e, func(tx *state.Tx) error {
		return model.Authenticators.Create(tx, certificateAuthenticator(e.IdentityID, "", chain[0]))
	})
	if err == nil {
		d.issued(by, r, model.Identities.Def, e.IdentityID, chain[0])
	}
	return chain, err
}

// OTTCA enrolls an identity with a certificate of somebody else's CA, whose
// key the TLS handshake has proved.
func (d *Desk) OTTCA(ctx context.Context, by state.Author, r kind.Reader, token string, presented []*x509.Certificate) error {
	e, err := d.find(r, token, model.MethodOTTCA)
	if err != nil {
		return err
	}
	ca, ok := model.CAs.Get(r, e.CAID)
	if !ok || !ca.IsVerified || !ca.IsOTTCAEnrollmentEnabled {
		return fault.New(fault.CodeEnrollCA, "the CA of this enrollment is not verified or does not allow it")
	}
	leaf, _, err := d.signedBy([]*model.CA{ca}, presented)
	if err != nil {
		return err
	}
	return d.redeem(ctx, by, e, func(tx *state.Tx) error {
		if err := unused(tx, leaf); err != nil {
			return err
		}
		return model.Authenticators.Create(tx, certificateAuthenticator(e.IdentityID, ca.ID, leaf))
	})
}

// signedBy returns the first of the presented certificates if one of the CAs
// signed it for clients, and which.
func (d *Desk) signedBy(cas []*model.CA, presented []*x509.Certificate) (*x509.Certificate, *model.CA, error) {
	refused := fault.New(fault.CodeChain, "the connection must present a valid client certificate of the CA")
	if len(presented) == 0 {
		return nil, nil, refused
	}
	now := d.Now()
	for _, ca := range cas {
		cert, err := ca.Certificate()
		if err != nil {
			continue
		}
		leaf, err := pki.NewRoots([]*x509.Certificate{cert}).VerifyLeaf(presented, pki.VerifyOptions{Now: now, Usages: authn.ForClients})
		if err == nil && !leaf.Expired(now) && !leaf.NotYetValid(now) {
			return leaf.Certificate(), ca, nil
		}
	}
	return nil, nil, refused
}

// UPDB enrolls an identity with a password, and returns the user name that belongs to it.
func (d *Desk) UPDB(ctx context.Context, by state.Author, who limit.Party, r kind.Reader, token, username, password string) (string, error) {
	e, err := d.find(r, token, model.MethodUPDB)
	if err != nil {
		return "", err
	}
	if e.Username != "" {
		username = e.Username
	}
	if password == "" {
		return "", fault.Invalid("password", "is required", nil)
	}
	hash, err := d.Passwords.Set(ctx, who, r, e.IdentityID, password)
	if err != nil {
		return "", err
	}
	return username, d.redeem(ctx, by, e, func(tx *state.Tx) error {
		if _, taken := model.Authenticators.Find(tx, "username", username); taken {
			return fault.On(fault.CodeUsername, "username", "is taken", username)
		}
		return model.Authenticators.Create(tx, model.NewPassword(e.IdentityID, username, hash))
	})
}

// CA enrolls whoever holds a certificate of a CA that allows it, as a new
// identity.
func (d *Desk) CA(ctx context.Context, by state.Author, r kind.Reader, presented []*x509.Certificate, name string) (who *model.Identity, err error) {
	var eligible []*model.CA
	for ca := range model.CAs.All(r) {
		if ca.IsVerified && ca.IsAutoCAEnrollmentEnabled {
			eligible = append(eligible, ca)
		}
	}
	if len(eligible) == 0 {
		return nil, fault.New(fault.CodeEnrollNoCA, "no CA allows enrollment by certificate")
	}
	leaf, ca, err := d.signedBy(eligible, presented)
	if err != nil {
		return nil, err
	}
	external := ""
	if ca.ExternalIDClaim != nil {
		var ok bool
		if external, ok = ca.ExternalIDClaim.Find(leaf); !ok {
			return nil, fault.New(fault.CodeCertClaim, "the certificate lacks the external id that the CA asks for")
		}
	}
	by = state.Author{Kind: model.CAs.Def.Name, ID: ca.ID, Name: ca.Name}.On(by)
	err = d.State.Update(ctx, by, func(tx *state.Tx) error {
		if err := unused(tx, leaf); err != nil {
			return err
		}
		if _, taken := model.Identities.Find(tx, "externalId", external); taken && external != "" {
			return fault.New(fault.CodeCertInUse, "an identity with the certificate's external id exists already")
		}
		i := model.Identities.New()
		i.ID, i.Type, i.RoleAttributes, i.ExternalID = tx.NewID(), "Device", ca.IdentityRoles, external
		if external != "" {
			i.ExternalIDIssuers = []string{ca.ID} // no other CA can claim it
		}
		who = i
		i.Name = people.FreeName(tx, formatName(ca, leaf, i.ID, name))
		if err := model.Identities.Create(tx, i); err != nil || external != "" {
			return err
		}
		return model.Authenticators.Create(tx, certificateAuthenticator(i.ID, ca.ID, leaf))
	})
	return who, err
}

// formatName fills in the placeholders of a CA's name format.
func formatName(ca *model.CA, leaf *x509.Certificate, id, requested string) string {
	if requested == "" {
		requested = id
	}
	return strings.NewReplacer(
		"[caName]", ca.Name, "[caId]", ca.ID, "[commonName]", leaf.Subject.CommonName,
		"[requestedName]", requested, "[identityId]", id,
	).Replace(ca.IdentityNameFormat)
}
