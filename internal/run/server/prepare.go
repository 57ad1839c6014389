package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"

	"netkeep/internal/auth/authn"
	"netkeep/internal/data/state"
	"netkeep/internal/data/store"
	"netkeep/internal/data/store/etcdstore"
	"netkeep/internal/model"
	"netkeep/internal/ops/config"
)

// storeDir is where in the data directory the store is.
const storeDir = "store"

// openStore starts the store inside this process, or connects to a cluster.
func openStore(ctx context.Context, cfg config.Config, d *dir, log *slog.Logger) (store.Store, error) {
	if len(cfg.Store.Endpoints) > 0 {
		return etcdstore.Dial(ctx, etcdstore.Options{Endpoints: cfg.Store.Endpoints, Prefix: cfg.Store.Prefix, Logger: log})
	}
	return etcdstore.Open(ctx, etcdstore.Options{Dir: d.sub(storeDir), Logger: log})
}

// prepare adds what every network has, and at the first start its admin.
func (s *Server) prepare(ctx context.Context, hasher *authn.Hasher) error {
	err := s.state.Update(ctx, state.Program("start"), func(tx *state.Tx) error { return model.Seed(tx) })
	if err != nil {
		return fmt.Errorf("add the built-in records: %w", err)
	}
	if authn.HasAdmin(s.state.Snapshot()) {
		return nil
	}
	admin := authn.FirstAdmin{Username: s.cfg.Admin.Username, Password: s.cfg.Admin.Password}
	if admin.Password == "" {
		admin.Password = rand.Text()
		s.admin = admin
	}
	if err := authn.CreateAdmin(ctx, s.state, hasher, admin); err != nil {
		return fmt.Errorf("create the first admin: %w", err)
	}
	return nil
}
