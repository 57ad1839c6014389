// Package disk makes what happens to the names in a directory last: a file that
// was made, renamed or removed there stays so when the machine fails. It writes
// files whole or not at all, and knows how much fits on a disk. It imports
// nothing of ours.
package disk

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// Sync returns when the names in a directory are on disk.
func Sync(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be synced there
	}
	d, err := os.Open(dir)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
