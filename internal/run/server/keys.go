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

	"netkeep.internal/internal/data/owner"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/pki"
)

// attach opens the data directory and the store of a controller that does not
// run. It makes neither.
func attach(ctx context.Context, cfg config.Config, log *slog.Logger) (_ *Server, err error) {
	needed := cfg.Data
	if len(cfg.Store.Endpoints) == 0 {
		needed = filepath.Join(cfg.Data, storeDir)
	}
	if _, err := os.Stat(needed); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no network in %s; name the data directory of its controller with --data", cfg.Data)
	}
	s := &Server{cfg: cfg, log: log, failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = openDir(cfg.Data); err != nil {
		return nil, err
	}
	s.onClose(s.dir.close)
	return s, s.openStore(ctx)
}

// ForgetKeys makes a store whose keys are lost that of nobody, so that the next
// start makes new ones. It returns the root CA that the store belonged to.
func ForgetKeys(ctx context.Context, cfg config.Config, log *slog.Logger) (root string, err error) {
	s, err := attach(ctx, cfg, log)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if root, err = owner.Root(ctx, s.store); err != nil {
		return "", err
	}
	keys, err := pki.Read(s.dir.sub(keysDir))
	if err != nil {
		return "", err
	}
	if keys != nil && (root == "" || rootName(keys.Origin) == root) {
		return "", fmt.Errorf("%s has the keys of this store: nothing is lost", s.dir.sub(keysDir))
	}
	if root, err = owner.Forget(ctx, s.store, time.Now()); err != nil {
		return "", err
	}
	if root == "" {
		return "", errors.New("the store belongs to no network: there is nothing to forget")
	}
	log.Warn("the store has forgotten its root CA", "root", root)
	return root, nil
}
