//go:build unix

package cli

import (
	"os/signal"
	"syscall"
)

// ignoreFileLimit makes a limit on the size of files an error of the write, like
// a full disk, and not the end of the process.
func ignoreFileLimit() { signal.Ignore(syscall.SIGXFSZ) }
