package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"netkeep/internal/auth/authn"
	"netkeep/internal/data/network"
	"netkeep/internal/ops/config"
	"netkeep/internal/ops/metrics"
	"netkeep/internal/pki"
)

// AdminReset is how the default admin gets back in, and AdminResetDone what was
// done about it.
type (
	AdminReset     = authn.Reset
	AdminResetDone = authn.ResetDone
)

// ResetAdmin gives the default admin of a network a new password, while no
// controller uses the data directory. It makes no network where there is none.
func ResetAdmin(ctx context.Context, cfg config.Config, r AdminReset, log *slog.Logger) (done AdminResetDone, err error) {
	needed := cfg.Data
	if len(cfg.Store.Endpoints) == 0 {
		needed = filepath.Join(cfg.Data, storeDir)
	}
	if _, err := os.Stat(needed); errors.Is(err, fs.ErrNotExist) {
		return done, fmt.Errorf("there is no network in %s; name the data directory of its controller with --data", cfg.Data)
	}
	s := &Server{cfg: cfg, log: log, figures: metrics.New(time.Now), failed: make(chan error, 1)}
	defer func() { err = errors.Join(err, s.close()) }()
	if s.dir, err = openDir(cfg.Data); err != nil {
		return done, err
	}
	s.onClose(s.dir.close)
	if err := s.openExisting(ctx); err != nil {
		return done, err
	}
	if done, err = authn.ResetAdmin(ctx, s.state, authn.NewHasher(), r); err != nil {
		return done, fmt.Errorf("reset the default admin: %w", err)
	}
	log.Info("the default admin was reset", "identity", done.ID, "username", done.Username, "created", done.Created,
		"enabled", done.WasDisabled, "policy", done.Policy, "factorRemoved", done.HadFactor && r.RemoveFactor)
	return done, nil
}

// openExisting is openData and openState where there must be a network.
func (s *Server) openExisting(ctx context.Context) error {
	if err := s.openStore(ctx); err != nil {
		return err
	}
	empty, err := network.Empty(ctx, s.store)
	if err != nil {
		return err
	}
	if empty {
		return errors.New("there is no network in this store; see that the settings are those of its controller")
	}
	if err := s.checkOwner(ctx); err != nil {
		return err
	}
	// For no names in particular: the server certificate stays as it is.
	opt := pki.Options{Now: time.Now, Algorithm: pki.Algorithm(s.cfg.Keys.Algorithm)}
	if err := s.openKeystore(opt); err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	return s.openState(ctx)
}
