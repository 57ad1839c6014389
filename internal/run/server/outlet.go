package server

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/ops/egress"
	"netkeep.internal/internal/ops/outlet"
	"netkeep.internal/internal/pki"
)

const (
	// outletTime is how long somebody may take that entries are sent to.
	outletTime = 30 * time.Second
	// outletPatience is how long nothing may go out before those who watch are told.
	outletPatience = 10 * time.Minute
	// standardOutput is what audit.file says for it.
	standardOutput = "-"
)

// outletJob is an outlet of the audit log.
type outletJob struct {
	*outlet.Follower
	// duty is what the one controller has to have that sends for all; empty if each
	// sends for itself.
	duty string
}

// senders are those that entries are sent with.
type senders struct{ syslog, http, otlp *egress.Client }

// outletClients reads whom to trust.
func outletClients(cfg config.Config, log *slog.Logger) (c senders, err error) {
	var errs []error
	client := func(key, ca, cert, certKey string) *egress.Client {
		opt := egress.Options{Timeout: outletTime}
		if ca != "" {
			text, err := os.ReadFile(ca)
			opt.Trust = x509.NewCertPool()
			if err == nil && !opt.Trust.AppendCertsFromPEM(text) {
				err = fmt.Errorf("%s holds no certificate as PEM", ca)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("audit.%sCa: %w", key, err))
			}
		}
		if cert != "" {
			own, err := pki.Serve(cert, certKey, time.Now, log)
			if err != nil {
				errs = append(errs, fmt.Errorf("audit.%sCert: %w", key, err))
				return nil
			}
			opt.Certificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own.GetCertificate(nil) }
		}
		return egress.New(opt)
	}
	a := cfg.Audit
	c = senders{client("syslog", a.SyslogCa, a.SyslogCert, a.SyslogKey), client("http", a.HTTPCa, "", ""), client("otlp", a.OTLPCa, "", "")}
	return c, errors.Join(errs...)
}

// openOutlets prepares to tell others of entries of the audit log.
func (s *Server) openOutlets() error {
	c, err := outletClients(s.cfg, s.log)
	if err != nil {
		return err
	}
	a := s.cfg.Audit
	switch a.File {
	case "":
	case standardOutput:
		s.addOutlet("stdout", outlet.Lines{To: os.Stdout}, "")
	default:
		s.addOutlet("file", &outlet.File{Path: a.File}, "")
	}
	if a.Syslog != "" {
		s.addOutlet("syslog", &outlet.Syslog{Address: a.Syslog, Client: c.syslog, Now: time.Now}, a.Syslog)
	}
	if a.HTTP != "" {
		s.addOutlet("http", &outlet.Web{URL: a.HTTP, Token: a.HTTPToken, Client: c.http}, a.HTTP)
	}
	if a.OTLP != "" {
		s.addOutlet("otlp", &outlet.OTLP{URL: a.OTLP, Token: a.OTLPToken, Network: rootName(s.keys.Authorities().Origin), Client: c.otlp, Log: s.log}, a.OTLP)
	}
	return s.openAlerts()
}

// addOutlet adds one. Where entries go to a place that several controllers may name, one
// of them sends.
func (s *Server) addOutlet(name string, to outlet.Outlet, place string) {
	f := &outlet.Follower{Name: name, Log: &audit.Log{State: s.state}, Outlet: to, Now: time.Now, Logger: s.log}
	if s.archive != nil {
		f.Archive = s.archive.Read
	}
	job := outletJob{Follower: f}
	if place == "" {
		f.At = outlet.Here(s.dir.sub("audit-" + name))
	} else {
		sum := sha256.Sum256([]byte(place))
		job.duty = "audit-" + name + "-" + hex.EncodeToString(sum[:8])
		f.At = outlet.Shared{State: s.state, ID: job.duty}
	}
	s.outlets = append(s.outlets, job)
}

// outletDuties are the duties of those who send.
func (s *Server) outletDuties() (names []string) {
	for _, job := range s.outlets {
		if job.duty != "" {
			names = append(names, job.duty)
		}
	}
	return names
}

// runOutlets begins to send.
func (s *Server) runOutlets(ctx context.Context) {
	for _, job := range s.outlets {
		s.jobs.Go(func() {
			if job.duty == "" {
				job.Run(ctx)
				return
			}
			s.duties.Do(ctx, job.duty, job.Run)
		})
	}
}

// outletsFail names an outlet to which nothing goes out.
func (s *Server) outletsFail() string {
	for _, job := range s.outlets {
		if f := job.Figures(); f.Failing > outletPatience {
			return fmt.Sprintf("audit entries could not be sent (%s) for %s; the log of the controller says why", f.Name, f.Failing.Truncate(time.Second))
		}
	}
	return ""
}
