//go:build unix

package screen

import (
	"os"

	"golang.org/x/sys/unix"
)

// pending reports whether lines wait at a terminal that nobody has read yet.
func pending(f *os.File) bool {
	n, err := unix.IoctlGetInt(int(f.Fd()), waiting)
	return err == nil && n > 0
}
