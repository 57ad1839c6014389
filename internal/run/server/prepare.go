package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/model"
)

// Where in the data directory the store is, and what memory had for the next start.
const (
	storeDir       = "store"
	checkpointFile = "checkpoint"
)

// openStore opens the store.
func (s *Server) openStore(ctx context.Context) (err error) {
	if len(s.cfg.Store.Endpoints) > 0 {
		if st, err := s.dir.stage(); err != nil || st.Stage == stageJoining {
			return cmp.Or(err, s.checkStage(st))
		}
		s.store, err = dialCluster(ctx, s.cfg.Store, s.log)
	} else {
		s.store, err = s.openMember(ctx)
	}
	if err != nil {
		return err
	}
	s.onClose(s.store.Close)
	return nil
}

// forget takes everything out of the store that its records were before. They
// may have been rewritten so that nobody can read any more what they were.
func (s *Server) forget(ctx context.Context) error {
	last, err := s.store.Last(ctx)
	if err != nil {
		return err
	}
	if err := s.store.Compact(ctx, last); err != nil {
		return err
	}
	if own, ok := s.store.(*etcdstore.Store); ok {
		return own.Defragment(ctx)
	}
	return nil
}

// keepCopy writes a snapshot to go back to. The operators of a cluster keep
// their own: not everybody who may use one may copy it.
func (s *Server) keepCopy(ctx context.Context) error {
	if len(s.cfg.Store.Endpoints) > 0 {
		return nil
	}
	if _, err := s.snapshots.Create(ctx); err != nil {
		return fmt.Errorf("there is no snapshot to go back to: %w", err)
	}
	return nil
}

// prepare adds what every network has.
func (s *Server) prepare(ctx context.Context, hasher *authn.Hasher) error {
	err := s.state.Update(ctx, state.Program("start"), func(tx *state.Tx) error { return model.Seed(tx) })
	if err != nil {
		return fmt.Errorf("add the built-in records: %w", err)
	}
	if err := s.reserveNames(ctx); err != nil {
		return fmt.Errorf("keep this controller's names from routers: %w", err)
	}
	if err := s.settleTime(ctx); err != nil {
		return err
	}
	if s.cfg.Admin.Password != "" { // who knows it may log in as soon as anything answers
		return s.addAdmin(ctx, hasher)
	}
	return nil
}

// addAdmin makes the first admin, if there is none. With a password that is made
// up it is the last that a start does: the start that made it shows it, or nobody
// ever does.
func (s *Server) addAdmin(ctx context.Context, hasher *authn.Hasher) error {
	if authn.HasAdmin(s.state.Snapshot()) {
		s.compareAdmin(ctx, hasher)
		return nil
	}
	admin := authn.FirstAdmin{Username: s.cfg.Admin.Username, Password: s.cfg.Admin.Password}
	made := admin.Password == ""
	if made {
		admin.Password = rand.Text()
	}
	if err := authn.CreateAdmin(ctx, s.state, hasher, admin); err != nil {
		return fmt.Errorf("create the first admin: %w", err)
	}
	if made {
		s.admin = admin
	}
	return nil
}

// compareAdmin tells whoever gives a password for an admin that is there with another
// one that it changes nothing, and what does.
func (s *Server) compareAdmin(ctx context.Context, hasher *authn.Hasher) {
	given := s.cfg.Admin.Password
	if given == "" {
		return
	}
	// A start does not end for a hash of elsewhere that cannot be read.
	if same, err := authn.IsAdminPassword(ctx, s.state.Snapshot(), hasher, given); err == nil && !same {
		s.log.Warn("the password of the first admin is read at the first start only, and the admin has another one; netkeep admin reset sets it while the controller does not run")
	}
}

// reserveNames keeps routers from having the names that this controller is
// reached under. Where one has such a name already, only people can mend that.
func (s *Server) reserveNames(ctx context.Context) error {
	dns, ips, err := s.names()
	if err != nil {
		return err
	}
	for _, ip := range ips {
		dns = append(dns, ip.String())
	}
	var fresh []string
	err = s.state.Update(ctx, state.Program("start"), func(tx *state.Tx) error {
		fresh = nil
		for _, host := range dns {
			added, err := model.ReserveName(tx, host)
			if err != nil {
				return err
			}
			if added {
				fresh = append(fresh, model.HostName(host))
			}
		}
		return nil
	})
	if err != nil || len(fresh) == 0 {
		return err
	}
	for r := range model.Routers.All(s.state.Snapshot()) {
		for _, host := range fresh {
			if slices.Contains(r.CertNames, host) && !slices.Contains(r.AllowedNames, host) {
				s.log.Warn("a router has a certificate for a name of this controller and can pass as it; enroll the router again under other names, or advertise another",
					"router", r.ID, "name", host)
			}
		}
	}
	return nil
}
