//go:build linux || darwin

package status

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const offered = true

// ErrNotOffered is for systems where there is no such socket.
var ErrNotOffered = errors.New("tunnel status is not offered on this system")

// Place is the directory where a tunneler of this user has its socket: what a
// service manager made for it, or the user's own for what runs, or else that of the
// machine for root, and one among temporary files for others.
func Place(getenv func(string) string) string {
	if made, _, _ := strings.Cut(getenv("RUNTIME_DIRECTORY"), ":"); made != "" {
		if led, err := filepath.EvalSymlinks(made); err == nil {
			return led // of a user that there is only while the service runs
		}
		return made
	}
	if dir := getenv("XDG_RUNTIME_DIR"); dir != "" && ours(dir) == nil {
		return filepath.Join(dir, "netkeep")
	}
	if os.Geteuid() == 0 {
		return filepath.Join(machine(), "netkeep")
	}
	return filepath.Join(os.TempDir(), "netkeep-"+strconv.Itoa(os.Geteuid()))
}

// Places are the directories where tunnelers have sockets that this user may ask.
// Root may ask those of services too, which have users of their own.
func Places(getenv func(string) string) []string {
	all := []string{Place(getenv)}
	if os.Geteuid() == 0 {
		services, _ := filepath.Glob(filepath.Join(machine(), "netkeep*"))
		all = append(all, services...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// machine is where the machine keeps what belongs to what runs.
func machine() string {
	if runtime.GOOS == "linux" {
		return "/run"
	}
	return "/var/run"
}

// own makes a directory that only this user gets into, or makes sure that it is one.
func own(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the directory %s for the socket cannot be made: %w", dir, err)
	}
	if err := ours(dir); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err == nil && info.Mode().Perm() != 0o700 {
		err = os.Chmod(dir, 0o700) // #nosec G302 -- a directory has to be entered
	}
	return err
}

// ours says why a directory is not one of this user alone.
func ours(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !known || int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is no directory of this user: somebody else has made it; remove it, or name a socket with --socket", dir)
	}
	return nil
}
