package disk

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// beyond is the byte that is locked: there locks keep others from reading, and
// this one is behind the end of every file.
const beyond = math.MaxInt32

func hold(f *os.File) (release func() error, err error) {
	const once = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), once, 0, 1, 0, &windows.Overlapped{OffsetHigh: beyond})
	if err == nil {
		return f.Close, nil
	}
	_ = f.Close()
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return nil, ErrHeld
	}
	return nil, err
}
