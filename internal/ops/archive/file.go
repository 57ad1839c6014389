package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/ops/audit"
)

// A file is JSON lines in gzip: a header, and then entries to the letter, each of
// which has the SHA-256 of the line before. What is brought to the disk at once is a
// member of its own: a file may end after any of them and is whole.

// form is what the header of a file begins with.
const form = "netkeep-audit-1"

// header is the first line of a file.
type header struct {
	Format     string    `json:"format"`
	Network    string    `json:"network"`
	Controller string    `json:"controller"`
	First      int64     `json:"first"`   // number of the first entry
	Follows    string    `json:"follows"` // digest of the entry before that
	Begun      time.Time `json:"begun"`
}

// name is that of a file, which says which entries it has.
type name struct {
	first, last int64 // last is 0 while it is written
}

const (
	stem      = "audit-"
	ended     = ".jsonl.gz"
	unfolding = ".jsonl.gz.part"
)

func (n name) String() string {
	if n.last == 0 {
		return stem + audit.ID(n.first) + unfolding
	}
	return stem + audit.ID(n.first) + "-" + audit.ID(n.last) + ended
}

// readName reads a name; not ok if it is none of ours.
func readName(text string) (n name, ok bool) {
	rest, ok := strings.CutPrefix(text, stem)
	if !ok {
		return n, false
	}
	if middle, part := strings.CutSuffix(rest, unfolding); part {
		n.first, _ = strconv.ParseInt(middle, 10, 64)
	} else if middle, whole := strings.CutSuffix(rest, ended); whole {
		from, to, _ := strings.Cut(middle, "-")
		n.first, _ = strconv.ParseInt(from, 10, 64)
		n.last, _ = strconv.ParseInt(to, 10, 64)
	}
	return n, n.first > 0 && n.String() == text
}

// list are the files of a directory, in the order of their entries.
func list(dir string) ([]name, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []name
	for _, e := range entries {
		if n, ok := readName(e.Name()); ok && e.Type().IsRegular() {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, func(a, b name) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last)) })
	return names, nil
}

func (a *Archive) list() ([]name, error) {
	names, err := list(a.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// part is the file that is written.
type part struct {
	file  *os.File
	first int64
	size  int64
	begun time.Time
}

// open finds where the archive ends. Of a file that was cut short all stays that was
// brought to the disk as a whole.
func (a *Archive) open() error {
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return err
	}
	names, err := a.list()
	if err != nil {
		return err
	}
	at := place{}
	for len(names) > 0 {
		n := names[len(names)-1]
		var network string
		if at, network, err = a.end(n); err != nil {
			return fmt.Errorf("%s: %w", n, err)
		}
		if at.number == 0 { // nothing of it was whole
			names = names[:len(names)-1]
			continue
		}
		a.setPlace(at)
		if network != a.Network {
			return a.setAside()
		}
		return nil
	}
	a.setPlace(place{})
	return a.try()
}

// try makes sure that something can be written, long before it has to be.
func (a *Archive) try() error {
	f, err := os.CreateTemp(a.Dir, "try-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, 4<<10))
	return errors.Join(err, f.Sync(), f.Close())
}

// end is the place of the last entry of a file, and the network that it is of. A file
// that was being written is gone on with.
func (a *Archive) end(n name) (at place, network string, err error) {
	path := filepath.Join(a.Dir, n.String())
	mode := os.O_RDONLY
	if n.last == 0 {
		mode = os.O_RDWR
	}
	f, err := os.OpenFile(path, mode, 0)
	if err != nil {
		return at, "", err
	}
	defer func() {
		if f != nil {
			_ = f.Close()
		}
	}()
	var last []byte
	var begun time.Time
	whole, cut := readMembers(f, func(h header) { network, begun = h.Network, h.Begun }, func(text []byte) {
		last = append(last[:0], text...)
	})
	if last != nil {
		entry, err := audit.Line{Text: last}.Entry()
		if err != nil {
			return at, network, err
		}
		at = place{entry.Number, digest(last)}
	}
	if n.last > 0 {
		if cut != nil { // what is there counts, and a check says what is not
			a.Log.Error("a file of the audit archive cannot be read", "file", n.String(), "error", cut)
			at = place{number: n.last}
		}
		return at, network, nil
	}
	if cut != nil {
		a.Log.Warn("a file of the audit archive was cut short; it goes on from what was whole", "file", n.String(), "bytes", whole)
	}
	if at.number == 0 {
		return at, network, os.Remove(path)
	}
	if err := errors.Join(f.Truncate(whole), f.Sync()); err != nil {
		return at, network, err
	}
	if _, err := f.Seek(whole, io.SeekStart); err != nil {
		return at, network, err
	}
	a.part, f = &part{file: f, first: n.first, size: whole, begun: begun}, nil
	return at, network, nil
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.RawStdEncoding.EncodeToString(sum[:])
}

// maxLine is how long a line of a file may be, and maxMember what is compressed
// together: more than any entry, and than any batch.
const maxLine, maxMember = 16 << 20, 64 << 20

// readMembers reads a file, and returns how many bytes of it are whole members and why
// it ends there, nil if that is all of it. Of a member that is not whole nothing is
// told.
func readMembers(r io.Reader, head func(header), line func(text []byte)) (whole int64, cut error) {
	counted := &counter{r: r}
	buf := bufio.NewReader(counted)
	headed := false
	for {
		if _, err := buf.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				return whole, nil
			}
			return whole, err
		}
		var held [][]byte
		bytesHeld := 0
		z, err := gzip.NewReader(buf)
		if err != nil {
			return whole, err
		}
		z.Multistream(false)
		lines := bufio.NewScanner(z)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			held = append(held, bytes.Clone(lines.Bytes()))
			if bytesHeld += len(lines.Bytes()); bytesHeld > maxMember {
				return whole, errors.New("it has more in one piece than was ever written so")
			}
		}
		if err := lines.Err(); err != nil {
			return whole, err
		}
		for _, text := range held {
			if !headed {
				var h header
				if err := json.Unmarshal(text, &h); err != nil || h.Format != form {
					return whole, errors.New("it has no header of an archive")
				}
				head(h)
				headed = true
				continue
			}
			line(text)
		}
		whole = counted.n - int64(buf.Buffered())
	}
}

// counter counts what was read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// write adds entries and returns when they are on disk. After an error it is not known
// what is: the files are looked at again.
func (a *Archive) write(leaves []audit.Leaf) error {
	var out bytes.Buffer
	if a.part == nil {
		if err := a.begin(&out, leaves[0].Lines[0]); err != nil {
			return err
		}
	}
	if err := addMembers(&out, leaves); err != nil {
		return err
	}
	if _, err := a.part.file.Write(out.Bytes()); err != nil {
		return err
	}
	if err := a.part.file.Sync(); err != nil {
		return err
	}
	if a.part.size == 0 {
		if err := disk.Sync(a.Dir); err != nil {
			return err
		}
	}
	a.part.size += int64(out.Len())
	lines := leaves[len(leaves)-1].Lines
	last := lines[len(lines)-1]
	a.setPlace(place{last.Number, last.Digest()})
	if a.part.size >= fullBytes {
		return a.finish()
	}
	return nil
}

// addMembers adds entries. What the store has compressed is not compressed again: a
// member is that, between a few bytes that are always the same and a sum of what is in
// it (RFC 1952). The others between such are one member.
func addMembers(out *bytes.Buffer, leaves []audit.Leaf) error {
	var loose [][]byte
	for i, l := range leaves {
		packed := len(l.Deflated) > 0 && len(l.Text) <= batchBytes
		if !packed {
			for _, line := range l.Lines {
				loose = append(loose, line.Text)
			}
		}
		if len(loose) > 0 && (packed || i == len(leaves)-1) {
			if err := compress(out, loose); err != nil {
				return err
			}
			loose = nil
		}
		if packed {
			out.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255})
			out.Write(l.Deflated)
			sums := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(l.Text))
			out.Write(binary.LittleEndian.AppendUint32(sums, uint32(len(l.Text))))
		}
	}
	return nil
}

// compress adds a member of lines.
func compress(out *bytes.Buffer, lines [][]byte) error {
	z := gzip.NewWriter(out)
	for _, line := range lines {
		_, _ = z.Write(line) // memory does not fail
		_, _ = z.Write([]byte{'\n'})
	}
	return z.Close()
}

// begin makes a file.
func (a *Archive) begin(out *bytes.Buffer, first audit.Line) error {
	entry, err := first.Entry()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(a.Dir, name{first: first.Number}.String()), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	a.part = &part{file: f, first: first.Number, begun: a.Now().UTC()}
	text, err := json.Marshal(header{Format: form, Network: a.Network, Controller: a.Controller, First: first.Number, Follows: entry.Previous, Begun: a.part.begun})
	if err != nil {
		return err
	}
	return compress(out, [][]byte{text})
}

// finish gives the file that is written the name that it keeps.
func (a *Archive) finish() error {
	if a.part == nil {
		return nil
	}
	p := a.part
	a.part = nil
	if err := p.file.Close(); err != nil {
		return err
	}
	was, is := name{first: p.first}, name{p.first, a.place().number}
	if err := os.Rename(filepath.Join(a.Dir, was.String()), filepath.Join(a.Dir, is.String())); err != nil {
		return err
	}
	return disk.Sync(a.Dir)
}

// close lets go of the file that is written. Where the archive ends is to be found
// again.
func (a *Archive) close() {
	if a.part != nil {
		_ = a.part.file.Close()
		a.part = nil
	}
	a.mu.Lock()
	a.opened = false
	a.mu.Unlock()
}

// retain deletes the oldest files that are more than is to be kept. The one that is
// written stays, for a day at most.
func (a *Archive) retain() error {
	if a.part != nil && a.Now().Sub(a.part.begun) > fullAge {
		if err := a.finish(); err != nil {
			return err
		}
	}
	names, err := a.list()
	if err != nil {
		return err
	}
	var bytes int64
	for _, n := range slices.Backward(names) {
		info, err := os.Stat(filepath.Join(a.Dir, n.String()))
		if err != nil {
			return err
		}
		bytes += info.Size()
		old := a.Age > 0 && a.Now().Sub(info.ModTime()) > a.Age
		if n.last == 0 || !old && bytes <= a.Bytes {
			continue
		}
		if err := os.Remove(filepath.Join(a.Dir, n.String())); err != nil {
			return err
		}
		a.Log.Info("a file of the audit archive is deleted, as settings say", "file", n.String())
	}
	return nil
}
