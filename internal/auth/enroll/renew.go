package enroll

import (
	"context"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
)

// Renewal is what a router asks for that is connected with a certificate and
// wants another before that runs out.
type Renewal struct {
	Router  string
	Present string // fingerprint of the certificate that it is connected with
	Client  []byte // CSRs
	Server  []byte
}

// Offer signs new certificates for a connected router. It goes on with the one
// that it has until it has shown that the new one arrived.
func (d *Desk) Offer(ctx context.Context, by state.Author, ask Renewal) (RouterCerts, error) {
	certs, err := d.renew(d.State.Snapshot(), ask)
	if err != nil {
		return RouterCerts{}, d.tell(by, ask.Router, err)
	}
	fingerprint, text := pki.Fingerprint(certs.Client[0]), string(pki.EncodeCertificates(certs.Client[0]))
	err = d.State.Update(ctx, by, func(tx *state.Tx) error {
		router, err := connected(tx, ask.Router, ask.Present)
		if err != nil {
			return err
		}
		if err := certs.allowed(tx, router); err != nil {
			return err
		}
		return editRouter(tx, router.ID, func(r *model.Router) {
			r.UnverifiedFingerprint, r.UnverifiedCertPEM = fingerprint, text
			r.CertNames = append(r.CertNames, certs.names()...) // which it has from now on
		}, func(e *model.EdgeRouter) {
			e.UnverifiedFingerprint, e.UnverifiedCertPEM = fingerprint, text
		})
	})
	return certs, d.equipped(by, d.State.Snapshot(), ask.Router, certs, err)
}

// Accept makes the certificate that a router was offered, and shows that it
// has, the one that it is known by.
func (d *Desk) Accept(ctx context.Context, by state.Author, router, present, shown string) error {
	return d.State.Update(ctx, by, func(tx *state.Tx) error {
		r, err := connected(tx, router, present)
		if err != nil {
			return err
		}
		if shown == "" || r.UnverifiedFingerprint != shown {
			return fault.New(fault.CodeUnauthorized, "this is not the certificate that the router was offered")
		}
		offered := r.UnverifiedCertPEM
		return editRouter(tx, r.ID, func(r *model.Router) {
			r.Fingerprint, r.CertPEM, r.UnverifiedFingerprint, r.UnverifiedCertPEM = shown, offered, "", ""
		}, func(e *model.EdgeRouter) {
			e.Fingerprint, e.CertPEM, e.UnverifiedFingerprint, e.UnverifiedCertPEM = shown, offered, "", ""
		})
	})
}

// renew signs what a connected router asks for.
func (d *Desk) renew(r kind.Reader, ask Renewal) (RouterCerts, error) {
	if _, err := connected(r, ask.Router, ask.Present); err != nil {
		return RouterCerts{}, err
	}
	return d.routerCerts(r, ask.Router, ask.Client, ask.Server)
}

// connected returns a router that may be connected with a certificate.
func connected(r kind.Reader, id, fingerprint string) (*model.Router, error) {
	router, err := extending(r, fingerprint)
	if err == nil && router.ID != id {
		err = errExtend
	}
	return router, err
}

// editRouter changes a router where it is kept, which for an edge router is in
// two places.
func editRouter(tx *state.Tx, id string, change func(*model.Router), edge func(*model.EdgeRouter)) error {
	if _, ok := model.EdgeRouters.Get(tx, id); ok {
		if err := model.EdgeRouters.Edit(tx, id, func(e *model.EdgeRouter) error { edge(e); return nil }); err != nil {
			return err
		}
	}
	return model.Routers.Edit(tx, id, func(r *model.Router) error { change(r); return nil })
}
