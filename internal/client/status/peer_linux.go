package status

import "golang.org/x/sys/unix"

// userOf is the user on the other side of a socket.
func userOf(fd int) (int, error) {
	who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(who.Uid), nil
}
