//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// lock waits until no other process is making or renewing files in the
// keystore. The lock ends with the process that holds it.
func (f folder) lock() (unlock func(), err error) {
	file, err := os.OpenFile(f.file(lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
	}
	return func() { file.Close() }, nil
}

// Exposed reports whether anyone but the owner may use the file.
func Exposed(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// closedTo is the bits that the mode of an operator's key must not have: those
// of everybody but the owner, though root, who gives keys to others by their
// group, may let the group read.
func closedTo(uid int) fs.FileMode {
	if uid == 0 {
		return 0o037
	}
	return 0o077
}

// checkKey refuses an operator's key that others can read.
func checkKey(info fs.FileInfo) error {
	uid := os.Getuid()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		uid = int(st.Uid)
	}
	if info.Mode().Perm()&closedTo(uid) == 0 {
		return nil
	}
	return fmt.Errorf("the key is open to other users (mode %04o): run chmod 600 on it (a secret mounted by Kubernetes needs defaultMode 0440 and an fsGroup), or replace it if it may have been read",
		info.Mode().Perm())
}
