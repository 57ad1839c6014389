// Package unit is a tunneler as a service of systemd: the file that says how it is
// run, with as few rights as it can do with, and the identities that it takes along.
// It owns those files and how they are told from files of others, and the services that
// packages bring, and starts no program. It knows nothing of what a tunneler does.
package unit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Unit is a service that runs a tunneler.
type Unit struct {
	// Name is that of the service, without its ending.
	Name string
	// Root is the directory that all paths are below, for an image of a machine;
	// empty for this one.
	Root string
	// User is one that there is; if it is empty one is made, or is there while the
	// service runs.
	User string
	// Program is the path of netkeep.
	Program string
	// Identities are files of identities, which are copied to where the service may
	// write: certificates are renewed there.
	Identities []string
	// Args are what the tunneler is told, without its identities.
	Args []string
	// Intercepts says that it needs a network device.
	Intercepts bool
	// Force says that files that were changed meanwhile may go.
	Force bool
}

// Usual is what a service is called if nobody says otherwise.
const Usual = "netkeep-tunnel"

// named is what services may be called. Sockets of tunnelers are looked for below
// such names.
var named = regexp.MustCompile(`^netkeep[A-Za-z0-9_-]{0,40}$`)

// people are what users may be called.
var people = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,30}$`)

// Check says why a unit cannot be one.
func (u *Unit) Check() error {
	switch {
	case !named.MatchString(u.Name):
		return fmt.Errorf("%q is no name for the service: it begins with netkeep, and has letters, digits, - and _ alone", u.Name)
	case u.User != "" && !people.MatchString(u.User):
		return fmt.Errorf("%q is no name of a user", u.User)
	case u.Makes() && !people.MatchString(u.Name):
		return fmt.Errorf("%s is too long for the name of a user: choose another with --name, or a user that there is with --user", u.Name)
	case !filepath.IsAbs(u.Program):
		return fmt.Errorf("%s is no absolute path of a program", u.Program)
	case hidden(u.Program):
		return fmt.Errorf("the service does not see %s, which is a file of one user: copy it to /usr/local/bin/netkeep, and run that, or name it with --program", u.Program)
	}
	for _, text := range slices.Concat([]string{u.Program}, u.Args, u.Identities) {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%q has characters that a unit cannot have", text)
		}
	}
	seen := map[string]string{}
	for _, path := range u.Identities {
		name := filepath.Base(path)
		if other, twice := seen[name]; twice {
			return fmt.Errorf("%s and %s would have one name beside each other: rename one", other, path)
		}
		seen[name] = path
	}
	return nil
}

// hidden reports whether a service does not see a path.
func hidden(path string) bool {
	for _, dir := range []string{"/home/", "/root/", "/tmp/", "/var/tmp/", "/run/user/"} {
		if strings.HasPrefix(filepath.Clean(path), dir) {
			return true
		}
	}
	return false
}

// Path is where the unit is.
func (u *Unit) Path() string {
	return filepath.Join("/", u.Root, "etc", "systemd", "system", u.Name+".service")
}

// rule is where it is said that the service may tell the machine's resolver of names.
func (u *Unit) rule() string {
	return filepath.Join("/", u.Root, "etc", "polkit-1", "rules.d", "50-"+u.Name+".rules")
}

// State is where the service keeps its identities.
func (u *Unit) State() string { return filepath.Join("/", u.Root, "var", "lib", u.Name) }

// Installed is what was done.
type Installed struct {
	Files []string // that were written
	// Copies are the identities that the service uses from now on, by what they are
	// copies of; those that were there already are not among them.
	Copies map[string]string
}

// Install writes the unit, and copies its identities. What somebody else wrote is
// left alone.
func (u *Unit) Install() (*Installed, error) {
	if err := u.Check(); err != nil {
		return nil, err
	}
	files := map[string]string{u.Path(): u.Text()}
	if u.Intercepts && u.User != "root" {
		files[u.rule()] = u.Rule()
	}
	if u.Makes() {
		files[u.account()] = u.accountText()
		if err := u.stranger(); err != nil {
			return nil, err
		}
	}
	for path := range files {
		if err := u.replaceable(path); err != nil {
			return nil, err
		}
	}
	done := &Installed{Copies: map[string]string{}}
	if err := u.copyIdentities(done); err != nil {
		return nil, err
	}
	for _, path := range []string{u.account(), u.rule(), u.Path()} {
		text, wanted := files[path]
		if !wanted {
			continue
		}
		if err := write(path, text, 0o644); err != nil {
			return nil, err
		}
		done.Files = append(done.Files, path)
	}
	return done, nil
}

// Removable says why what Install wrote cannot be removed.
func (u *Unit) Removable() error {
	if !named.MatchString(u.Name) {
		return u.Check()
	}
	for _, path := range u.written() {
		if err := u.replaceable(path); err != nil {
			return err
		}
	}
	return nil
}

// written is what there may be of Install. The user's file goes last: until then the
// user can be known to be ours.
func (u *Unit) written() []string { return []string{u.Path(), u.rule(), u.account()} }

// Uninstall removes what Install wrote, and returns it. Identities stay: their
// certificates may have been renewed, and there may be no other copy.
func (u *Unit) Uninstall() (gone []string, err error) {
	if err := u.Removable(); err != nil {
		return nil, err
	}
	for _, path := range u.written() {
		switch err := os.Remove(path); {
		case err == nil:
			gone = append(gone, path)
		case !errors.Is(err, fs.ErrNotExist):
			return gone, err
		}
	}
	if len(gone) == 0 {
		return nil, fmt.Errorf("there is no %s: netkeep tunnel install writes it", u.Path())
	}
	return gone, nil
}

// mark is what the first line of files has that are ours, with a digest of the rest.
const mark = " Written by netkeep tunnel install; netkeep tunnel uninstall removes it. "

// marked is a text with a first line that says whose it is.
func marked(comment, text string) string {
	return comment + mark + digest(text) + "\n" + text
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// replaceable says why a file must not be written over or removed.
func (u *Unit) replaceable(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	_, sum, ours := strings.Cut(first, mark)
	switch {
	case !ours:
		return fmt.Errorf("%s is not of netkeep tunnel install, and is left alone: remove it yourself, or choose another name with --name", path)
	case sum != digest(rest) && !u.Force:
		return fmt.Errorf("%s was changed since netkeep tunnel install wrote it: give --force if it may go; what is to stay belongs into %s.d/", path, u.Path())
	}
	return nil
}

// write puts a file in its place, whole or not at all.
func write(path, text string, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return denied(err)
	}
	temp, err := os.CreateTemp(dir, ".netkeep-*")
	if err != nil {
		return denied(err)
	}
	defer os.Remove(temp.Name()) // which fails if it has its name
	_, err = temp.WriteString(text)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return os.Rename(temp.Name(), path)
}

// denied says what to do about a right that is missing.
func denied(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("only root may write a service: try with sudo, or see what it would be with --print: %w", err)
	}
	return err
}
