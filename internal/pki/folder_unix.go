//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// lock waits until no other process is making or renewing files in the
// keystore. The lock ends with the process that holds it.
func (f folder) lock() (unlock func(), err error) {
	file, err := os.OpenFile(f.file(lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
	}
	return func() { file.Close() }, nil
}

// exposed reports whether anyone but the owner may use the file.
func exposed(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
