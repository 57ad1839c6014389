//go:build !linux && !darwin

package status

import (
	"errors"
	"net"
)

const offered = false

// ErrNotOffered is for systems where there is no such socket: on this one nobody
// can tell who asks.
var ErrNotOffered = errors.New("tunnel status is not offered on this system: a socket here does not tell who asks; the tunneler's log says the same")

// Place and Places are directories for sockets, of which there are none.
func Place(func(string) string) string { return "" }

// Places are none.
func Places(func(string) string) []string { return nil }

func own(string) error { return ErrNotOffered }

func peer(*net.UnixConn) (int, error) { return 0, ErrNotOffered }
