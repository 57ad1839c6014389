//go:build unix

package channel

import (
	"io"
	"os"
	"syscall"
)

// triesOnce says that sockets can be read and written without waiting.
const triesOnce = true

// readOnce reads what there is; again says that there is nothing yet.
func readOnce(fd uintptr, p []byte) (n int, again bool, err error) {
	for {
		n, err := syscall.Read(int(fd), p)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return 0, true, nil
		case err != nil:
			return 0, false, os.NewSyscallError("read", err)
		case n == 0:
			return 0, false, io.EOF
		default:
			return n, false, nil
		}
	}
}

// writeOnce writes as much as there is room for.
func writeOnce(fd uintptr, p []byte) (written int) {
	for written < len(p) {
		n, err := syscall.Write(int(fd), p[written:])
		if err != nil && err != syscall.EINTR {
			return written
		}
		written += max(n, 0)
	}
	return written
}
