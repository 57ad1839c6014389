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

	"netkeep/internal/data/store"
	"netkeep/internal/lang/fault"
)

// File is a snapshot on disk.
type File struct {
	Name      string
	Size      int64
	Time      time.Time // when it was begun
	Rev       store.Rev // what it holds
	Scheduled bool      // nobody asked for it
}

// stamp is how names write the time.
const stamp = "20060102T150405Z"

// onSchedule is what the names of snapshots end with that nobody asked for.
const onSchedule = "-scheduled"

// called is how snapshots are called, so that no name leads out of their
// directory.
var called = regexp.MustCompile(`^(\d{8}T\d{6}Z)-r(\d{1,18})(` + onSchedule + `)?\.db$`)

// nameOf is the name of a snapshot.
func nameOf(begun time.Time, rev store.Rev, scheduled bool) string {
	end := ".db"
	if scheduled {
		end = onSchedule + end
	}
	return begun.UTC().Format(stamp) + "-r" + strconv.FormatInt(int64(rev), 10) + end
}

// read reads the name of a snapshot; not ok if it is none.
func read(name string) (f File, ok bool) {
	parts := called.FindStringSubmatch(name)
	if parts == nil {
		return f, false
	}
	at, err := time.Parse(stamp, parts[1])
	rev, wrong := strconv.ParseInt(parts[2], 10, 64)
	return File{Name: name, Time: at, Rev: store.Rev(rev), Scheduled: parts[3] != ""}, err == nil && wrong == nil
}

// List returns the snapshots in Dir, the latest first. Other files are not
// among them.
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

// Last is the latest snapshot; not ok if there is none.
func (s *Snapshots) Last() (last File, ok bool) {
	files, err := s.List()
	if err != nil || len(files) == 0 {
		return File{}, false
	}
	return files[0], true
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
	mark, err := s.Verify(ctx, path)
	switch {
	case ctx.Err() != nil:
		return f, "", fmt.Errorf("verifying a snapshot: %w", ctx.Err())
	case err != nil:
		s.Log.Error("a snapshot is damaged", "file", path, "error", err)
		return f, "it cannot be read: " + err.Error(), nil
	case mark.Rev != f.Rev:
		s.Log.Error("a snapshot is not the one that its name says", "file", path, "revision", mark.Rev)
		return f, fmt.Sprintf("it holds revision %d, not that of its name", mark.Rev), nil
	}
	return f, "", nil
}
