//go:build unix

package device

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// OS is the operating system of the machine.
func OS() System {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return System{Type: runtime.GOOS}
	}
	return System{runtime.GOOS, unix.ByteSliceToString(name.Release[:])}
}
