package resolver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"netkeep.internal/internal/disk"
)

// file tells the resolver by resolv.conf. It is replaced by one of ours, and the
// one before keeps its bytes, its mode and its kind under another name until it
// comes back.
type file struct {
	opt Options
	// alone says that there must be no other server: resolvers of musl ask all
	// at once, and take what comes first.
	alone bool

	mu      sync.Mutex
	ours    []byte // what we wrote, nil if nothing
	real    string // where
	how     string
	release func() error
	// before is what the one before says, read when it was changed at that time:
	// it may be a link to what somebody else writes.
	before  conf
	changed time.Time

	seen  []byte // what was there when somebody last looked
	calm  int    // how often that was the same
	times int    // how often it was not ours since it was calm for long
}

const (
	// maxTimes is how often we write it again after somebody else: two who both
	// do that would never end.
	maxTimes = 20
	// calmLooks is how often nothing has happened when all that is forgotten.
	calmLooks = 150
)

func newFile(opt Options) *file {
	musl, _ := filepath.Glob("/lib/ld-musl-*")
	return &file{opt: opt, alone: len(musl) > 0}
}

func (f *file) String() string { return f.opt.Path }

func unreadable(path string, err error) error {
	return fmt.Errorf("%s cannot be read, so that names of services are not found: %w", path, err)
}

// target is the file itself, if its name is that of a link.
func target(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// mend brings back what a process that was killed has replaced.
func (f *file) mend() error {
	path := f.opt.Path
	text, err := f.current()
	if err != nil {
		return err
	}
	how, whole := written(text)
	if how == "" {
		return f.tidy(text)
	}
	release, err := disk.HoldFile(path)
	if errors.Is(err, disk.ErrHeld) {
		return fmt.Errorf("another tunneler has changed %s and is running: names of services can be found by one alone; stop it first", path)
	}
	if err != nil {
		return unreadable(path, err)
	}
	defer func() { _ = release() }()
	place := path
	if how == inPlace {
		place = target(path)
	}
	switch {
	case !whole:
		f.opt.Log.Warn("resolv.conf was changed after a tunneler that was killed had written it; it stays as it is, and what was before is kept",
			"path", path, "before", backup(place))
		return nil
	case how != fresh && !exists(backup(place)):
		return fmt.Errorf("%s is of a tunneler that was killed, and %s with what was before is gone: write %s anew, with the servers of this network", path, backup(place), path)
	}
	return f.bringBack(place, how)
}

// bringBack restores what was before a process that was killed.
func (f *file) bringBack(place, how string) error {
	path := f.opt.Path
	if err := restore(path, place, how); err != nil {
		return fmt.Errorf("%s is of a tunneler that was killed, and what was before cannot come back: %w; copy %s over it", path, err, backup(place))
	}
	f.opt.Log.Info("resolv.conf is as it was before a tunneler that was killed", "path", path)
	return nil
}

// tidy removes what was before something that is not ours.
func (f *file) tidy(text []byte) error {
	path := f.opt.Path
	for _, place := range []string{path, target(path)} {
		if !exists(backup(place)) {
			continue
		}
		if len(text) == 0 && exists(path) { // it was killed while it wrote
			return f.bringBack(place, inPlace)
		}
		one, _ := os.Lstat(place)
		if other, err := os.Lstat(backup(place)); err != nil || one == nil || !os.SameFile(one, other) {
			f.opt.Log.Warn("resolv.conf was written by somebody else after a tunneler that was killed; it stays as it is", "path", path)
		}
		// Who may not write there may do without: nothing hangs on it any more.
		if err := os.Remove(backup(place)); err != nil {
			f.opt.Log.Warn("what a tunneler that was killed has left cannot be removed, and stays: remove it as root", "path", backup(place), "error", err)
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// restore brings back what was before.
func restore(path, place, how string) error {
	switch how {
	case fresh:
		return os.Remove(path)
	case inPlace:
		text, err := os.ReadFile(backup(place))
		if err == nil {
			err = overwrite(place, text)
		}
		if err != nil {
			return err
		}
		return os.Remove(backup(place))
	}
	if err := os.Rename(backup(path), path); err != nil {
		return err
	}
	return disk.Sync(filepath.Dir(path))
}

// overwrite writes a file that keeps its place, for lack of another way.
func overwrite(path string, text []byte) error {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = to.Write(text)
	return errors.Join(err, to.Sync(), to.Close())
}

// tell puts our file in its place as long as there are names.
func (f *file) tell(_ context.Context, names []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(names) > 0 && f.ours == nil:
		return f.put()
	case len(names) == 0 && f.ours != nil:
		return f.back()
	}
	return nil
}

// put writes our file.
func (f *file) put() error {
	path := f.opt.Path
	text, err := f.current()
	if err != nil {
		return err
	}
	// Another tunneler may have come first, since this one was opened.
	if how, whole := written(text); whole {
		if err := f.mend(); err != nil {
			return err
		}
		if text, err = f.current(); err != nil {
			return err
		}
	} else if how != "" {
		return fmt.Errorf("%s was changed after a tunneler had written it, so that names of services are not found: copy %s over it, or take the tunneler's lines out of it", path, backup(path))
	}
	f.before, f.changed = read(text), time.Time{}
	f.how, f.real = replaced, path
	if !exists(path) {
		f.how = fresh
	}
	ours := f.compose()
	if err := replace(path, ours, f.how); err != nil {
		if f.how == fresh {
			return unwritable(path, err)
		}
		f.how, f.real = inPlace, target(path)
		ours = f.compose()
		if also := rewrite(f.real, text, ours); also != nil {
			return unwritable(path, fmt.Errorf("%w; %w", err, also))
		}
	}
	f.ours, f.seen, f.calm = ours, ours, 0
	if f.release, err = disk.HoldFile(path); err != nil {
		f.release = nil // then another one that starts takes us for killed
	}
	return nil
}

func (f *file) compose() []byte {
	return compose(f.how, f.real, f.before, f.opt.Server, f.alone)
}

func unwritable(path string, err error) error {
	if errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%s cannot be changed by this user, so that names of services are not found: run the tunneler as root, or use systemd-resolved: %w", path, err)
	}
	return fmt.Errorf("%s cannot be changed, so that names of services are not found; it may be immutable (lsattr), or on a disk that is read-only: make it writable, or add the tunneler's server to it by hand: %w", path, err)
}

// replace gives what is there another name, and its name to our file. There is
// no time at which there is none.
func replace(path string, ours []byte, how string) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // if it has not got its name
	_, err = temp.Write(ours)
	if err := errors.Join(err, temp.Chmod(0o644), temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if how == replaced {
		if err := os.Remove(backup(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Link(path, backup(path)); err != nil {
			return err
		}
		if err := disk.Sync(filepath.Dir(path)); err != nil {
			return err
		}
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		if how == replaced {
			_ = os.Remove(backup(path))
		}
		return err
	}
	return disk.Sync(filepath.Dir(path))
}

// rewrite keeps a copy of what is there, and writes over it.
func rewrite(path string, before, ours []byte) error {
	// Whether it can be written is known before anything is done.
	probe, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_ = probe.Close()
	saved, err := disk.NewFile(backup(path), true)
	if err != nil {
		return err
	}
	defer saved.Close()
	if err := saved.Write(before); err != nil {
		return err
	}
	if err := overwrite(path, ours); err != nil {
		// What is half written is worse than what was before.
		return errors.Join(err, overwrite(path, before), os.Remove(backup(path)))
	}
	return nil
}

// current is what is there now, if anything is.
func (f *file) current() ([]byte, error) {
	text, err := os.ReadFile(f.opt.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadable(f.opt.Path, err)
	}
	return text, nil
}

// back brings back what was before, unless somebody else has written theirs.
func (f *file) back() error {
	defer f.forget()
	text, err := f.current()
	if err != nil {
		return err
	}
	if how, _ := written(text); how != "" && !bytes.Equal(text, f.ours) {
		f.opt.Log.Warn(fmt.Sprintf("resolv.conf was changed by somebody else after the tunneler had written it, and stays as it is: take nameserver %s out of it, or copy what was before over it", f.opt.Server),
			"path", f.opt.Path, "before", backup(f.real))
		return nil
	}
	if !bytes.Equal(text, f.ours) {
		f.opt.Log.Warn("resolv.conf was written by somebody else meanwhile, and stays as it is", "path", f.opt.Path)
		return f.drop()
	}
	if err := restore(f.opt.Path, f.real, f.how); err != nil {
		return fmt.Errorf("%s cannot be as before: %w; copy %s over it", f.opt.Path, err, backup(f.real))
	}
	return nil
}

// drop removes what was before something that somebody else wrote.
func (f *file) drop() error {
	if err := os.Remove(backup(f.real)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (f *file) forget() {
	f.ours = nil
	if f.release != nil {
		_ = f.release()
		f.release = nil
	}
}

// look takes what somebody else has written for what was before: a machine that
// comes into another network gets another file. Ours with a change stays: our
// server is in it.
func (f *file) look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ours == nil {
		return nil
	}
	text, err := f.current()
	if err != nil {
		return err
	}
	if f.calm++; !bytes.Equal(text, f.seen) {
		f.seen, f.calm = text, 0
	}
	if f.calm >= calmLooks {
		f.times = 0
	}
	if how, _ := written(text); how != "" {
		return nil
	}
	if f.times++; f.times > maxTimes {
		if f.times == maxTimes+1 {
			f.opt.Log.Warn("resolv.conf is written again and again by somebody else, and stays as it is for now: names of services are not found", "path", f.opt.Path)
		}
		return nil
	}
	f.opt.Log.Info("resolv.conf was written by somebody else; what is there now comes back later", "path", f.opt.Path)
	if err := f.drop(); err != nil {
		return err
	}
	f.forget()
	return f.put()
}

// servers are those of the file before, as it is now: it may be a link to one
// that somebody else keeps writing.
func (f *file) servers(string) (all []netip.AddrPort) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ours == nil {
		return nil
	}
	if info, err := os.Stat(backup(f.real)); err == nil && info.ModTime() != f.changed {
		if text, err := os.ReadFile(backup(f.real)); err == nil {
			f.before, f.changed = read(text), info.ModTime()
		}
	}
	for _, ip := range f.before.servers {
		if ip != f.opt.Server {
			all = append(all, netip.AddrPortFrom(ip, dnsPort))
		}
	}
	return all
}

func (f *file) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ours == nil {
		return nil
	}
	return f.back()
}
