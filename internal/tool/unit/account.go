package unit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Makes reports whether the service runs as a user that is made for it. A tunneler
// that intercepts tells systemd-resolved of names, over D-Bus; and systemd keeps that
// daemon from asking it for users, so that one that there is only while the service
// runs is a stranger there. Others have no need of one.
func (u *Unit) Makes() bool { return u.Intercepts && u.User == "" }

// Users is what systemd-sysusers is to be given for the user that is made.
func (u *Unit) Users() string { return u.Name + ".conf" }

// account is where it is said that there is such a user. While that file is there, the
// user is ours.
func (u *Unit) account() string {
	return filepath.Join("/", u.Root, "etc", "sysusers.d", u.Users())
}

// accountText is what it says.
func (u *Unit) accountText() string {
	return marked("#", fmt.Sprintf("u %s - \"netkeep tunneler\"\n", u.Name))
}

// stranger says why no user can be made: one who is there was made by somebody else,
// for something else, and would be removed with the service.
func (u *Unit) stranger() error {
	if _, err := os.Lstat(u.account()); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	there, err := u.listed()
	if err != nil || !there {
		return err
	}
	return fmt.Errorf("there is a user %s on this machine, whom netkeep tunnel install did not make: have the service run as that one with --user %s, or choose another name with --name", u.Name, u.Name)
}

// listed reports whether the machine's own list has the user. Others who know users may
// not count: of those that there are only while a service runs, systemd tells too.
func (u *Unit) listed() (bool, error) {
	text, err := os.ReadFile(filepath.Join("/", u.Root, "etc", "passwd"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return strings.Contains("\n"+string(text), "\n"+u.Name+":"), err
}

// Made returns the user that was made for the service and is there still, or nothing.
func (u *Unit) Made() (string, error) {
	if _, err := os.Lstat(u.account()); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return "", err
	}
	there, err := u.listed()
	if !there {
		return "", err
	}
	return u.Name, nil
}

// Reclaim gives root what the service kept, before its user goes: whoever was given
// the same number later would have the identities.
func (u *Unit) Reclaim() error {
	state, err := filepath.EvalSymlinks(u.State())
	if err == nil {
		err = filepath.WalkDir(state, reclaim)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func reclaim(path string, _ fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	return os.Lchown(path, 0, 0)
}
