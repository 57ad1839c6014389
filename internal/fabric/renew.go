package fabric

import (
	"context"
	"log/slog"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Renewal is how routers get certificates before those that they have run out.
type Renewal interface {
	// Offer signs new certificates for a router that is connected with the one
	// of a fingerprint. They count once they are used.
	Offer(ctx context.Context, by state.Author, router, present string, ask *message.Extend) (*Offered, error)
	// Use makes what was offered to a router the certificates that it is known
	// by.
	Use(ctx context.Context, by state.Author, router, present, fingerprint string) error
}

// Offered is new certificates, as PEM.
type Offered struct {
	message.Certificates
	Fingerprint string // of the client certificate
}

// onExtend answers a router that wants new certificates. The answer is a frame
// of its own: it is not taken as a reply.
func (f *Fabric) onExtend(r *control.Router, frame *wire.Frame, m *message.Extend) {
	started := r.Changes() && r.For(frame, func(ctx context.Context) {
		by, present := r.Author("extendRouter", frame), r.Fingerprint()
		offered, err := f.opt.Renewal.Offer(ctx, by, r.ID, present, m)
		if err == nil && !m.Verify {
			err = r.Renew(offered.Fingerprint, func(present string) error {
				return f.opt.Renewal.Use(ctx, by, r.ID, present, offered.Fingerprint)
			})
		}
		if err != nil {
			r.Say(slog.LevelWarn, "a router got no new certificates", "error", err)
			return
		}
		_ = r.Send(control.Message(message.TypeCertificates, &offered.Certificates))
	})
	if !started {
		r.Say(slog.LevelWarn, "a router got no new certificates: it asks for too much at once")
	}
}

// onVerifyExtension hears that the new certificate has arrived: from now on it
// is the one that counts, also for the connection that the router has.
func (f *Fabric) onVerifyExtension(r *control.Router, frame *wire.Frame, m *message.VerifyExtension) {
	answer := func(e message.Error) { r.Reply(frame, control.Message(message.TypeError, &e)) }
	certs, err := pki.ParseCertificates([]byte(m.Client), maxChain)
	if err != nil || len(certs) == 0 {
		answer(message.Error{Code: "INVALID_CERTIFICATE", Message: "it is no certificate as PEM"})
		return
	}
	shown := pki.Fingerprint(certs[0])
	started := r.Changes() && r.For(frame, func(ctx context.Context) {
		err := r.Renew(shown, func(present string) error {
			return f.opt.Renewal.Use(ctx, r.Author("verifyRouterExtension", frame), r.ID, present, shown)
		})
		if err != nil {
			r.Say(slog.LevelWarn, "a router's new certificate was not taken", "error", err)
			answer(message.Error{Code: "NOT_ACCEPTED", Message: err.Error()})
			return
		}
		r.Say(slog.LevelInfo, "a router has a new certificate", "fingerprint", shown)
		answer(message.Error{})
	})
	if !started {
		answer(message.Error{Code: "BUSY", Message: "the router asks for too much at once; try again"})
	}
}

// maxChain is how many certificates a router may show at once.
const maxChain = 10
