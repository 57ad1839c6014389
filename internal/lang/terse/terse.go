// Package terse keeps certificates that were written as PEM in few bytes, for as long as
// the program runs: those of one issuer are mostly the same, so one of them is kept whole
// and of the others only what is different. Any other text is kept as it is. It owns the
// form, which is nobody else's to read or to store.
package terse

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sync"
)

// Text is a text in few bytes. Two are equal if what they say is; the empty one says
// nothing.
type Text string

// The first byte of a Text is which sample it is told by, or asIs for a text that is not.
const asIs = 0

// Of is the Text that says what is written.
func Of(text []byte) Text {
	if len(text) == 0 {
		return ""
	}
	d := desks.Get().(*desk)
	defer desks.Put(d)
	if der, ok := d.plainDER(text); ok {
		if n := samples.of(der); n != asIs {
			d.text = samples.at(n).tell(append(d.text[:0], n), der)
			return Text(d.text)
		}
	}
	d.text = append(append(d.text[:0], asIs), text...)
	return Text(d.text)
}

// String is what the text says.
func (t Text) String() string {
	if t == "" {
		return ""
	}
	if t[0] == asIs {
		return string(t[1:])
	}
	d := desks.Get().(*desk)
	defer desks.Put(d)
	d.der = samples.at(t[0]).told(d.der[:0], t[1:])
	d.text = appendPEM(d.text[:0], d.der)
	return string(d.text)
}

// desk is room to work in.
type desk struct{ der, text []byte }

var desks = sync.Pool{New: func() any { return new(desk) }}

const (
	begin   = "-----BEGIN CERTIFICATE-----\n"
	end     = "-----END CERTIFICATE-----\n"
	perLine = 64 // characters of base64, and
	inLine  = 48 // bytes that they stand for
	// mostBody is how long the lines between may be of a certificate that is told by a sample.
	mostBody = 4096
)

// plainDER returns the bytes of a text that is one certificate in PEM, written as most
// programs write it and not otherwise: it has to be written the same again.
func (d *desk) plainDER(text []byte) (der []byte, ok bool) {
	body, is := bytes.CutPrefix(text, []byte(begin))
	body, was := bytes.CutSuffix(body, []byte(end))
	if !is || !was || len(body) > mostBody {
		return nil, false
	}
	d.der = d.der[:0]
	for len(body) > 0 {
		line, rest, whole := bytes.Cut(body, []byte("\n"))
		if !whole || len(line) > perLine {
			return nil, false
		}
		var err error
		if d.der, err = base64.StdEncoding.AppendDecode(d.der, line); err != nil {
			return nil, false
		}
		body = rest
	}
	d.text = appendPEM(d.text[:0], d.der)
	return d.der, bytes.Equal(d.text, text)
}

func appendPEM(dst, der []byte) []byte {
	dst = append(dst, begin...)
	for line := range slices.Chunk(der, inLine) {
		dst = append(base64.StdEncoding.AppendEncode(dst, line), '\n')
	}
	return append(dst, end...)
}

// sample is a certificate that others are told by.
type sample struct {
	der []byte
	// at is where four bytes of it are, by their hash: one more than the place, 0 for nowhere.
	at [1 << hashBits]uint16
}

const (
	hashBits = 10
	seen     = 4 // bytes that a hash is of
	// least is how many bytes in a row must be those of the sample to be told by where
	// they are, which takes up to five.
	least = 6
)

func newSample(der []byte) *sample {
	s := &sample{der: bytes.Clone(der)}
	for i := range len(der) - seen + 1 {
		s.at[hash(der[i:])] = uint16(i + 1)
	}
	return s
}

func hash(b []byte) uint32 { return binary.LittleEndian.Uint32(b) * 0x9e3779b1 >> (32 - hashBits) }

// tell appends what it takes to say der beside the sample: how many bytes come that it does
// not have, these, how many come that it has, and where it has them, again and again.
func (s *sample) tell(dst, der []byte) []byte {
	own := 0   // where the bytes begin that are not told yet
	ahead := 0 // how much further on the sample had what was found last
	for i := 0; i+seen <= len(der); {
		from, n := s.find(der, i, i+ahead)
		if n < least {
			i++
			continue
		}
		dst = append(binary.AppendUvarint(dst, uint64(i-own)), der[own:i]...)
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, uint64(n)), uint64(from))
		i, ahead = i+n, from-i
		own = i
	}
	return append(binary.AppendUvarint(dst, uint64(len(der)-own)), der[own:]...)
}

// find is where the sample has what der has at a place, and how much of it: at the guess, or
// where the hash says.
func (s *sample) find(der []byte, i, guess int) (from, n int) {
	if guess >= 0 {
		from, n = guess, s.common(der[i:], guess)
	}
	if n < least {
		if at := int(s.at[hash(der[i:])]) - 1; at >= 0 {
			from, n = at, s.common(der[i:], at)
		}
	}
	return from, n
}

// common is how many bytes are the same from a place of the sample on.
func (s *sample) common(b []byte, from int) (n int) {
	for n < len(b) && from+n < len(s.der) && b[n] == s.der[from+n] {
		n++
	}
	return n
}

// told appends what tell was given.
func (s *sample) told(dst []byte, t Text) []byte {
	number := func() (n int) {
		for shift := 0; ; shift += 7 {
			b := t[0]
			t = t[1:]
			n |= int(b&0x7f) << shift
			if b < 0x80 {
				return n
			}
		}
	}
	for {
		n := number()
		dst, t = append(dst, t[:n]...), t[n:]
		if t == "" {
			return dst
		}
		n = number()
		from := number()
		dst = append(dst, s.der[from:from+n]...)
	}
}
