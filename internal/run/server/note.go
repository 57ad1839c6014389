package server

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"strings"

	"netkeep.internal/internal/pki"
)

// addressFile is where in the data directory that is.
const addressFile = "address"

// noteAddress leaves where the controller is, for a login that knows the
// directory alone. A full disk must not keep the controller from its work.
func (s *Server) noteAddress() {
	if err := s.dir.note(addressFile, s.ManagementAddress()); err != nil {
		s.log.Warn("the address could not be noted in the data directory; log in with the address, and not with --data", "address", s.ManagementAddress(), "error", err)
	}
}

// noteMonitoring leaves where the controller says how it is to whoever asks on this
// machine, also while it turns everybody else away.
func (s *Server) noteMonitoring() {
	const name = "monitoring"
	var err error
	if s.metrics == nil {
		err = s.dir.drop(name)
	} else {
		err = s.dir.note(name, s.metrics.String())
	}
	if err != nil {
		s.log.Warn("where monitoring looks could not be noted in the data directory; netkeep status --data does not find it", "address", s.metrics, "error", err)
	}
}

// noteServed leaves the certificates of a pair of the operator's own, which no CA
// of ours vouches for, to the same login. Whoever can write there can have
// everything else too.
func (s *Server) noteServed() {
	const name = "served.crt"
	var err error
	if s.cfg.TLS.Cert == "" {
		if err = os.Remove(s.dir.sub(name)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		var chain []*x509.Certificate
		for _, der := range s.served.Current().Certificate {
			if cert, bad := x509.ParseCertificate(der); bad == nil {
				chain = append(chain, cert)
			}
		}
		err = s.dir.note(name, strings.TrimSpace(string(pki.EncodeCertificates(chain...))))
	}
	if err != nil {
		s.log.Warn("the certificate could not be noted in the data directory; log in with --ca, and not with --data", "error", err)
	}
}
