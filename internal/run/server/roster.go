package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

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
		Lost: func() { s.fabric.Suspend() }, Found: func() { s.fabric.Resume() }, Changed: func() { s.fabric.ControllersChanged() },
		StandIn: func(id string, lease store.Lease) roster.StandIn { return s.fabric.StandIn(id, lease) }, Asked: func(what string) bool { return s.fabric.Asked(what) }, Now: time.Now, Log: s.log,
	}
	id, err := s.ownID(opt.Claims)
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
	return s.dir.note(controllerFile, id)
}

// claims are how controllers of one store know who is there.
func (s *Server) claims() store.Claims {
	if shared, ok := s.store.(*etcdstore.Store); ok {
		return shared.Claims()
	}
	return store.NewAlone()
}

// ownID is the id of this controller. The first of a network has one that follows
// from its root CA; a directory from before there were several has none noted, and
// has that unless another controller does. One that keeps the store and joined
// nobody is the first, also if it was made from a snapshot.
func (s *Server) ownID(claims store.Claims) (string, error) {
	text, err := os.ReadFile(s.dir.sub(controllerFile))
	if err == nil {
		id := strings.TrimSpace(string(text))
		if !roster.ValidID(id) {
			return "", fmt.Errorf("%s holds %.40q, which is not the id of a controller; put back what was there, netkeep list controllers shows it at another", s.dir.sub(controllerFile), id)
		}
		return id, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("data directory: %w", err)
	}
	first := roster.FirstID(s.keys.Authorities().Origin)
	_, alone := claims.(*store.Alone)
	if _, there := model.Controllers.Get(s.state.Snapshot(), first); there && !alone && s.members() == nil {
		return roster.NewID(), nil
	}
	return first, nil
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
		Certificate: string(pki.EncodeCertificates(leaf)), Fingerprint: pki.Fingerprint(leaf), Version: build.Version,
	}
}
