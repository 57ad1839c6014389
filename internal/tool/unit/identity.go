package unit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// copyIdentities brings identities to where the service may read them, and write
// what is renewed. One that is there already is the service's own, and may be newer.
func (u *Unit) copyIdentities(done *Installed) error {
	owner, err := u.owner()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(u.State()), 0o755); err != nil {
		return denied(err)
	}
	if err := os.Mkdir(u.State(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return denied(err)
	}
	for _, path := range u.Identities {
		to := filepath.Join(u.State(), filepath.Base(path))
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("the identity %s cannot be read: %w", path, err)
		}
		old, err := os.ReadFile(to)
		switch {
		case err == nil && bytes.Equal(old, text):
			continue
		case err == nil && !u.Force:
			return fmt.Errorf("%s is there already, and may have been renewed since: give that file with --identity, or --force to write over it", to)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return denied(err)
		}
		if err := write(to, string(text), 0o600); err != nil {
			return err
		}
		done.Copies[path] = to
	}
	return owner.give(u)
}

// owner is who the state belongs to.
type owner struct{ uid, gid int }

// owner returns the user that is named; nil for one of the service's own, to whom
// systemd gives all of the state when it does not belong to them yet.
func (u *Unit) owner() (*owner, error) {
	if u.User == "" {
		return nil, nil
	}
	who, err := user.Lookup(u.User)
	if err != nil {
		return nil, fmt.Errorf("there is no user %s on this machine: make one, or leave --user out for one of the service's own: %w", u.User, err)
	}
	uid, err := strconv.Atoi(who.Uid)
	gid, failed := strconv.Atoi(who.Gid)
	return &owner{uid, gid}, errors.Join(err, failed)
}

// give gives the state to its owner.
func (o *owner) give(u *Unit) error {
	paths := []string{u.State()}
	for _, path := range u.Identities {
		paths = append(paths, filepath.Join(u.State(), filepath.Base(path)))
	}
	if o == nil {
		// Of a directory that belongs to them already systemd looks no further.
		if o, paths = holder(u.State()), paths[1:]; o == nil {
			return nil
		}
	}
	for _, path := range paths {
		if err := os.Lchown(path, o.uid, o.gid); err != nil {
			return denied(err)
		}
	}
	return nil
}
