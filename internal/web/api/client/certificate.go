package client

import (
	"net/http"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// csrIn asks for a certificate that ends with the session.
type csrIn struct {
	CSR string `json:"csr" kind:"required" doc:"Certificate signing request, as PEM; of it only the key counts."`
}

// issuedOut is a certificate just made.
type issuedOut struct {
	ID          string     `json:"id" doc:"Id of the certificate."`
	Links       kind.Links `json:"_links" doc:"Where the certificate is."`
	Certificate string     `json:"certificate" doc:"The certificate and what leads from it to the authority, as PEM."`
	CAs         string     `json:"cas" doc:"Certificates of the controller's authority, as PEM."`
}

// mountCertificates offers the certificates of the caller's own session, and
// of no other.
func mountCertificates(a *rest.API, s *api.Service) {
	const path = "/current-api-session/certificates"
	op := func(method, path, name, doc string) rest.Op {
		return rest.Op{Method: method, Path: path, Name: name, Tag: "current-api-session", Doc: doc, Auth: rest.Full, MaxBody: 64 << 10}
	}
	view := a.View("currentApiSessionCertificate", model.SessionCertificates.Def)
	rest.ShowList(a, op(http.MethodGet, path, "listCurrentApiSessionCertificates", "List the certificates of this session."), view,
		func(c *rest.Call) (rest.Records, error) {
			return c.Snap.Select(model.SessionCertificates.Def, "apiSessionId", api.Caller(c).Session().ID), nil
		})
	rest.Show(a, op(http.MethodGet, path+"/{id}", "detailCurrentApiSessionCertificate", "Get a certificate of this session."), view,
		func(c *rest.Call, _ rest.None) (kind.Record, error) { return own(c) })
	rest.Handle(a, op(http.MethodDelete, path+"/{id}", "deleteCurrentApiSessionCertificate", "Delete a certificate of this session."),
		func(c *rest.Call, _ rest.None) (rest.Empty, error) {
			cert, err := own(c)
			if err != nil {
				return rest.Empty{}, err
			}
			return rest.Empty{}, c.State.Delete(c.Context(), c.Author(), model.SessionCertificates.Def, cert.ID)
		})
	create := op(http.MethodPost, path, "createCurrentApiSessionCertificate", "Get a certificate that ends with this session. Any but the first takes a connection that presents a certificate of the session, or a request with the key of the one before.")
	create.Status = http.StatusCreated
	rest.Handle(a, create, func(c *rest.Call, in csrIn) (issuedOut, error) {
		rec, chain, err := s.Desk.Ephemeral(c.Context(), c.Author(), c.Snap, api.Caller(c), s.Shows(c), []byte(in.CSR))
		if err != nil {
			return issuedOut{}, err
		}
		return issuedOut{
			ID: rec.ID, Links: kind.SelfAt("./current-api-session/certificates/" + rec.ID),
			Certificate: encode(chain), CAs: string(pki.EncodeCertificates(s.Bundle()...)),
		}, nil
	})
}

// own returns a certificate of the caller's session.
func own(c *rest.Call) (*model.SessionCertificate, error) {
	id := c.Param("id")
	cert, ok := model.SessionCertificates.Get(c.Snap, id)
	if !ok || cert.APISessionID != api.Caller(c).Session().ID {
		return nil, fault.NotFound("certificate", id)
	}
	return cert, nil
}
