package resolver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"netkeep.internal/internal/disk"
)

// folder tells the resolver by a file for each domain, as macOS reads them in
// /etc/resolver: it is called like the domain, and says who is asked for it and
// all below it.
type folder struct {
	opt Options
	dir string

	mu      sync.Mutex
	has     map[string]bool // domains that have a file of ours
	made    bool            // the directory, which was not there
	release func() error
}

// newFolder removes what a process that was killed has left.
func newFolder(opt Options, dir string) (*folder, error) {
	f := &folder{opt: opt, dir: dir, has: map[string]bool{}}
	if err := f.hold(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return f, nil
		}
		return nil, err
	}
	return f, f.let()
}

func (f *folder) String() string { return f.dir }

// hold keeps other tunnelers out, and removes what those have left that were
// killed.
func (f *folder) hold() error {
	if f.release != nil {
		return nil
	}
	release, err := disk.HoldFile(f.dir)
	if errors.Is(err, disk.ErrHeld) {
		return fmt.Errorf("another tunneler has files in %s and is running: names of services can be found by one alone; stop it first", f.dir)
	}
	if err != nil {
		return f.failed(err)
	}
	f.release = release
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return errors.Join(f.failed(err), f.let())
	}
	for _, e := range entries {
		if err := f.sweep(e); err != nil {
			return errors.Join(f.failed(err), f.let())
		}
	}
	return nil
}

// sweep removes a file that a process which was killed has left.
func (f *folder) sweep(e fs.DirEntry) error {
	if !e.Type().IsRegular() {
		return nil
	}
	path := filepath.Join(f.dir, e.Name())
	text, err := os.ReadFile(path)
	if err != nil {
		return nil // it is not ours, then
	}
	how, whole := written(text)
	if how != "" && !whole {
		f.opt.Log.Warn("a file for the resolver was changed after a tunneler that was killed had written it; it stays as it is", slog.String("path", path))
	}
	if !whole {
		return nil
	}
	return os.Remove(path)
}

func (f *folder) let() (err error) {
	if f.release != nil {
		err = f.release()
		f.release = nil
	}
	return err
}

func (f *folder) failed(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s cannot be changed by this user, so that names of services are not found: run the tunneler as root: %w", f.dir, err)
	}
	return fmt.Errorf("%s cannot be used, so that names of services are not found: %w", f.dir, err)
}

// tell has a file for each domain of the names, and no others.
func (f *folder) tell(_ context.Context, names []string) error {
	wanted := map[string]bool{}
	var errs []error
	for _, name := range names {
		domain := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "*."), "."))
		if !isFileName(domain) {
			errs = append(errs, fmt.Errorf("%q cannot be told to the resolver: it has other characters than letters, digits, hyphens and dots", name))
			continue
		}
		wanted[domain] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	outer := outermost(slices.Collect(maps.Keys(wanted)))
	for domain := range f.has {
		if !slices.Contains(outer, domain) {
			errs = append(errs, f.remove(domain))
		}
	}
	if len(outer) > 0 {
		if err := f.enter(); err != nil {
			return errors.Join(append(errs, err)...)
		}
	}
	for _, domain := range outer {
		errs = append(errs, f.put(domain))
	}
	return errors.Join(errs...)
}

// isFileName reports whether a domain is one that is nothing else as the name of
// a file: who configures services must not choose what is written where.
func isFileName(domain string) bool {
	const most = 253
	if domain == "" || len(domain) > most {
		return false
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// enter has the directory there, and no other tunneler in it.
func (f *folder) enter() error {
	err := os.Mkdir(f.dir, 0o755)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return f.failed(err)
	}
	f.made = f.made || err == nil
	return f.hold()
}

func (f *folder) text(path string) []byte { return compose(fresh, path, conf{}, f.opt.Server, true) }

// put writes the file of a domain, unless there is one of somebody else.
func (f *folder) put(domain string) error {
	path := filepath.Join(f.dir, domain)
	switch {
	case f.has[domain] && exists(path):
		return nil
	case exists(path):
		return fmt.Errorf("there is %s already, so that names below %s are not found: remove it if nobody needs it", path, domain)
	}
	if err := replace(path, f.text(path), fresh); err != nil {
		return f.failed(err)
	}
	f.has[domain] = true
	return nil
}

// remove takes the file of a domain away, if it is still the one that was written.
func (f *folder) remove(domain string) error {
	delete(f.has, domain)
	path := filepath.Join(f.dir, domain)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !bytes.Equal(text, f.text(path)) {
		f.opt.Log.Warn("a file for the resolver was changed by somebody else after the tunneler had written it, and stays as it is", "path", path)
		return nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("%s is left, and sends who asks for names to nobody: remove it: %w", path, err)
	}
	return nil
}

// look writes again what somebody else has removed.
func (f *folder) look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for domain := range f.has {
		errs = append(errs, f.put(domain))
	}
	return errors.Join(errs...)
}

// servers are those that the machine asks for all other names.
func (f *folder) servers(string) (all []netip.AddrPort) {
	text, err := os.ReadFile(f.opt.Path)
	if err != nil {
		return nil
	}
	for _, ip := range read(text).servers {
		if ip != f.opt.Server {
			all = append(all, netip.AddrPortFrom(ip, dnsPort))
		}
	}
	return all
}

func (f *folder) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for domain := range f.has {
		errs = append(errs, f.remove(domain))
	}
	if f.made {
		_ = os.Remove(f.dir) // unless somebody else has something in it
	}
	return errors.Join(append(errs, f.let())...)
}
