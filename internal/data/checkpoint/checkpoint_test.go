package checkpoint_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/checkpoint"
)

var head = checkpoint.Head{For: "this", Network: "ours", Place: []byte("here")}

// parts are what files of these tests have.
var parts = []struct {
	name string
	data []byte
}{{"one", []byte("first")}, {"two", bytes.Repeat([]byte("x"), 5000)}, {"none", nil}}

// write leaves a checkpoint in a directory of its own.
func write(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "checkpoint")
	w, err := checkpoint.Create(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i, p := range parts {
		if err := w.Add(p.name, i, p.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Done(head); err != nil {
		t.Fatal(err)
	}
	return path
}

// read reads all of a checkpoint.
func read(path string) (checkpoint.Head, [][]byte, error) {
	f, err := checkpoint.Open(path)
	if err != nil {
		return checkpoint.Head{}, nil, err
	}
	defer f.Close()
	var all [][]byte
	for _, p := range f.Parts {
		data, err := f.Read(p)
		if err != nil {
			return f.Head, nil, err
		}
		all = append(all, append([]byte(p.Name+": "), data...))
	}
	return f.Head, all, nil
}

func same(h checkpoint.Head, all [][]byte) bool {
	if h.For != head.For || h.Network != head.Network || !bytes.Equal(h.Place, head.Place) || len(all) != len(parts) {
		return false
	}
	for i, p := range parts {
		if string(all[i]) != p.name+": "+string(p.data) {
			return false
		}
	}
	return true
}

// TestCheckpoint has what was written read back, by its owner alone, and one take the place of
// another.
func TestCheckpoint(t *testing.T) {
	path := write(t)
	if h, all, err := read(path); err != nil || !same(h, all) {
		t.Fatalf("read as %+v %q, %v", h, all, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	w, err := checkpoint.Create(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add("another", 1, []byte("another")); err != nil {
		t.Fatal(err)
	}
	if h, all, err := read(path); err != nil || !same(h, all) {
		t.Errorf("while another is written it is %+v %q, %v", h, all, err)
	}
	if err := w.Done(head); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, all, err := read(path); err != nil || len(all) != 1 {
		t.Errorf("the other is read as %q, %v", all, err)
	}
}

// TestUnfinished leaves nothing of a checkpoint that was not written to its end.
func TestUnfinished(t *testing.T) {
	path := write(t)
	names := func() int {
		all, err := os.ReadDir(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	w, err := checkpoint.Create(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if n := names(); n != 1 {
		t.Errorf("%d files are left", n)
	}
	if _, err = checkpoint.Create(path, 1); err != nil { // and the program ended
		t.Fatal(err)
	}
	if n := names(); n != 2 {
		t.Fatalf("%d files", n)
	}
	checkpoint.Clean(path)
	if h, all, err := read(path); err != nil || !same(h, all) || names() != 1 {
		t.Errorf("after cleaning %d files, %+v %q, %v", names(), h, all, err)
	}
}

// TestRoom writes nothing where a disk has little room.
func TestRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "checkpoint")
	if _, err := checkpoint.Create(path, 1<<60); !errors.Is(err, checkpoint.ErrRoom) {
		t.Errorf("a checkpoint of an exabyte: %v", err)
	}
	if _, err := checkpoint.Open(path); !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("there is one: %v", err)
	}
}

// TestDamaged refuses every file that is not as it was written, or reads it as it was.
func TestDamaged(t *testing.T) {
	path := write(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		b := bytes.Clone(whole)
		at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		switch rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			b = b[:at]
		case 1:
			b[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 2:
			clear(b[at:])
		case 3:
			b = append(b, whole[at:]...)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		h, all, err := read(path)
		switch same := err == nil && same(h, all); {
		case bytes.Equal(b, whole) && !same:
			t.Fatalf("what was written is read as %+v %q, %v", h, all, err)
		case err == nil && !same:
			t.Fatalf("a damaged file is read as %+v %q", h, all)
		}
	})
}
