package fabric

import (
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/wire/message"
)

// tellAuthorities tells a router whom to trust, if it wants to know: those of
// others learn it with their next certificates.
func (f *Fabric) tellAuthorities(r *control.Router) {
	if !r.Follows {
		return
	}
	text := string(pki.EncodeCertificates(f.opt.Authorities().Bundle()...))
	_ = r.Send(control.Message(message.TypeAuthorities, &message.Certificates{CAs: text}))
}

// AuthoritiesChanged tells routers who signs from now on, and parts with those
// whose certificate is of an authority that nobody trusts any more.
func (f *Fabric) AuthoritiesChanged() {
	for _, f := range f.both() {
		f.authoritiesChanged()
	}
}

func (f *Fabric) authoritiesChanged() {
	now, snap := f.opt.Authorities(), f.opt.State.Snapshot()
	for _, r := range f.All() {
		record, known := model.Routers.Get(snap, r.ID)
		if certs, err := pki.ParseCertificates([]byte(record.CertPEM), 1); known && err == nil && !now.Trusts(certs[0]) {
			f.Routers.Drop(r.ID, "")
			continue
		}
		f.tellAuthorities(r)
	}
	f.models.Restart()
}
