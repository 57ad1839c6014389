// Package wire is the frames that routers, controllers and clients exchange:
// how they look as bytes, and the typed values in their headers. It owns the
// format and its bounds and nothing of what a frame means. It imports nothing
// of ours.
//
// A frame is twenty bytes, a block of headers and a body. All integers are
// little-endian:
//
//	magic 03 06 09 0c | type int32 | sequence int32 | length of headers uint32 | length of body uint32
//
// and the block of headers is any number of
//
//	key int32 | length uint32 | value
package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
)

// Frame is one message. Who reads a frame owns what is in it.
type Frame struct {
	Type    int32
	Seq     int32
	Headers Headers
	Body    []byte
}

// Bounds are the largest frame that a reader takes.
type Bounds struct {
	Headers int // bytes of the block
	Body    int // bytes
}

const prefix = 20

var (
	magic = [4]byte{0x03, 0x06, 0x09, 0x0c}

	// ErrMagic says that what arrived is no frame of this protocol.
	ErrMagic = errors.New("wire: what arrived is no frame")
	// ErrTooLarge says that a frame exceeds the reader's bounds.
	ErrTooLarge = errors.New("wire: the frame is too large")
	// ErrHeaders says that a block of headers does not add up.
	ErrHeaders = errors.New("wire: the headers are damaged")
)

// Size is how many bytes its headers and its body have.
func (f *Frame) Size() int { return f.Headers.size() + len(f.Body) }

// Append adds the frame's bytes.
func (f *Frame) Append(dst []byte) []byte {
	headers := f.Headers.size()
	dst = slices.Grow(dst, prefix+headers+len(f.Body))
	dst = append(dst, magic[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.Type))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.Seq))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(headers))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(f.Body)))
	dst = f.Headers.append(dst)
	return append(dst, f.Body...)
}

// Within reports a [TooLarge] if a reader with these bounds would not take the
// frame.
func (f *Frame) Within(most Bounds) error {
	if headers := f.Headers.size(); headers > most.Headers || len(f.Body) > most.Body {
		return &TooLarge{int64(headers), int64(len(f.Body)), most}
	}
	return nil
}

// Read takes one frame. Memory is set aside only for what has arrived: a
// length that is announced and not sent costs nothing. The error is io.EOF if
// the connection ended between frames.
func Read(r io.Reader, most Bounds) (*Frame, error) {
	p, err := ReadPacket(r, most)
	if err != nil {
		return nil, err
	}
	return p.Frame()
}

// step is how much memory is set aside before anything of it has arrived: a body
// of 64 KiB with its headers needs no second look.
const step = 68 << 10

// take reads exactly n bytes.
func take(r io.Reader, n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	buf := make([]byte, 0, min(n, step))
	for len(buf) < n {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, min(n-len(buf), len(buf)))
		}
		to := min(cap(buf), n)
		got, err := io.ReadFull(r, buf[len(buf):to])
		buf = buf[:len(buf)+got]
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
	}
	return buf, nil
}
