package enroll

import (
	"context"
	"crypto/x509"

	"netkeep/internal/data/state"
	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
	"netkeep/internal/pki"
)

// RouterCerts is what a router gets: a certificate to call us with and one to
// be called under.
type RouterCerts struct {
	Client, Server []*x509.Certificate
}

// Router enrolls a router with the keys of two CSRs.
func (d *Desk) Router(ctx context.Context, by state.Author, r kind.Reader, token string, client, server []byte) (RouterCerts, error) {
	e, err := d.find(r, token, model.MethodErOTT, model.MethodTrOTT)
	if err != nil {
		return RouterCerts{}, err
	}
	id := e.EdgeRouterID + e.TransitRouterID
	certs, err := d.routerCerts(id, client, server, e.Method == model.MethodErOTT)
	if err != nil {
		return RouterCerts{}, err
	}
	err = d.redeem(ctx, by, e, func(tx *state.Tx) error { return useRouterCert(tx, id, certs.Client[0]) })
	return certs, err
}

// ExtendRouter gives a router that shows its present certificate new ones. The
// old one is worthless from then on.
func (d *Desk) ExtendRouter(ctx context.Context, by state.Author, r kind.Reader, presented []*x509.Certificate, client, server []byte) (RouterCerts, error) {
	denied := fault.New(fault.CodeUnauthorized, "the connection must present the router's present certificate")
	if len(presented) == 0 {
		return RouterCerts{}, denied
	}
	now := d.Now()
	leaf, err := pki.NewRoots(d.Bundle).VerifyLeaf(presented, pki.VerifyOptions{Now: now})
	if err != nil || leaf.Expired(now) || leaf.NotYetValid(now) {
		return RouterCerts{}, denied
	}
	old := pki.Fingerprint(leaf.Certificate())
	router, ok := model.Routers.Find(r, "fingerprint", old)
	if !ok {
		return RouterCerts{}, denied
	}
	certs, err := d.routerCerts(router.ID, client, server, router.IsEdge)
	if err != nil {
		return RouterCerts{}, err
	}
	by = state.Author{Kind: model.Routers.Def.Name, ID: router.ID, Name: router.Name}.On(by)
	err = d.State.Update(ctx, by, func(tx *state.Tx) error {
		if now, ok := model.Routers.Get(tx, router.ID); !ok || now.Fingerprint != old {
			return denied
		}
		return useRouterCert(tx, router.ID, certs.Client[0])
	})
	return certs, err
}

// routerCerts signs both certificates. The server's names are those that the
// router says it is reached under; its common name is its id.
func (d *Desk) routerCerts(id string, client, server []byte, named bool) (RouterCerts, error) {
	if len(client) == 0 || len(server) == 0 {
		return RouterCerts{}, fault.New(fault.CodeMissingCSR, "both certCsr and serverCertCsr are required")
	}
	clientReq, err := pki.ParseCSR(client)
	if err != nil {
		return RouterCerts{}, err
	}
	serverReq, err := pki.ParseCSR(server)
	if err != nil {
		return RouterCerts{}, err
	}
	if named && clientReq.Subject.CommonName != id {
		return RouterCerts{}, fault.On(fault.CodeCSR, "certCsr", "must have the router's id as its common name", clientReq.Subject.CommonName)
	}
	clientGrant, err := pki.ClientGrant(id, nil, d.Lifetimes.Router)
	if err != nil {
		return RouterCerts{}, err
	}
	names := serverReq.DNSNames
	if len(names)+len(serverReq.IPAddresses) == 0 {
		names = []string{"localhost"}
	}
	serverGrant, err := pki.ServerGrant(id, names, serverReq.IPAddresses, d.Lifetimes.Router)
	if err != nil {
		return RouterCerts{}, fault.Wrap(fault.CodeCSR, err)
	}
	var certs RouterCerts
	if certs.Client, err = d.sign(clientGrant, clientReq); err != nil {
		return RouterCerts{}, err
	}
	certs.Server, err = d.sign(serverGrant, serverReq)
	return certs, err
}

// useRouterCert makes a certificate the one that a router is known by.
func useRouterCert(tx *state.Tx, id string, cert *x509.Certificate) error {
	fingerprint := pki.Fingerprint(cert)
	if _, edge := model.EdgeRouters.Get(tx, id); edge {
		return model.EdgeRouters.Edit(tx, id, func(e *model.EdgeRouter) error {
			e.IsVerified, e.Fingerprint, e.CertPEM = true, fingerprint, string(pki.EncodeCertificates(cert))
			return nil
		})
	}
	return model.Routers.Edit(tx, id, func(r *model.Router) error {
		r.IsVerified, r.Fingerprint = true, fingerprint
		return nil
	})
}

// Reinvite takes an edge router's certificate away and invites it anew. Other
// properties stay.
func (d *Desk) Reinvite(ctx context.Context, by state.Author, id string, invite *model.Enrollment) error {
	return d.State.Update(ctx, by, func(tx *state.Tx) error {
		err := model.EdgeRouters.Edit(tx, id, func(e *model.EdgeRouter) error {
			e.IsVerified, e.Fingerprint, e.CertPEM = false, "", ""
			return nil
		})
		if err != nil {
			return err
		}
		for old, ok := model.Enrollments.Find(tx, "edgeRouterId", id); ok; old, ok = model.Enrollments.Find(tx, "edgeRouterId", id) {
			if err := model.Enrollments.Delete(tx, old.ID); err != nil {
				return err
			}
		}
		fresh := *invite
		return model.Enrollments.Create(tx, &fresh)
	})
}
