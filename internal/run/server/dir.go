package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"netkeep.internal/internal/disk"
)

// dir is the data directory, held by this process alone.
type dir struct {
	path    string
	release func() error
}

// openDir makes the directory if it is not there, and keeps other controllers
// out of it until it is closed. The lock goes with the process, however that
// ends.
func openDir(path string) (*dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	release, err := disk.Hold(path)
	switch {
	case errors.Is(err, disk.ErrHeld):
		return nil, fmt.Errorf("data directory %s is in use by another netkeep; stop that one or give this one --data of its own", path)
	case err != nil:
		return nil, fmt.Errorf("lock data directory %s: %w", path, err)
	}
	return &dir{path, release}, nil
}

// spaceToGoOn is how much must fit on the disk before it is worth trying again.
const spaceToGoOn = 16 << 20

// hasSpace reports whether something can be written.
func (d *dir) hasSpace() bool {
	f, err := os.CreateTemp(d.path, "space-")
	if err != nil {
		return false
	}
	defer os.Remove(f.Name())
	_, err = io.CopyN(f, zeros{}, spaceToGoOn)
	return errors.Join(err, f.Sync(), f.Close()) == nil
}

// zeros is a source that never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// note leaves a line for commands on this machine, in a file of its own, unless
// it is there already.
func (d *dir) note(name, line string) error {
	path := d.sub(name)
	if is, err := os.ReadFile(path); err == nil && string(is) == line+"\n" {
		return nil
	}
	if err := os.WriteFile(path+".new", []byte(line+"\n"), 0o600); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

// drop takes such a line away.
func (d *dir) drop(name string) error {
	err := os.Remove(d.sub(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d *dir) sub(name string) string { return filepath.Join(d.path, name) }

func (d *dir) close() error { return d.release() }
