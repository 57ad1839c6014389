package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"netkeep.internal/internal/ops/audit"
)

// Verdict is what there is to say of the files of a directory.
type Verdict struct {
	audit.Verdict
	Files      int
	Unreadable []string // files that end too early, and where
	// At is the digest of the entry that was asked for, empty if it is not there.
	At string
}

// ErrEmpty says that a directory has no files of an archive.
var ErrEmpty = errors.New("there are no files of an audit archive")

// Verify reads all files of a directory and says what is not as it was written. at is
// the number of an entry whose digest somebody else knows.
func Verify(dir string, at int64) (v Verdict, err error) {
	names, err := list(dir)
	if err != nil {
		return v, err
	}
	var check *audit.Check
	var ends string
	for _, n := range names {
		v.Files++
		cut, err := read(filepath.Join(dir, n.String()), func(h header) {
			if check == nil {
				check = audit.NewCheck(h.First, h.Follows)
			}
		}, func(l audit.Line) {
			check.Add(l)
			if ends = l.Digest(); l.Number == at {
				v.At = ends
			}
		})
		if err != nil {
			return v, err
		}
		if check == nil {
			check = audit.NewCheck(n.first, "")
		}
		if cut != nil && n.last > 0 { // one that is written may end anywhere
			v.Unreadable = append(v.Unreadable, fmt.Sprintf("%s: %v", n, cut))
		}
		if n.last > 0 {
			check.Lost(n.last)
		}
	}
	if check == nil {
		return v, fmt.Errorf("%s: %w", dir, ErrEmpty)
	}
	v.Verdict = check.End("")
	return v, nil
}

// read tells what is in a file. A line that is no entry has the number 0.
func read(path string, head func(header), line func(audit.Line)) (cut, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var next int64
	_, cut = readMembers(f, func(h header) { next = h.First; head(h) }, func(text []byte) {
		l := audit.Line{Number: next, Text: text}
		if entry, err := l.Entry(); err == nil && entry.Number > next { // others are missing
			l.Number = entry.Number
		}
		next = l.Number + 1
		line(l)
	})
	return cut, nil
}

// Read yields the entries from one number to another that are archived.
func (a *Archive) Read(from, to int64) iter.Seq2[audit.Line, error] {
	return func(yield func(audit.Line, error) bool) {
		names, err := a.list()
		if err != nil {
			yield(audit.Line{}, err)
			return
		}
		for i, n := range names {
			if n.last > 0 && n.last < from || n.first > to || i+1 < len(names) && names[i+1].first <= from {
				continue
			}
			var lines []audit.Line
			_, err := read(filepath.Join(a.Dir, n.String()), func(header) {}, func(l audit.Line) {
				if from <= l.Number && l.Number <= to && len(lines) < aRead {
					lines = append(lines, l)
				}
			})
			if errors.Is(err, fs.ErrNotExist) {
				continue // it was deleted, or has another name by now
			}
			if err != nil {
				yield(audit.Line{}, err)
				return
			}
			for _, l := range lines {
				if !yield(l, nil) {
					return
				}
			}
			if len(lines) == aRead {
				return
			}
		}
	}
}

// aRead is how many entries are read at a time.
const aRead = 1000
