package enroll

import (
	"context"
	"crypto/subtle"
	"crypto/x509"
	"encoding/pem"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// VerifyCA believes that somebody commands a CA who shows a certificate that
// it signed for the verification token.
func (d *Desk) VerifyCA(ctx context.Context, by state.Author, r kind.Reader, id string, shown []byte) error {
	ca, ok := model.CAs.Get(r, id)
	if !ok {
		return fault.NotFound("ca", id)
	}
	if ca.IsVerified {
		return fault.New(fault.CodeCAVerified, "the CA is verified already")
	}
	cert, err := proof(shown)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(cert.Subject.CommonName), []byte(ca.VerificationToken)) != 1 {
		return fault.New(fault.CodeCommonName, "the certificate's common name must be the CA's verification token")
	}
	issuer, err := ca.Certificate()
	if err != nil {
		return err
	}
	now := d.Now()
	if cert.CheckSignatureFrom(issuer) != nil || now.After(cert.NotAfter) || now.Before(cert.NotBefore) {
		return fault.New(fault.CodeCAProof, "the certificate must be signed by the CA and be valid now")
	}
	return d.State.Update(ctx, by, func(tx *state.Tx) error {
		return model.CAs.Edit(tx, id, func(ca *model.CA) error {
			if ca.IsVerified {
				return fault.New(fault.CodeCAVerified, "the CA is verified already")
			}
			ca.IsVerified = true
			return nil
		})
	})
}

// proof reads the one certificate that shows command of a CA.
func proof(text []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, fault.New(fault.CodeBody, "the body must be a PEM certificate")
	case block.Type != "CERTIFICATE":
		return nil, fault.New(fault.CodePEMType, "the body must be a PEM certificate, not "+block.Type)
	}
	if again, _ := pem.Decode(rest); again != nil {
		return nil, fault.New(fault.CodeBody, "the body must be one PEM certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fault.New(fault.CodeDER, "the body must be a PEM certificate that can be read")
	}
	return cert, nil
}

// CAToken returns the token by which holders of a CA's certificates find their
// way to enroll. It names nobody and does not expire.
func (i *Issuer) CAToken() (string, error) {
	c := claims{Method: model.MethodCA, Issuer: i.home() + "/"}
	i.lead(&c)
	return i.sign(c)
}

// methodNetwork is the method of a token that is about nobody: its holder logs
// in as whoever it is, with a token of an identity provider.
const methodNetwork = "network"

// NetworkToken returns a token by which clients find the network and can tell
// that it is the right one. It opens nothing and does not expire.
func (i *Issuer) NetworkToken() (string, error) {
	home := i.home() + "/"
	return i.sign(claims{Method: methodNetwork, Issuer: home, Subject: home, Audience: []string{"openziti-enroller"}, ID: authn.NewToken()})
}
