//go:build unix

package disk

import "golang.org/x/sys/unix"

// Free is how many bytes fit on the disk of a directory; not ok if that cannot
// be told.
func Free(dir string) (n int64, ok bool) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), true
}
