package etcdstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"

	"netkeep.internal/internal/disk"
)

// lockDir creates dir and takes it for this process. etcd itself would wait
// for another process without end.
func lockDir(dir string) (*fileutil.LockedFile, error) {
	if dir == "" {
		return nil, errors.New("no data directory given")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("data directory %s is in use by another process", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	return lock, nil
}

// unfinished marks a directory whose member has never been ready. etcd cannot
// start again from what a member leaves that was stopped so early.
const unfinished = "unfinished"

// begin prepares a directory that has no member yet, or one that has never
// held anything. That one is put aside, not removed: somebody may have put
// data there by hand.
func begin(dir string) error {
	mark, data := filepath.Join(dir, unfinished), filepath.Join(dir, "member")
	_, noData := os.Lstat(data)
	if hasData(dir) {
		return nil
	}
	if noData == nil {
		aside := data + "." + unfinished
		if err := os.RemoveAll(aside); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
		if err := os.Rename(data, aside); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return disk.Sync(dir)
}

// hasData reports whether a directory is that of a member that has been ready.
func hasData(dir string) bool {
	_, noMark := os.Lstat(filepath.Join(dir, unfinished))
	_, noData := os.Lstat(filepath.Join(dir, "member"))
	return noMark != nil && noData == nil
}

// begun ends what begin began.
func begun(dir string) error {
	err := os.Remove(filepath.Join(dir, unfinished))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return disk.Sync(dir)
}
