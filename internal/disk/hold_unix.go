//go:build unix

package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// ErrHeld says that another process holds the directory.
var ErrHeld = errors.New("it is in use by another process")

// Hold keeps other processes that ask for it out of a directory, until release
// is called or the process ends, however that is.
func Hold(dir string) (release func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return f.Close, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrHeld
	}
	return nil, err
}
