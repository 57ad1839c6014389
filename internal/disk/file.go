package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a place that a secret goes to. It is made before anything is asked
// of a controller, so that nothing is spent on what cannot be kept.
type File struct {
	path  string
	force bool
	temp  *os.File
}

// room is what a disk must have for a file: more than any that is written here
// takes.
const room = 32 << 10

// NewFile prepares to write a file that only its owner may read, and takes the
// room for it. One that is there already is an error, unless force says that it
// may go.
func NewFile(path string, force bool) (*File, error) {
	if _, err := os.Lstat(path); err == nil && !force {
		return nil, taken(path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", path, err)
	}
	f := &File{path, force, temp}
	if _, err := temp.Write(make([]byte, room)); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return f, nil
}

func taken(path string) error {
	return fmt.Errorf("%s is there already: name another file, or give --force to write over it: %w", path, fs.ErrExist)
}

// Write puts the file in its place, whole or not at all.
func (f *File) Write(data []byte) error {
	_, err := f.temp.WriteAt(data, 0)
	if err := errors.Join(err, f.temp.Truncate(int64(len(data))), f.temp.Sync(), f.temp.Close()); err != nil {
		return fmt.Errorf("%s cannot be written: %w", f.path, err)
	}
	if f.force {
		if err := os.Rename(f.temp.Name(), f.path); err != nil {
			return f.left(err)
		}
		return Sync(filepath.Dir(f.path))
	}
	// A link, other than a rename, does not take another file's place.
	if err := os.Link(f.temp.Name(), f.path); err != nil {
		return f.left(err)
	}
	if err := os.Remove(f.temp.Name()); err != nil {
		return err
	}
	return Sync(filepath.Dir(f.path))
}

// left says where the data is that could not get its name: there may be no
// other copy.
func (f *File) left(err error) error {
	name := f.temp.Name()
	f.temp = nil
	return fmt.Errorf("the file could not be named %s (%w); it is %s", f.path, err, name)
}

// Close gives up a file that was not written.
func (f *File) Close() {
	if f.temp != nil {
		_ = f.temp.Close()
		_ = os.Remove(f.temp.Name()) // which fails if it has its name
	}
}

// Heir is a file that may take the place of another, once it is known that it
// counts. Until then both are there.
type Heir struct {
	Path string
	Of   string
}

// Prepare makes sure that the heir can be written.
func (h Heir) Prepare() (*File, error) { return NewFile(h.Path, true) }

// Succeed puts the heir in the other's place.
func (h Heir) Succeed() error {
	if err := os.Rename(h.Path, h.Of); err != nil {
		return err
	}
	return Sync(filepath.Dir(h.Of))
}

// Drop forgets the heir, if there is one.
func (h Heir) Drop() error {
	if err := os.Remove(h.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
