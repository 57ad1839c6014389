//go:build unix

package disk

import (
	"errors"
	"os"
	"syscall"
)

func hold(f *os.File) (release func() error, err error) {
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		return f.Close, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrHeld
	}
	return nil, err
}
