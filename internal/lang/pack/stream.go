package pack

import (
	"encoding/binary"
	"errors"
	"strings"
)

// Writer takes what is packed. It goes on after an error, which is the first.
type Writer struct {
	Bytes []byte
	met   map[string]int // texts that were written, and 1 + the number of those written twice
	named int            // how many have a number
	err   error
}

// Err is what could not be packed.
func (w *Writer) Err() error { return w.err }

// Reset begins anew, with the memory that there is.
func (w *Writer) Reset() {
	w.Bytes, w.named, w.err = w.Bytes[:0], 0, nil
	clear(w.met)
}

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Count packs a number that is not negative.
func (w *Writer) Count(n uint64) { w.Bytes = binary.AppendUvarint(w.Bytes, n) }

// Number packs a number.
func (w *Writer) Number(n int64) { w.Bytes = binary.AppendVarint(w.Bytes, n) }

// How a text is told, in the lowest bits of what comes before it.
const (
	textPlain = iota // in so many bytes, which follow
	textNamed        // the same, and it gets the next number
	textAgain        // by its number
	textForms = 4
)

// longName is how long a text may be that gets a number.
const longName = 256

// Text packs a text. One that comes again and again is told by a number from its third time
// on: who says what nobody else says takes no place among those.
func (w *Writer) Text(s string) {
	form := uint64(textPlain)
	if len(s) <= longName {
		if w.met == nil {
			w.met = map[string]int{}
		}
		switch n, met := w.met[s]; {
		case n > 0:
			w.Count(uint64(n-1)*textForms + textAgain)
			return
		case met:
			w.named++
			w.met[s], form = w.named, textNamed
		default:
			w.met[s] = 0
		}
	}
	w.Count(uint64(len(s))*textForms + form)
	w.Bytes = append(w.Bytes, s...)
}

// Rare packs a text that nobody else says.
func (w *Writer) Rare(s string) {
	w.Count(uint64(len(s)))
	w.Bytes = append(w.Bytes, s...)
}

// Data packs bytes.
func (w *Writer) Data(b []byte) {
	w.Count(uint64(len(b)))
	w.Bytes = append(w.Bytes, b...)
}

// Reader gives back what was packed. After an error, which is the first, all is nothing.
type Reader struct {
	rest  []byte
	named []string
	slab  strings.Builder
	err   error
}

var errShort = errors.New("pack: it ends too early")

// NewReader reads what a writer has, from its beginning or its last Reset on. What it gives
// back does not rest on the bytes.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

// Err is what could not be read.
func (r *Reader) Err() error { return r.err }

// Len is how many bytes are left.
func (r *Reader) Len() int { return len(r.rest) }

// Fail notes that what was read cannot be: all that follows is nothing.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

// Count reads a number that is not negative.
func (r *Reader) Count() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.Fail(errShort)
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// Number reads a number.
func (r *Reader) Number() int64 {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		r.Fail(errShort)
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// length reads how many values follow, each of which takes a byte at least.
func (r *Reader) length() int {
	n := r.Count()
	if n > uint64(len(r.rest)) {
		r.Fail(errShort)
		return 0
	}
	return int(n)
}

// some reads bytes that stay those of the reader; none if there are not so many.
func (r *Reader) some(n int) []byte {
	if n > len(r.rest) {
		r.Fail(errShort)
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// Text reads a text.
func (r *Reader) Text() string {
	n := r.Count()
	form := n % textForms
	n /= textForms
	if form == textAgain {
		if n >= uint64(len(r.named)) {
			r.Fail(errors.New("pack: a text is told by a number that none has"))
			return ""
		}
		return r.named[n]
	}
	if form > textAgain || n > uint64(len(r.rest)) {
		r.Fail(errShort)
		return ""
	}
	s := r.keep(r.some(int(n)))
	if form == textNamed {
		r.named = append(r.named, s)
	}
	return s
}

// Texts lie one behind the other in pieces of slabSize: each by itself would take up to a
// half more, and time. A piece stays for as long as one of its texts does, so they are small.
const (
	slabSize = 4 << 10
	slabMost = slabSize / 8 // of a text that is put there
)

// keep makes a text of bytes that are not ours.
func (r *Reader) keep(b []byte) string {
	if len(b) > slabMost {
		return string(b)
	}
	if r.slab.Cap()-r.slab.Len() < len(b) {
		r.slab.Reset()
		r.slab.Grow(slabSize)
	}
	from := r.slab.Len()
	r.slab.Write(b)
	return r.slab.String()[from:]
}

// Rare reads a text that was packed as one that nobody else says.
func (r *Reader) Rare() string { return r.keep(r.some(r.length())) }

// Data reads bytes.
func (r *Reader) Data() []byte {
	b := r.some(r.length())
	return append(make([]byte, 0, len(b)), b...)
}
