package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"netkeep.internal/internal/data/backup"
	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/integrity"
	"netkeep.internal/internal/data/owner"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
)

const (
	// compactEvery is how often history is forgotten. What happened within the
	// last interval stays, for followers that are late.
	compactEvery = 10 * time.Minute
	// compactWaits is for how many intervals it stays for who asks.
	compactWaits = 6
)

// history is what compact needs to know of memory.
type history interface {
	Snapshot() *state.Snapshot
	// Wanted is how far up to a revision history may be forgotten.
	Wanted(rev store.Rev) store.Rev
}

// reclaimer is a store that has a file of its own.
type reclaimer interface {
	Reclaim(ctx context.Context) error
}

// compact forgets history at every interval until ctx ends: all that was there
// an interval ago, or some intervals ago if somebody still wants it. Not
// everybody who may use a cluster may. Of several controllers the one does it that
// it falls to; each gives the space back that its own store has got free.
func compact(ctx context.Context, st store.Store, of history, every time.Duration, mine func() bool, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ago := []store.Rev{of.Snapshot().Rev}; ; ago = append(ago, of.Snapshot().Rev) { // at each interval
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		ago = ago[max(0, len(ago)-compactWaits):]
		var err error
		if own, ok := st.(reclaimer); mine() {
			err = st.Compact(ctx, max(ago[0], of.Wanted(ago[len(ago)-1])))
		} else if ok {
			err = own.Reclaim(ctx)
		}
		if etcdstore.Refused(err) {
			log.Info("the cluster's operators have to forget its history: the user of store.username may not", "error", err)
			return
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("forgetting history failed; it is tried again", "error", err)
		}
	}
}

// newScanner returns what checks the store and repairs it.
func (s *Server) newScanner() *integrity.Scanner {
	return &integrity.Scanner{
		State: s.state, Store: s.store, Quarantine: s.dir.sub("quarantine"), Now: time.Now, Log: s.log,
		Seed: func(tx *state.Tx) error { return model.Seed(tx) },
		Lag:  sweepEvery + time.Second,
	}
}

// openSnapshots prepares to write snapshots of the store.
func (s *Server) openSnapshots() error {
	prefix := ""
	if len(s.cfg.Store.Endpoints) > 0 {
		prefix = s.cfg.Store.Prefix
	}
	dir := s.cfg.Snapshots.Dir
	if dir == "" {
		dir = s.dir.sub("snapshots")
	}
	s.snapshots = &backup.Snapshots{
		Dir: dir, Write: s.writeSnapshot, Scheduled: s.noteScheduled, Now: time.Now, Log: s.log,
		Roots: func() []string { return []string{rootName(s.keys.Authorities().Origin)} },
		Verify: func(ctx context.Context, path string) (backup.Content, error) {
			mark, values, err := etcdstore.Inspect(ctx, path, prefix, owner.Key)
			if err != nil {
				return backup.Content{}, err
			}
			root, err := owner.RootOf(values[owner.Key])
			return backup.Content{Rev: mark.Rev, Root: root}, err
		},
	}
	s.onClose(s.snapshots.Close)
	return s.snapshots.Clean()
}

// writeSnapshot copies the store, if it lets us.
func (s *Server) writeSnapshot(ctx context.Context, w io.Writer) error {
	err := s.store.Snapshot(ctx, w)
	if etcdstore.Refused(err) {
		return &fault.Error{Code: fault.CodeSnapshot, Cause: err,
			Reason: "the user of store.username may not copy the cluster, which may hold others' keys: take snapshots with etcd's own tools (etcdctl snapshot save), as root of the cluster"}
	}
	return err
}

// Restore makes a data directory from a snapshot, and returns when that was
// taken and the fingerprint of the root CA of its network, empty if it does not
// say. It refuses a directory with anything in it, and leaves nothing behind
// when it fails.
func Restore(ctx context.Context, data, snapshot string) (_ store.Mark, root string, err error) {
	entries, err := os.ReadDir(data)
	existed := !errors.Is(err, fs.ErrNotExist)
	switch {
	case existed && err != nil:
		return store.Mark{}, "", fmt.Errorf("data directory: %w", err)
	case len(entries) > 0:
		return store.Mark{}, "", fmt.Errorf("data directory %s is not empty; restore into a new one with --data", data)
	}
	mark, values, err := etcdstore.Inspect(ctx, snapshot, "", format.Key, owner.Key)
	if err == nil {
		err = format.Readable(values[format.Key])
	}
	if err == nil {
		root, err = owner.RootOf(values[owner.Key])
	}
	if err != nil {
		return store.Mark{}, "", err
	}
	from, err := os.Open(snapshot)
	if err != nil {
		return store.Mark{}, "", fmt.Errorf("open the snapshot: %w", err)
	}
	defer from.Close()
	if err := os.MkdirAll(data, 0o700); err != nil {
		return store.Mark{}, "", fmt.Errorf("data directory: %w", err)
	}
	into := filepath.Join(data, storeDir)
	if err := etcdstore.Restore(ctx, from, into); err != nil {
		_ = os.Remove(into) // both are empty
		if !existed {
			_ = os.Remove(data)
		}
		return store.Mark{}, "", err
	}
	line := fmt.Sprintf("%s, revision %d of %s\n", filepath.Base(snapshot), mark.Rev, mark.Time.UTC().Format(time.RFC3339))
	if err := os.WriteFile(filepath.Join(data, restoredFile), []byte(line), 0o600); err != nil {
		return store.Mark{}, "", fmt.Errorf("data directory: %w", err)
	}
	return mark, root, nil
}
