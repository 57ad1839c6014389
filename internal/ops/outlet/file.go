package outlet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
)

// File has entries added to a file, one a line. The file may be moved away, upon which
// another one is begun.
type File struct {
	Path string
	file *os.File
}

// Send is for Outlet.
func (f *File) Send(_ context.Context, entries []Entry) error {
	if err := f.open(); err != nil {
		return err
	}
	if _, err := f.file.Write(lines(entries)); err != nil {
		f.Close()
		return err
	}
	return f.file.Sync()
}

// open opens the file, unless it is open and still has its name.
func (f *File) open() error {
	if f.file != nil {
		is, err := f.file.Stat()
		named, other := os.Stat(f.Path)
		if err == nil && other == nil && os.SameFile(is, named) {
			return nil
		}
		f.Close()
	}
	file, err := os.OpenFile(f.Path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	f.file = file
	// A line that was cut short ends here; its entry comes again.
	last := make([]byte, 1)
	if size, err := file.Seek(0, io.SeekEnd); err != nil || size == 0 {
		return err
	} else if _, err := file.ReadAt(last, size-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = file.Write([]byte{'\n'})
	return err
}

// Close is for Outlet.
func (f *File) Close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// Lines has entries written to what is there already, one a line.
type Lines struct{ To io.Writer }

// Send is for Outlet.
func (l Lines) Send(_ context.Context, entries []Entry) error {
	text := lines(entries)
	n, err := l.To.Write(text)
	if err == nil && n < len(text) {
		err = errors.New("not all was written")
	}
	return err
}

// Close is for Outlet.
func (Lines) Close() {}

func lines(entries []Entry) []byte {
	var out bytes.Buffer
	for _, e := range entries {
		out.Write(e.JSON)
		out.WriteByte('\n')
	}
	return out.Bytes()
}
