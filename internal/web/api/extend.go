package api

import (
	"net/http"

	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/web/rest"
)

// extendIn asks for a new certificate.
type extendIn struct {
	ClientCertCSR string `json:"clientCertCsr" kind:"required" doc:"Certificate signing request with the new key, as PEM."`
}

// extendOut is the new certificate.
type extendOut struct {
	ClientCert string `json:"clientCert" doc:"New client certificate and what leads from it to the authority, as PEM."`
	CA         string `json:"ca" doc:"Certificates of the controller's authority, as PEM."`
}

// extendVerifyIn shows that the new certificate has arrived.
type extendVerifyIn struct {
	ClientCert string `json:"clientCert" kind:"required" doc:"The new client certificate, as PEM."`
}

func mountExtend(a *rest.API, s *Service) {
	const path = "/current-identity/authenticators/{id}"
	op := func(path, name, doc string) rest.Op {
		return rest.Op{Method: http.MethodPost, Path: path, Name: name, Tag: "current-identity", Doc: doc, Auth: rest.Full, Key: rest.KeyOnly, MaxBody: 64 << 10}
	}
	rest.Handle(a, op(path+"/extend", "extendCurrentIdentityAuthenticator", "Get a new certificate; the old one stays good until it is verified."),
		func(c *rest.Call, in extendIn) (extendOut, error) {
			chain, err := s.Desk.Extend(c.Context(), c.Author(), c.Snap, Caller(c), c.Param("id"), c.Certificates(), []byte(in.ClientCertCSR))
			if err != nil {
				return extendOut{}, err
			}
			return extendOut{ClientCert: string(pki.EncodeCertificates(chain...)), CA: string(pki.EncodeCertificates(s.Bundle()...))}, nil
		})
	rest.Handle(a, op(path+"/extend-verify", "extendVerifyCurrentIdentityAuthenticator", "Show that the new certificate has arrived; only it is good from now on."),
		func(c *rest.Call, in extendVerifyIn) (rest.Empty, error) {
			return rest.Empty{}, s.Desk.Confirm(c.Context(), c.Author(), c.Snap, Caller(c), c.Param("id"), []byte(in.ClientCert))
		})
}
