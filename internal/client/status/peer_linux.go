package status

import (
	"net"

	"golang.org/x/sys/unix"
)

// peer is the user on the other side.
func peer(conn *net.UnixConn) (user int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var asked error
	err = raw.Control(func(fd uintptr) {
		var who *unix.Ucred
		if who, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); asked == nil {
			user = int(who.Uid)
		}
	})
	if err == nil {
		err = asked
	}
	return user, err
}
