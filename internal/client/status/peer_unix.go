//go:build linux || darwin

package status

import "net"

// peer is the user on the other side.
func peer(conn *net.UnixConn) (user int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var asked error
	if err := raw.Control(func(fd uintptr) { user, asked = userOf(int(fd)) }); err != nil {
		return 0, err
	}
	return user, asked
}
