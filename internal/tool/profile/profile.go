// Package profile remembers who is logged in where: a file of its own under
// the user's directory for settings, which only the user may read. It knows
// nothing of what a controller answers.
package profile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/client/sso"
	"netkeep.internal/internal/disk"
)

// Profile is an account on a controller, and what is known of it.
type Profile struct {
	remote.Account
	// Asked is when the controller was last asked who vouches for it now.
	Asked time.Time `json:"asked,omitzero"`
	// Learned is when it was last asked where the other controllers are.
	Learned time.Time `json:"learned,omitzero"`
	// Expires is when the session ends if nobody uses it.
	Expires time.Time `json:"expires,omitzero"`
	// Identity is the name of who logged in.
	Identity string `json:"identity,omitempty"`
	// SignedIn is what an identity provider gave, if somebody signed in with one, and
	// Second says that it is what the session wants beside something else.
	SignedIn *sso.Tokens `json:"signedIn,omitempty"`
	Second   bool        `json:"second,omitempty"`
}

// Book is all profiles of a user.
type Book struct {
	Current  string             `json:"current"`
	Profiles map[string]Profile `json:"profiles"`

	path string
}

// Dir is where a user's files are.
func Dir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "netkeep"), nil
	}
	home := getenv("HOME")
	if home == "" {
		return "", errors.New("neither XDG_CONFIG_HOME nor HOME says where your settings are kept; set one of them")
	}
	return filepath.Join(home, ".config", "netkeep"), nil
}

// Open reads the profiles. There are none if there is no file.
func Open(dir string) (*Book, error) {
	b := &Book{Profiles: map[string]Profile{}, path: filepath.Join(dir, "profiles.json")}
	data, err := os.ReadFile(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the profiles: %w", err)
	}
	if err := b.guarded(); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, b); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w); remove it and log in again", b.path, err)
	}
	return b, nil
}

// guarded refuses a file that others may read: it holds tokens.
func (b *Book) guarded() error {
	info, err := os.Stat(b.path)
	if err != nil {
		return fmt.Errorf("the profiles: %w", err)
	}
	if others := info.Mode().Perm() & 0o077; others != 0 {
		return fmt.Errorf("%s holds tokens and others may open it (mode %#o); run: chmod 600 %s", b.path, info.Mode().Perm(), b.path)
	}
	return nil
}

// Save writes the profiles, whole or not at all.
func (b *Book) Save() error {
	data, err := json.Marshal(b, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	dir := filepath.Dir(b.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the profiles: %w", err)
	}
	f, err := os.CreateTemp(dir, "profiles-*") // which is made with mode 0600
	if err != nil {
		return fmt.Errorf("the profiles: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(data, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("the profiles: %w", err)
	}
	if err := os.Rename(f.Name(), b.path); err != nil {
		return fmt.Errorf("the profiles: %w", err)
	}
	return disk.Sync(dir)
}

// Change reads the profiles anew, changes them and writes them, so that two
// commands at the same time lose little.
func Change(dir string, change func(*Book) error) error {
	b, err := Open(dir)
	if err != nil {
		return err
	}
	if err := change(b); err != nil {
		return err
	}
	return b.Save()
}

// ErrNone says that nobody has logged in.
var ErrNone = errors.New("you are not logged in; run: netkeep login https://HOST:1280")

// Named returns a profile, the current one for an empty name.
func (b *Book) Named(name string) (string, Profile, error) {
	if name = cmp.Or(name, b.Current); name == "" {
		return "", Profile{}, ErrNone
	}
	p, ok := b.Profiles[name]
	if !ok {
		return "", Profile{}, fmt.Errorf("there is no profile %q; there is: %s", name, strings.Join(b.Names(), ", "))
	}
	return name, p, nil
}

// Names lists the profiles.
func (b *Book) Names() []string {
	names := make([]string, 0, len(b.Profiles))
	for name := range b.Profiles {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
