package link

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// holdLittle has the system take no more for a socket than it is about to send.
// The rest waits here, where circuits take turns.
func holdLittle(raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
	})
	if err != nil {
		return err
	}
	return failed
}
