// Package checkpoint keeps in a file what a program had in memory at one place of a log, so
// that its next start need not make it again. It owns the form of the file: parts of bytes,
// each with its digest, and who may use them. What parts hold, and whether the log is still
// the one that they were made of, is for who writes and reads them to know. A file that is
// not whole, or is somebody else's, is none; nothing is lost with it. It imports disk and
// nothing else of ours.
package checkpoint

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/disk"
)

// Head says for whom a checkpoint is, and what it is of. It is read before all else.
type Head struct {
	// For is the program that can read it, and Network whose records it has.
	For     string `json:"for"`
	Network string `json:"network"`
	// Place is where in the log it is, in the words of who writes it.
	Place []byte `json:"place"`
}

// Part is some bytes of a checkpoint.
type Part struct {
	Name   string `json:"name"`  // what it is, in the words of who writes it
	Count  int    `json:"count"` // how many things are in it
	From   int64  `json:"from"`
	Size   int64  `json:"size"`
	Digest []byte `json:"digest"`
}

// table is what stands at the end of a file: all that is not in parts. Behind it are its
// digest and its size.
type table struct {
	Head  Head   `json:"head"`
	Parts []Part `json:"parts"`
}

// magic is how a file begins.
const magic = "netkeep checkpoint 1\n"

const (
	footSize = sha256.Size + 8
	// mostTable is how large a table may be: more is damage.
	mostTable = 64 << 20
)

// ErrNone says that there is no checkpoint.
var ErrNone = errors.New("there is no checkpoint")

// errDamaged says that a file is not as it was written.
var errDamaged = errors.New("it is damaged")

// Writer writes a checkpoint beside the one that there is, in whose place it comes when it
// is whole.
type Writer struct {
	path  string
	file  *os.File
	to    *bufio.Writer
	at    int64
	table table
}

// ErrRoom says that a disk has too little room for a checkpoint: what is left is for the store.
var ErrRoom = errors.New("the disk has little room left")

// spare is how many times as large as a checkpoint the room must be that a disk has for it.
const spare = 4

// Create begins a checkpoint of about a size. The caller closes it.
func Create(path string, size int64) (*Writer, error) {
	if free, known := disk.Free(filepath.Dir(path)); known && free/spare < size {
		return nil, ErrRoom
	}
	file, err := os.CreateTemp(filepath.Dir(path), unfinished(path)) // with mode 0600
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	w := &Writer{path: path, file: file, to: bufio.NewWriterSize(file, 256<<10)}
	if err := w.write([]byte(magic)); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// unfinished is how those are called that are being written.
func unfinished(path string) string { return "." + filepath.Base(path) + "-*" }

// Clean takes away what was being written when a program ended.
func Clean(path string) {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), unfinished(path)))
	for _, file := range left {
		_ = os.Remove(file)
	}
}

func (w *Writer) write(b []byte) error {
	n, err := w.to.Write(b)
	w.at += int64(n)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// Add adds a part, and waits until it is on the disk: who waits for the disk meanwhile waits
// for one part, and not for all of them at the end.
func (w *Writer) Add(name string, count int, data []byte) error {
	sum := sha256.Sum256(data)
	w.table.Parts = append(w.table.Parts, Part{name, count, w.at, int64(len(data)), sum[:]})
	if err := w.write(data); err != nil {
		return err
	}
	return w.sync()
}

func (w *Writer) sync() error {
	if err := errors.Join(w.to.Flush(), w.file.Sync()); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// Done puts the checkpoint in its place.
func (w *Writer) Done(head Head) error {
	w.table.Head = head
	text, err := json.Marshal(w.table)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	foot := binary.BigEndian.AppendUint64(sum[:], uint64(len(text)))
	if err := errors.Join(w.write(text), w.write(foot), w.sync(), w.file.Close()); err != nil {
		return err
	}
	if err := os.Rename(w.file.Name(), w.path); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil // one that is gone after a crash of the machine is none
}

// Size is how many bytes were written.
func (w *Writer) Size() int64 { return w.at }

// Close ends the writing. What is not done is gone.
func (w *Writer) Close() {
	_ = w.file.Close()
	_ = os.Remove(w.file.Name()) // which fails if it has its place
}

// File is a checkpoint that is read.
type File struct {
	Head  Head
	Parts []Part
	data  []byte
	free  func()
}

// Open opens a checkpoint whose table is whole; ErrNone if there is no file. Parts are
// looked at when they are read.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if size := info.Size(); !info.Mode().IsRegular() || size < int64(len(magic)+footSize) || size != int64(int(size)) {
		return nil, errDamaged
	}
	f := &File{}
	if f.data, f.free, err = mapped(file, int(info.Size())); err != nil {
		return nil, err
	}
	if err := f.readTable(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *File) readTable() error {
	if !bytes.HasPrefix(f.data, []byte(magic)) {
		return errors.New("it has another form, or is damaged")
	}
	foot := f.data[len(f.data)-footSize:]
	inside := f.data[len(magic) : len(f.data)-footSize]
	size := binary.BigEndian.Uint64(foot[sha256.Size:])
	if size > mostTable || size > uint64(len(inside)) {
		return errDamaged
	}
	text := inside[len(inside)-int(size):]
	if sum := sha256.Sum256(text); !bytes.Equal(sum[:], foot[:sha256.Size]) {
		return errDamaged
	}
	var t table
	if err := json.Unmarshal(text, &t); err != nil {
		return errDamaged
	}
	end := int64(len(f.data) - footSize - len(text))
	for _, p := range t.Parts {
		if p.From < int64(len(magic)) || p.Size < 0 || p.Count < 0 || p.From > end || p.Size > end-p.From {
			return errDamaged
		}
	}
	f.Head, f.Parts = t.Head, t.Parts
	return nil
}

// Read returns the bytes of a part, which are not to be written and are gone when the file is
// closed. It fails if they are not those that were written.
func (f *File) Read(p Part) ([]byte, error) {
	data := f.data[p.From : p.From+p.Size]
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], p.Digest) {
		return nil, errDamaged
	}
	return data, nil
}

// Close lets go of the file.
func (f *File) Close() { f.free() }

// whole reads a file where it cannot be mapped.
func whole(file *os.File, size int) ([]byte, func(), error) {
	data := make([]byte, size)
	_, err := io.ReadFull(file, data)
	return data, func() {}, err
}
