//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package pki

import "io/fs"

// These systems have no advisory file locks or permission bits that Go's
// standard library could offer: one process at a time must use a keystore, and
// its directory must be closed by the system's own means.

func (f folder) lock() (unlock func(), err error) { return func() {}, nil }

// Exposed reports whether anyone but the owner may use the file, as far as can be
// told.
func Exposed(fs.FileInfo) bool { return false }

func checkKey(fs.FileInfo) error { return nil }
