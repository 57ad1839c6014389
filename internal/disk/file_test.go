package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netkeep.internal/internal/disk"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "who.json")
	write := func(force bool, text string) error {
		f, err := disk.NewFile(path, force)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Write([]byte(text))
	}
	if err := write(false, "one"); err != nil {
		t.Fatal(err)
	}
	if err := write(false, "two"); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "--force") {
		t.Errorf("over another file: %v", err)
	}
	if err := write(true, "three"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "three" {
		t.Errorf("it holds %q, %v", data, err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

// TestFileGivenUp leaves nothing behind.
func TestFileGivenUp(t *testing.T) {
	dir := t.TempDir()
	f, err := disk.NewFile(filepath.Join(dir, "who.json"), false)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
	if _, err := disk.NewFile(filepath.Join(dir, "missing", "who.json"), false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
}

// TestFileOvertaken keeps what has no other copy when somebody else took the
// name meanwhile.
func TestFileOvertaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "who.json")
	f, err := disk.NewFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = f.Write([]byte("ours"))
	f.Close()
	if err == nil {
		t.Fatal("another file was written over")
	}
	_, kept, _ := strings.Cut(err.Error(), "; it is ")
	if data, err := os.ReadFile(kept); err != nil || string(data) != "ours" {
		t.Errorf("%s holds %q, %v", kept, data, err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "theirs" {
		t.Errorf("their file holds %q, %v", data, err)
	}
}

// TestHeir puts one file in the place of another, or forgets it.
func TestHeir(t *testing.T) {
	dir := t.TempDir()
	h := disk.Heir{Path: filepath.Join(dir, "next"), Of: filepath.Join(dir, "now")}
	put := func(text string) {
		t.Helper()
		f, err := h.Prepare()
		if err == nil {
			err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Drop(); err != nil {
		t.Errorf("nothing to forget: %v", err)
	}
	if err := h.Succeed(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing to put in its place: %v", err)
	}
	put("one")
	if err := h.Succeed(); err != nil {
		t.Fatal(err)
	}
	put("two")
	if err := h.Drop(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(h.Of); err != nil || string(data) != "one" || len(names(t, dir)) != 1 {
		t.Errorf("left are %v with %q, %v", names(t, dir), data, err)
	}
}
