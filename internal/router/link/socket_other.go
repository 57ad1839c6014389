//go:build !linux

package link

import "syscall"

// holdLittle does nothing here: much may wait where circuits take no turns.
func holdLittle(syscall.RawConn) error { return nil }
