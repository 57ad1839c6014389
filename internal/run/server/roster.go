package server

import (
	"context"
	"net"
	"time"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/fabric/whereabouts"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/pki"
)

// openRoster finds out which of the network's controllers this is, and tells the
// others that it is there.
func (s *Server) openRoster(ctx context.Context) error {
	opt := roster.Options{
		State: s.state, Claims: s.claims(), Where: disk.Place(s.dir.path), Self: s.self,
		Removed: func() { s.fail(errRemoved) },
		Lost:    func() { s.fabric.Suspend() }, Found: func() { s.fabric.Resume() }, Changed: func() { s.fabric.ControllersChanged() },
		StandIn: func(id string, lease store.Lease) roster.StandIn { return s.fabric.StandIn(id, lease) }, Asked: func(what string) bool { return s.fabric.Asked(what) }, Now: time.Now, Log: s.log,
	}
	id, err := s.ownID(ctx, opt.Claims)
	if err != nil {
		return err
	}
	if s.roster, err = roster.Open(ctx, id, opt); err != nil {
		return err
	}
	s.onClose(s.roster.Close)
	if !s.roster.Alone() {
		s.book = whereabouts.NewBook(opt.Claims, id)
	}
	if err := s.dir.note(controllerFile, id); err != nil {
		return err
	}
	return s.noteMember()
}

// claims are how controllers of one store know who is there.
func (s *Server) claims() store.Claims {
	if shared, ok := s.store.(*etcdstore.Store); ok {
		return shared.Claims()
	}
	return store.NewAlone()
}

// self is what the record of this controller says.
func (s *Server) self() model.Controller {
	leaf := s.served.Current().Leaf
	host, _, _ := net.SplitHostPort(s.Address())
	reserve := ""
	if s.reserve != nil {
		reserve = "tls:" + s.ReserveAddress()
	}
	return model.Controller{
		Name: host, Address: "tls:" + s.RouterAddress(), Client: s.Address(), Management: s.ManagementAddress(), Reserve: reserve,
		Certificate: string(pki.EncodeCertificates(leaf)), Fingerprint: pki.Fingerprint(leaf), Version: build.Version, Format: format.Current,
	}
}
