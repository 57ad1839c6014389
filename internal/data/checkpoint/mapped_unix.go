//go:build unix

package checkpoint

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapped is a file as memory, of which a page is read when it is looked at.
func mapped(file *os.File, size int) ([]byte, func(), error) {
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return whole(file, size)
	}
	return data, func() { _ = unix.Munmap(data) }, nil
}
