package join

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		f, err := NewFile(path, force)
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
	f, err := NewFile(filepath.Join(dir, "who.json"), false)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
	if _, err := NewFile(filepath.Join(dir, "missing", "who.json"), false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
}

// TestFileOvertaken keeps what has no other copy when somebody else took the
// name meanwhile.
func TestFileOvertaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "who.json")
	f, err := NewFile(path, false)
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
