package disk

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrHeld says that another process holds the directory or file.
var ErrHeld = errors.New("it is in use by another process")

// Hold keeps other processes that ask for it out of a directory, until release
// is called or the process ends, however that is.
func Hold(dir string) (release func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return hold(f)
}

// HoldFile keeps others that ask for it away from a file that is there. Who
// holds it must look at it again: it may be another by then that has its name.
func HoldFile(path string) (release func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return hold(f)
}
