package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
)

// Recover makes the controller of a data directory, which does not run, the only
// one that keeps the store, for when most of those that did are lost. It returns
// how far it had heard of what they decided.
func Recover(ctx context.Context, data string, log *slog.Logger) (rev store.Rev, err error) {
	if _, err := os.Stat(filepath.Join(data, storeDir)); err != nil {
		return 0, fmt.Errorf("there is no store in %s; name the data directory of a controller with --data", data)
	}
	d, err := openDir(data)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	st, err := d.stage()
	if err != nil {
		return 0, err
	}
	if st.Stage == "" {
		return 0, fmt.Errorf("the controller of %s keeps its store alone: there is nothing to recover, start it", data)
	}
	if !d.hasStore() {
		return 0, fmt.Errorf("there is no store in %s to go on with: take the data directory of another controller, or a snapshot with netkeep restore", data)
	}
	own, err := etcdstore.Open(ctx, etcdstore.Options{Dir: d.sub(storeDir), Alone: true, Logger: log})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	if rev, err = own.Last(ctx); err != nil {
		return 0, err
	}
	return rev, d.setStage(stage{Stage: stageFounder})
}
