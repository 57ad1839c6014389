package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// Packet is a frame whose headers are still bytes: what only passes through,
// or is looked at for a header or two, needs no map of them. A packet has one owner
// at a time: who reads it, then whoever it is handed to.
type Packet struct {
	Type int32
	Seq  int32
	// Block is the headers, whole: each of them is as long as it says.
	Block []byte
	Body  []byte
	// Memory is the owner's hold on what both of them are in.
	Memory Memory
	// Batch is what others that came with it may be answered or passed on together
	// with, while it is being taken where it was read; nil if it came alone.
	Batch *Batch
}

// ReadPacket takes one frame, under the rules of Read.
func ReadPacket(r io.Reader, most Bounds) (*Packet, error) {
	h, err := ReadHead(r, most)
	if err != nil {
		return nil, err
	}
	return h.Read(r)
}

// Head is the beginning of a frame, which says how long the rest is.
type Head struct {
	typ, seq      int32
	headers, body int
}

// ReadHead takes the beginning of a frame.
func ReadHead(r io.Reader, most Bounds) (Head, error) {
	var b [prefix]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return Head{}, err
	}
	if [4]byte(b[:4]) != magic {
		return Head{}, ErrMagic
	}
	headers, body := binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint32(b[16:])
	if uint64(headers) > uint64(most.Headers) || uint64(body) > uint64(most.Body) {
		return Head{}, &TooLarge{int64(headers), int64(body), most}
	}
	return Head{int32(binary.LittleEndian.Uint32(b[4:])), int32(binary.LittleEndian.Uint32(b[8:])), int(headers), int(body)}, nil
}

// TooLarge is an ErrTooLarge that says by how much.
type TooLarge struct {
	Headers, Body int64 // bytes that follow
	Most          Bounds
}

func (e *TooLarge) Error() string {
	return fmt.Sprintf("%v: %d bytes of headers of at most %d, %d of body of at most %d", ErrTooLarge, e.Headers, e.Most.Headers, e.Body, e.Most.Body)
}

// Is makes it an ErrTooLarge.
func (e *TooLarge) Is(target error) bool { return target == ErrTooLarge }

// Type is the frame's, and Parts how many bytes of headers and of body follow.
func (h Head) Type() int32                { return h.typ }
func (h Head) Parts() (headers, body int) { return h.headers, h.body }

// Size is how many bytes follow.
func (h Head) Size() int { return h.headers + h.body }

// Read takes the rest of the frame.
func (h Head) Read(r io.Reader) (*Packet, error) {
	all, err := take(r, h.Size())
	if err != nil {
		return nil, err
	}
	p := &Packet{Type: h.typ, Seq: h.seq, Block: all[:h.headers:h.headers], Body: all[h.headers:]}
	return p, p.check()
}

// ReadPooled is Read into memory that is used again when the packet is released.
func (h Head) ReadPooled(r io.Reader) (*Packet, error) {
	m := pooled(h.Size())
	if m == nil {
		return h.Read(r)
	}
	p := &Packet{Type: h.typ, Seq: h.seq, Memory: Memory{m}}
	all := m.bytes[:h.Size()]
	if n, err := io.ReadFull(r, all); err != nil {
		p.Release()
		if n == 0 && err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	p.Block, p.Body = all[:h.headers:h.headers], all[h.headers:len(all):len(all)]
	return p, p.check()
}

// check makes sure that the headers add up, so that nobody has to later.
func (p *Packet) check() error {
	block, n := p.Block, 0
	for len(block) > 0 {
		if len(block) < 4 || n == maxHeaders {
			return ErrHeaders
		}
		_, rest, ok := cutSized(block[4:])
		if !ok {
			return ErrHeaders
		}
		block, n = rest, n+1
	}
	return nil
}

// Each calls f for every header, in order.
func (p *Packet) Each(f func(key int32, value []byte)) {
	for block := p.Block; len(block) > 0; {
		key := int32(binary.LittleEndian.Uint32(block))
		value, rest, ok := cutSized(block[4:])
		if !ok {
			return // no packet that was read
		}
		f(key, value)
		block = rest
	}
}

// Bytes returns a header as it is.
func (p *Packet) Bytes(key int32) ([]byte, bool) {
	for block := p.Block; len(block) >= 8; {
		value, rest, ok := cutSized(block[4:])
		if !ok {
			break
		}
		if int32(binary.LittleEndian.Uint32(block)) == key {
			return value, true
		}
		block = rest
	}
	return nil, false
}

// Uint32 returns a number of four bytes.
func (p *Packet) Uint32(key int32) (uint32, bool) {
	v, _ := p.Bytes(key)
	if len(v) != 4 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(v), true
}

// Uint64 returns a number of eight bytes.
func (p *Packet) Uint64(key int32) (uint64, bool) {
	v, _ := p.Bytes(key)
	if len(v) != 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(v), true
}

// Drop takes headers out. The bytes that others may see stay as they are.
func (p *Packet) Drop(keys ...int32) {
	left := make(Block, 0, len(p.Block))
	p.Each(func(key int32, value []byte) {
		if !slices.Contains(keys, key) {
			left = left.Bytes(key, value)
		}
	})
	p.Block = left
}

// Frame returns the packet with its headers taken apart.
func (p *Packet) Frame() (*Frame, error) {
	h, err := parseHeaders(p.Block)
	if err != nil {
		return nil, err
	}
	f := &Frame{Type: p.Type, Seq: p.Seq, Headers: h}
	if len(p.Body) > 0 {
		f.Body = p.Body
	}
	return f, nil
}

// Size is how many bytes the packet has.
func (p *Packet) Size() int { return prefix + len(p.Block) + len(p.Body) }

// Append adds the packet's bytes.
func (p *Packet) Append(dst []byte) []byte {
	dst = slices.Grow(dst, p.Size())
	dst = p.appendPrefix(dst)
	dst = append(dst, p.Block...)
	return append(dst, p.Body...)
}

func (p *Packet) appendPrefix(dst []byte) []byte {
	dst = append(dst, magic[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(p.Type))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(p.Seq))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(p.Block)))
	return binary.LittleEndian.AppendUint32(dst, uint32(len(p.Body)))
}

// Put writes the packet's bytes, in pieces as they are.
func (p *Packet) Put(w io.Writer) error {
	var b [prefix]byte
	for _, piece := range [][]byte{p.appendPrefix(b[:0]), p.Block, p.Body} {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// Block is headers as bytes, for who writes many frames and wants no map.
type Block []byte

// Bytes adds a header as it is.
func (b Block) Bytes(key int32, value []byte) Block {
	return appendSized(binary.LittleEndian.AppendUint32(b, uint32(key)), value)
}

// Text adds a header of text.
func (b Block) Text(key int32, value string) Block {
	return appendSized(binary.LittleEndian.AppendUint32(b, uint32(key)), value)
}

// Uint16 adds a header of two bytes.
func (b Block) Uint16(key int32, v uint16) Block {
	b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(key)), 2)
	return binary.LittleEndian.AppendUint16(b, v)
}

// Uint32 adds a header of four bytes.
func (b Block) Uint32(key int32, v uint32) Block {
	b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(key)), 4)
	return binary.LittleEndian.AppendUint32(b, v)
}

// Uint64 adds a header of eight bytes.
func (b Block) Uint64(key int32, v uint64) Block {
	b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(key)), 8)
	return binary.LittleEndian.AppendUint64(b, v)
}
