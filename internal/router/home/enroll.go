package home

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/pki"
)

// Enroll makes a directory the home of the router that an invitation is for.
// Nothing is asked of the controller before all that can be wrong here is known
// to be right: the token works once.
func Enroll(ctx context.Context, dir string, inv *enroll.Invitation, set Settings, force bool, opt enroll.Options) error {
	if !inv.IsRouter() {
		return errors.New("the token is for an identity: use netkeep enroll")
	}
	if len(inv.Control) == 0 {
		return errors.New("the token does not say where routers connect: have an admin make a new one by re-enrolling the router")
	}
	release, err := claim(dir, set, force)
	if err != nil {
		return err
	}
	defer func() { _ = release() }()
	h, err := prepare(dir)
	if err != nil {
		return err
	}
	defer h.close()
	key, err := pki.P256.Generate()
	if err != nil {
		return err
	}
	c, err := enroll.Meet(ctx, inv, opt)
	if err != nil {
		return err
	}
	defer c.Close()
	r, err := c.Router(ctx, key, set.names(), true)
	if err != nil {
		return err
	}
	return h.settle(set, identityOf(inv.Subject, inv.Control, r))
}

// Enrolled reports whether a directory is the home of a router.
func Enrolled(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, papersFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Settle makes a directory the home of a router that has been enrolled, in
// place of whoever had it.
func Settle(dir string, set Settings, i Identity) error {
	release, err := claim(dir, set, true)
	if err != nil {
		return err
	}
	defer func() { _ = release() }()
	h, err := prepare(dir)
	if err != nil {
		return err
	}
	defer h.close()
	return h.settle(set, i)
}

// claim makes a directory for a router that is no other's, unless force says so.
func claim(dir string, set Settings, force bool) (release func() error, err error) {
	if err := set.check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the router's directory: %w", err)
	}
	if there, err := Enrolled(dir); !force && (there || err != nil) {
		if err != nil {
			return nil, fmt.Errorf("the router's directory: %w", err)
		}
		return nil, fmt.Errorf("there is a router in %s already: name another directory, or give --force to write over it", dir)
	}
	release, err = disk.Hold(dir)
	switch {
	case errors.Is(err, disk.ErrHeld):
		return nil, fmt.Errorf("the router in %s is running: stop it first", dir)
	case err != nil:
		return nil, fmt.Errorf("the router's directory: %w", err)
	}
	return release, nil
}

// home is a directory with room for what a router needs.
type home struct {
	dir              string
	settings, papers *disk.File
}

func prepare(dir string) (*home, error) {
	h := &home{dir: dir}
	var err error
	if h.settings, err = disk.NewFile(filepath.Join(dir, settingsFile), true); err != nil {
		return nil, err
	}
	if h.papers, err = disk.NewFile(filepath.Join(dir, papersFile), true); err != nil {
		h.settings.Close()
		return nil, err
	}
	return h, nil
}

// close gives up what was not written.
func (h *home) close() {
	h.settings.Close()
	h.papers.Close()
}

// settle writes what a router needs. The identity comes last: with it, there is
// a router.
func (h *home) settle(set Settings, i Identity) error {
	if _, err := i.use(); err != nil {
		return fmt.Errorf("what the controller issued cannot be used: %w", err)
	}
	for _, name := range []string{pendingFile, listFile, quietFile} {
		if err := os.Remove(filepath.Join(h.dir, name)); err != nil && isThere(err) {
			return err
		}
	}
	if err := set.write(h.settings); err != nil {
		return err
	}
	return i.write(h.papers)
}
