package enroll

import (
	"context"
	"crypto/x509"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
)

// Router enrolls a router with the keys of two CSRs. One that takes digests is
// told no tokens from then on, whatever it says later.
func (d *Desk) Router(ctx context.Context, by state.Author, r kind.Reader, token string, client, server []byte, digests bool) (RouterCerts, error) {
	e, err := d.find(r, token, model.MethodErOTT, model.MethodTrOTT)
	if err != nil {
		return RouterCerts{}, err
	}
	id := e.EdgeRouterID + e.TransitRouterID
	certs, err := d.routerCerts(r, id, client, server)
	if err == nil {
		err = d.redeem(ctx, by, e, func(tx *state.Tx) error { return certs.admit(tx, id, digests) })
	}
	return certs, d.equipped(by, r, id, certs, err)
}

// Equip gives a router its certificates without an invitation: it is part of
// this controller, and nobody has to show anything.
func (d *Desk) Equip(ctx context.Context, by state.Author, id string, client, server []byte) (RouterCerts, error) {
	certs, err := d.routerCerts(d.State.Snapshot(), id, client, server)
	if err == nil {
		err = d.State.Update(ctx, by, func(tx *state.Tx) error { return certs.admit(tx, id, true) })
	}
	return certs, d.equipped(by, d.State.Snapshot(), id, certs, err)
}

// ExtendRouter gives a router that shows its present certificate new ones. The
// old one is worthless from then on.
func (d *Desk) ExtendRouter(ctx context.Context, by state.Author, r kind.Reader, presented []*x509.Certificate, client, server []byte) (RouterCerts, error) {
	if len(presented) == 0 {
		return RouterCerts{}, errExtend
	}
	now := d.Now()
	leaf, err := pki.NewRoots(d.Bundle()).VerifyLeaf(presented, pki.VerifyOptions{Now: now})
	if err != nil || leaf.Expired(now) || leaf.NotYetValid(now) {
		return RouterCerts{}, errExtend
	}
	old := pki.Fingerprint(leaf.Certificate())
	router, err := extending(r, old)
	if err != nil {
		return RouterCerts{}, err
	}
	certs, err := d.routerCerts(r, router.ID, client, server)
	if err != nil {
		return RouterCerts{}, d.tell(by, router.ID, err)
	}
	by = state.Author{Kind: model.Routers.Def.Name, ID: router.ID, Name: router.Name}.On(by)
	err = d.State.Update(ctx, by, func(tx *state.Tx) error {
		if _, err := extending(tx, old); err != nil {
			return err
		}
		return certs.use(tx, router.ID)
	})
	return certs, d.equipped(by, r, router.ID, certs, err)
}

// equipped has the logs say what a router got, or that it did not.
func (d *Desk) equipped(by state.Author, r kind.Reader, id string, certs RouterCerts, err error) error {
	if err == nil {
		d.issued(by, r, model.Routers.Def, id, certs.Client[0], certs.Server[0])
	}
	return d.tell(by, id, err)
}

// tell has the log say which router asked for what it cannot have: one that
// was set up wrongly, or one that means to be somebody else.
func (d *Desk) tell(by state.Author, router string, err error) error {
	if fault.Is(err, fault.CodeCSR) {
		d.Log.Warn("a router was refused its certificates", "router", router, "reason", err, "source", by.Source, "request", by.Request)
	}
	return err
}

var (
	errExtend   = fault.New(fault.CodeUnauthorized, "the connection must present the router's present certificate")
	errDisabled = fault.New(fault.CodeUnauthorized, "the router is disabled; an admin must enable it first")
)

// extending returns the router that a certificate lets in, as long as that is
// not shut out.
func extending(r kind.Reader, fingerprint string) (*model.Router, error) {
	router, ok := model.Routers.Find(r, "fingerprint", fingerprint)
	switch {
	case !ok:
		return nil, errExtend
	case router.Disabled:
		return nil, errDisabled
	}
	return router, nil
}

// RouterCerts is what a router gets: a certificate to call us with and one to
// be called under. It shows either to other routers too, whoever of them
// called.
type RouterCerts struct {
	Client, Server []*x509.Certificate

	asked [2]request // which they answer
}

// routerCerts signs both certificates. Their common name is the router's id,
// and their other names are those that it says it is reached under.
func (d *Desk) routerCerts(r kind.Reader, id string, client, server []byte) (certs RouterCerts, err error) {
	if len(client) == 0 || len(server) == 0 {
		return certs, fault.New(fault.CodeMissingCSR, "both certCsr and serverCertCsr are required")
	}
	router, ok := model.Routers.Get(r, id)
	if !ok {
		return certs, errToken
	}
	certs.asked = [2]request{{field: "certCsr"}, {field: "serverCertCsr"}}
	for i, csr := range [][]byte{client, server} {
		if certs.asked[i].CertificateRequest, err = pki.ParseCSR(csr); err != nil {
			return certs, err
		}
	}
	if cn := certs.asked[0].Subject.CommonName; router.IsEdge && cn != id {
		return certs, fault.On(fault.CodeCSR, "certCsr", "must have the router's id as its common name", cn)
	}
	for i, chain := range []*[]*x509.Certificate{&certs.Client, &certs.Server} {
		if *chain, err = d.signRouter(r, router, certs.asked[i]); err != nil {
			return RouterCerts{}, err
		}
	}
	return certs, nil
}

func (d *Desk) signRouter(r kind.Reader, router *model.Router, asked request) ([]*x509.Certificate, error) {
	if err := asked.mayHave(r, router); err != nil {
		return nil, err
	}
	grant, err := pki.RouterGrant(router.ID, asked.named(), d.Lifetimes.Router)
	if err != nil {
		return nil, fault.On(fault.CodeCSR, asked.field, "cannot be granted: "+err.Error(), nil)
	}
	return d.sign(grant, asked.CertificateRequest)
}

// use makes the certificates those that a router is known by. Its names are
// looked at again: a controller may have come by one of them since.
func (c RouterCerts) use(tx *state.Tx, id string) error {
	router, ok := model.Routers.Get(tx, id)
	if !ok {
		return errToken
	}
	if err := c.allowed(tx, router); err != nil {
		return err
	}
	fingerprint, text := pki.Fingerprint(c.Client[0]), string(pki.EncodeCertificates(c.Client[0]))
	return editRouter(tx, id, func(r *model.Router) {
		r.IsVerified, r.Fingerprint, r.CertPEM, r.CertNames = true, fingerprint, text, c.names()
		r.UnverifiedFingerprint, r.UnverifiedCertPEM = "", ""
	}, func(e *model.EdgeRouter) {
		e.IsVerified, e.Fingerprint, e.CertPEM = true, fingerprint, text
		e.UnverifiedFingerprint, e.UnverifiedCertPEM = "", ""
	})
}

// admit has a router begin with the certificates, and says what it is told.
func (c RouterCerts) admit(tx *state.Tx, id string, digests bool) error {
	if err := c.use(tx, id); err != nil {
		return err
	}
	return editRouter(tx, id, func(*model.Router) {}, func(e *model.EdgeRouter) {
		e.TakesDigests, e.TakesBearers, e.TakesReports = digests, false, false
	})
}

// allowed looks whether a router may have the certificates.
func (c RouterCerts) allowed(r kind.Reader, router *model.Router) error {
	for _, asked := range c.asked {
		if err := asked.mayHave(r, router); err != nil {
			return err
		}
	}
	return nil
}

// names are what the certificates are for besides the router's id.
func (c RouterCerts) names() []string { return append(hosts(c.Client[0]), hosts(c.Server[0])...) }

// Reinvite takes an edge router's certificate away and invites it anew, and back
// into use if it had retired. Other properties stay.
func (d *Desk) Reinvite(ctx context.Context, by state.Author, id string, invite *model.Enrollment) error {
	return d.State.Update(ctx, by, func(tx *state.Tx) error {
		err := model.EdgeRouters.Edit(tx, id, func(e *model.EdgeRouter) error {
			e.IsVerified, e.Fingerprint, e.CertPEM = false, "", ""
			e.UnverifiedFingerprint, e.UnverifiedCertPEM = "", ""
			return nil
		})
		if err != nil {
			return err
		}
		err = model.Routers.Edit(tx, id, func(r *model.Router) error {
			r.Quiesced = false
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
