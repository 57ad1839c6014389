//go:build unix

package unit

import (
	"os"
	"syscall"
)

// holder is who a directory belongs to, nil if nobody knows.
func holder(dir string) *owner {
	info, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return nil
	}
	return &owner{int(stat.Uid), int(stat.Gid)}
}
