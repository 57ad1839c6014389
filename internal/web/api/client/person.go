package client

import (
	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/web/rest"
)

// issuerParam is what clients send that know the signer of their token. Tokens
// say by themselves whose they are.
var issuerParam = rest.TextParam("ziti-token-issuer-id", "Id of the external JWT signer that the token must be of; that which the token names if not given.").InHeader()

// personIn asks for a certificate, or for none.
type personIn struct {
	ClientCSR string `json:"clientCsr" doc:"Certificate signing request for the client certificate, as PEM; without one the identity authenticates by tokens."`
}

// personOut is who somebody has become.
type personOut struct {
	ID   string `json:"id" doc:"Id of the identity."`
	Name string `json:"name" doc:"What people call the identity."`
	CA   string `json:"ca" kind:"omit" doc:"Certificates of the controller's authority, as PEM; left out without a CSR."`
	Cert string `json:"cert" kind:"omit" doc:"Client certificate and what leads from it to the authority, as PEM; left out without a CSR."`
}

func person(o rest.Op) rest.Op {
	o.BodyOptional = true
	return o
}

// person makes an identity of who brings a token.
func (d desk) person(c *rest.Call, in personIn) (personOut, error) {
	who, chain, err := d.Desk.Person(c.Context(), c.Author(), c.Snap, c.Bearer(), issuerParam.Of(c), []byte(in.ClientCSR))
	if err != nil {
		return personOut{}, d.became(c, state.Nobody, err)
	}
	out := personOut{ID: who.ID, Name: who.Name}
	if chain != nil {
		out.CA, out.Cert = string(pki.EncodeCertificates(d.Bundle()...)), encode(chain)
	}
	return out, d.became(c, authn.By(who), nil)
}
