//go:build unix

package disk

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Place names a directory so that no other on any machine has the same name until
// this machine starts again, copies of it included; empty if it cannot be told.
func Place(dir string) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	info, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s/%d/%d", strings.TrimSpace(string(boot)), is.Dev, is.Ino)
}
