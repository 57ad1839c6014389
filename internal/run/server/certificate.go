package server

import (
	"context"
	"crypto/x509"
	"errors"
	"time"

	"netkeep.internal/internal/pki"
)

// judgeCertificate warns of a certificate that clients will not believe. It is
// served all the same where there is no better: those that can be told to may
// still come in and mend it.
func (s *Server) judgeCertificate(leaf *x509.Certificate) {
	if err := s.certificateFlaw(leaf); err != nil {
		s.log.Error(err.Error()+"; clients refuse it", "subject", leaf.Subject.String())
	}
}

// certificateFlaw says why clients will not believe a certificate.
func (s *Server) certificateFlaw(leaf *x509.Certificate) error {
	return certificateFlaw(leaf, s.Address(), s.ManagementAddress(), s.RouterAddress(), s.ReserveAddress())
}

// inventory is the certificates of the controller: those of its authority, and
// the one that is served, whoever made it.
func (s *Server) inventory() []pki.Item {
	items := s.keys.Inventory()
	leaf := s.served.Current().Leaf
	for i := range items {
		if items[i].Name == "server" {
			items[i].Subject, items[i].NotAfter = leaf.Subject.String(), leaf.NotAfter
		}
	}
	return items
}

// renewCertificate keeps our own certificates from running out.
func (s *Server) renewCertificate(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := errors.Join(s.keys.RenewIfDue(), s.renewPeer()); err != nil {
				s.log.Error("renewing the certificates of this controller failed", "error", err)
			}
			s.attest()
		}
	}
}
