package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/fault"
)

// File is a snapshot on disk.
type File struct {
	Name      string
	Size      int64
	Time      time.Time // when it was begun
	Rev       store.Rev // what it holds
	Network   string    // whose it is, as mark says it; empty if its name does not say
	Scheduled bool      // nobody asked for it
}

// stamp is how names write the time.
const stamp = "20060102T150405Z"

// onSchedule is what the names of snapshots end with that nobody asked for.
const onSchedule = "-scheduled"

// called is how snapshots are called, so that no name leads out of their
// directory.
var called = regexp.MustCompile(`^(\d{8}T\d{6}Z)-r(\d{1,18})(?:-n([0-9a-f]{16}))?(` + onSchedule + `)?\.db$`)

// mark is what the names of this network's new snapshots say of it.
func (s *Snapshots) mark() string { return markOf(s.Roots()[0]) }

// markOf is how names write a network: by the beginning of its root's
// fingerprint.
func markOf(root string) string { return root[:min(len(root), 16)] }

// nameOf is the name of a snapshot.
func nameOf(f File) string {
	end := ".db"
	if f.Scheduled {
		end = onSchedule + end
	}
	return f.Time.UTC().Format(stamp) + "-r" + strconv.FormatInt(int64(f.Rev), 10) + "-n" + f.Network + end
}

// read reads the name of a snapshot; not ok if it is none.
func read(name string) (f File, ok bool) {
	parts := called.FindStringSubmatch(name)
	if parts == nil {
		return f, false
	}
	at, err := time.Parse(stamp, parts[1])
	rev, wrong := strconv.ParseInt(parts[2], 10, 64)
	return File{Name: name, Time: at, Rev: store.Rev(rev), Network: parts[3], Scheduled: parts[4] != ""}, err == nil && wrong == nil
}

// belongs reports whether a snapshot is known to be of this network, and
// whether it is known to be of another. Neither is known of one that an earlier
// version wrote and that nobody has read yet, or that does not say.
func (s *Snapshots) belongs(f File) (ours, others bool) {
	whose := f.Network
	if whose == "" {
		s.mu.Lock()
		whose = markOf(s.roots[f.Name])
		s.mu.Unlock()
	}
	ours = slices.ContainsFunc(s.Roots(), func(root string) bool { return markOf(root) == whose })
	return ours, !ours && whose != ""
}

// Recognise reads the snapshots whose names do not say of which network they
// are, each once: those of earlier versions.
func (s *Snapshots) Recognise(ctx context.Context) {
	files, err := s.List()
	if err != nil {
		return // whoever asks next is told
	}
	for _, f := range files {
		s.mu.Lock()
		_, known := s.roots[f.Name]
		s.mu.Unlock()
		if known || f.Network != "" {
			continue
		}
		held, err := s.Verify(ctx, filepath.Join(s.Dir, f.Name))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.Log.Warn("a snapshot cannot be read, so that nobody can tell of which network it is; it stays", "file", f.Name, "error", err)
		}
		s.mu.Lock()
		if s.roots == nil {
			s.roots = map[string]string{}
		}
		s.roots[f.Name] = held.Root
		s.mu.Unlock()
	}
}

// List returns the snapshots in Dir that are not of other networks, the latest
// first. Other files are not among them.
func (s *Snapshots) List() ([]File, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("snapshots: %w", err)
	}
	var files []File
	for _, e := range entries {
		f, ok := read(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		if _, others := s.belongs(f); others {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // somebody took it away just now
		}
		if err != nil {
			return nil, fmt.Errorf("snapshots: %w", err)
		}
		f.Size = info.Size()
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b File) int {
		if c := b.Time.Compare(a.Time); c != 0 {
			return c
		}
		return strings.Compare(b.Name, a.Name)
	})
	return files, nil
}

// Path is where a snapshot is.
func (s *Snapshots) Path(name string) string {
	path := filepath.Join(s.Dir, name)
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// Last is the latest snapshot that is known to be of this network; not ok if
// there is none.
func (s *Snapshots) Last() (last File, ok bool) {
	files, err := s.List()
	if err != nil {
		return File{}, false
	}
	own := func(f File) bool { ours, _ := s.belongs(f); return ours }
	if i := slices.IndexFunc(files, own); i >= 0 {
		return files[i], true
	}
	return File{}, false
}

// Check reads a snapshot from begin to end, as a restore would, and says what
// is wrong with it; nothing if it is whole. It fails if there is no snapshot of
// this name.
func (s *Snapshots) Check(ctx context.Context, name string) (f File, wrong string, err error) {
	f, ok := read(name)
	if !ok {
		return f, "", fault.NotFound("snapshot", name)
	}
	path := filepath.Join(s.Dir, f.Name)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return f, "", fault.NotFound("snapshot", name)
	}
	f.Size = info.Size()
	if !s.checking.TryLock() {
		return f, "", fault.New(fault.CodeRateLimited, "a snapshot is being verified; wait until that is done")
	}
	defer s.checking.Unlock()
	held, err := s.Verify(ctx, path)
	switch {
	case ctx.Err() != nil:
		return f, "", fmt.Errorf("verifying a snapshot: %w", ctx.Err())
	case err != nil:
		s.Log.Error("a snapshot is damaged", "file", path, "error", err)
		return f, "it cannot be read: " + err.Error(), nil
	case held.Rev != f.Rev:
		s.Log.Error("a snapshot is not the one that its name says", "file", path, "revision", held.Rev)
		return f, fmt.Sprintf("it holds revision %d, not that of its name", held.Rev), nil
	case held.Root != "" && !slices.Contains(s.Roots(), held.Root):
		return f, fmt.Sprintf("it is of another network, that with the root CA %s: restore it with the pki directory of that one", held.Root), nil
	}
	return f, "", nil
}
