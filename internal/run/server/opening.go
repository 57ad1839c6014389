package server

import (
	"context"
	"crypto/x509"
	"time"

	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/pki"
)

// openData opens the store and the keys, which must be of one network, and
// brings the store to the format of this version.
func (s *Server) openData(ctx context.Context) error {
	s.unpackKept()
	if err := s.openStore(ctx); err != nil {
		return err
	}
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	if err := s.checkOwner(ctx); err != nil {
		return err
	}
	if err := s.openKeys(); err != nil {
		return err
	}
	if err := s.openSnapshots(); err != nil {
		return err
	}
	return s.migrate(ctx)
}

// journal makes the entries of all that is changed. A benchmark does without, to say
// what they cost.
var journal state.Journal = audit.Journal{}

// openState loads everything that is stored.
func (s *Server) openState(ctx context.Context) (err error) {
	now := time.Now()
	s.heard.Store(&now)
	opt := state.Options{Logger: s.log, Now: s.clock.Now, Stored: s.stored, Outgrown: s.fail, Seal: s.sealer, Journal: journal, Judge: judges(s.timeless, s.byTheClock(power.Judge), s.assertions())}
	if len(s.cfg.Store.Endpoints) > 0 {
		opt.Patience = clusterTime
	}
	if s.kept != nil {
		opt.Keeping, opt.Kept = s.keeping(), s.kept
		opt.Keeping.Network = s.Fingerprint()
	} else if err := s.dir.drop(checkpointFile); err != nil {
		return err
	}
	if s.state, err = state.Open(ctx, s.store, model.All, opt); err != nil {
		return err
	}
	s.onClose(func() error { s.state.Close(); return nil })
	if own, ok := s.store.(*etcdstore.Store); ok {
		own.Relax() // opening it has read all of it
	}
	s.recorder = audit.NewRecorder(s.state, time.Now)
	s.recorder.Counted = s.figures.Noted
	s.onClose(func() error { s.recorder.Close(); return nil })
	return nil
}

// openKeystore opens the keys of the network, and what they seal.
func (s *Server) openKeystore(opt pki.Options) (err error) {
	if s.keys, err = pki.Open(s.dir.sub(keysDir), opt); err != nil {
		return err
	}
	s.sealer = s.keys.Sealer()
	return nil
}

// openKeys opens the keystore and picks the certificate to serve.
func (s *Server) openKeys() (err error) {
	opt := pki.Options{Now: time.Now, Algorithm: pki.Algorithm(s.cfg.Keys.Algorithm), Log: s.log}
	if opt.DNSNames, opt.IPs, err = s.names(); err != nil {
		return err
	}
	if err = s.openKeystore(opt); err != nil {
		return err
	}
	if s.cfg.TLS.Cert != "" {
		if s.own, err = s.keys.Served(s.log); err != nil {
			return err
		}
		s.served, err = pki.Serve(s.cfg.TLS.Cert, s.cfg.TLS.Key, time.Now, s.log)
	} else {
		s.served, err = s.keys.Served(s.log)
	}
	if err != nil {
		return err
	}
	s.served.Flaw = s.certificateFlaw
	s.served.Loaded = func(leaf *x509.Certificate) {
		s.judgeCertificate(leaf)
		s.noteServed()
	}
	s.judgeCertificate(s.served.Current().Leaf)
	return nil
}

// unpackKept begins to unpack what memory had, which takes a processor while the store takes
// another one to open.
func (s *Server) unpackKept() {
	if s.cfg.Store.Checkpoint > 0 {
		s.kept = state.Unpack(s.keeping(), model.All, false)
		s.onClose(func() error { s.kept.Close(); return nil })
	}
}

// keeping is where memory is kept for the next start of this program.
func (s *Server) keeping() state.Keeping {
	return state.Keeping{File: s.dir.sub(checkpointFile), Build: thisBuild(), Least: s.cfg.Store.Checkpoint}
}

// thisBuild is which program this is, for files that are read by the same one alone.
func thisBuild() string {
	b := build.Read()
	return b.Version + " " + b.Revision + " " + b.Date + " " + b.Runtime
}
