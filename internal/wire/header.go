package wire

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Headers are a frame's typed values by key. A value of the wrong length for
// its type counts as absent.
type Headers map[int32][]byte

// maxHeaders is how many headers one frame may have.
const maxHeaders = 1024

// How much a list or map in a header may hold.
const (
	maxEntries = 128
	maxEntry   = 8192
)

func (h Headers) size() int {
	n := 0
	for _, v := range h {
		n += 8 + len(v)
	}
	return n
}

// append adds the block, by key: the same headers are always the same bytes.
func (h Headers) append(dst []byte) []byte {
	if len(h) == 0 {
		return dst
	}
	for _, key := range slices.Sorted(maps.Keys(h)) {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(key))
		dst = appendSized(dst, h[key])
	}
	return dst
}

func parseHeaders(block []byte) (Headers, error) {
	if len(block) == 0 {
		return nil, nil
	}
	h := Headers{}
	for len(block) > 0 {
		if len(block) < 4 {
			return nil, ErrHeaders
		}
		key := int32(binary.LittleEndian.Uint32(block))
		value, rest, ok := cutSized(block[4:])
		if !ok {
			return nil, ErrHeaders
		}
		if _, twice := h[key]; twice {
			return nil, fmt.Errorf("%w: key %d comes twice", ErrHeaders, key)
		}
		if len(h) == maxHeaders {
			return nil, fmt.Errorf("%w: there are more than %d", ErrHeaders, maxHeaders)
		}
		h[key], block = value, rest
	}
	return h, nil
}

// appendSized adds a length and as many bytes.
func appendSized[T ~string | ~[]byte](dst []byte, v T) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(v)))
	return append(dst, v...)
}

// cutSized takes a length and as many bytes off the front.
func cutSized(b []byte) (v, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, nil, false
	}
	end := 4 + int(n)
	return b[4:end:end], b[end:], true
}

// Bytes returns a value as it is.
func (h Headers) Bytes(key int32) ([]byte, bool) {
	v, ok := h[key]
	return v, ok
}

// Text returns a text, empty if there is none.
func (h Headers) Text(key int32) string { return string(h[key]) }

// Bool reports whether the value is there and true.
func (h Headers) Bool(key int32) bool { return len(h[key]) > 0 && h[key][0] == 1 }

// Byte returns a single byte.
func (h Headers) Byte(key int32) (byte, bool) {
	if len(h[key]) != 1 {
		return 0, false
	}
	return h[key][0], true
}

// Uint32 returns a number of four bytes.
func (h Headers) Uint32(key int32) (uint32, bool) {
	if len(h[key]) != 4 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(h[key]), true
}

// Uint64 returns a number of eight bytes.
func (h Headers) Uint64(key int32) (uint64, bool) {
	if len(h[key]) != 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(h[key]), true
}

// Texts returns a list of texts; ok is false if it is damaged. One that is not
// there is empty.
func (h Headers) Texts(key int32) (list []string, ok bool) {
	n, rest, ok := count(h[key])
	if !ok {
		return nil, false
	}
	for range n {
		var v []byte
		if v, rest, ok = entry(rest); !ok {
			return nil, false
		}
		list = append(list, string(v))
	}
	return list, len(rest) == 0
}

// Data returns a map of numbers to bytes, under the rules of Texts.
func (h Headers) Data(key int32) (m map[uint32][]byte, ok bool) {
	n, rest, ok := count(h[key])
	if !ok {
		return nil, false
	}
	m = make(map[uint32][]byte, n)
	for range n {
		if len(rest) < 4 {
			return nil, false
		}
		k := binary.LittleEndian.Uint32(rest)
		var v []byte
		if v, rest, ok = entry(rest[4:]); !ok {
			return nil, false
		}
		m[k] = v
	}
	return m, len(rest) == 0
}

// TextMap returns a map of texts to texts, under the rules of Texts.
func (h Headers) TextMap(key int32) (m map[string]string, ok bool) {
	n, rest, ok := count(h[key])
	if !ok {
		return nil, false
	}
	m = make(map[string]string, n)
	for range n {
		var k, v []byte
		if k, rest, ok = entry(rest); !ok {
			return nil, false
		}
		if v, rest, ok = entry(rest); !ok {
			return nil, false
		}
		m[string(k)] = string(v)
	}
	return m, len(rest) == 0
}

// count reads how many entries follow. Nothing at all is none.
func count(b []byte) (n int, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, true
	}
	if len(b) < 4 {
		return 0, nil, false
	}
	stated := binary.LittleEndian.Uint32(b)
	return int(stated), b[4:], stated <= maxEntries
}

func entry(b []byte) (v, rest []byte, ok bool) {
	v, rest, ok = cutSized(b)
	return v, rest, ok && len(v) <= maxEntry
}

// SetText adds a text.
func (h Headers) SetText(key int32, v string) { h[key] = []byte(v) }

// SetBool adds a truth value.
func (h Headers) SetBool(key int32, v bool) {
	h[key] = []byte{0}
	if v {
		h[key][0] = 1
	}
}

// SetUint32 adds a number of four bytes.
func (h Headers) SetUint32(key int32, v uint32) { h[key] = binary.LittleEndian.AppendUint32(nil, v) }

// SetUint64 adds a number of eight bytes.
func (h Headers) SetUint64(key int32, v uint64) { h[key] = binary.LittleEndian.AppendUint64(nil, v) }

// SetTexts adds a list of texts.
func (h Headers) SetTexts(key int32, list []string) {
	if len(list) == 0 {
		h[key] = nil
		return
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(list)))
	for _, v := range list {
		b = appendSized(b, v)
	}
	h[key] = b
}

// SetData adds a map of numbers to bytes.
func (h Headers) SetData(key int32, m map[uint32][]byte) {
	if len(m) == 0 {
		h[key] = nil
		return
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b = binary.LittleEndian.AppendUint32(b, k)
		b = appendSized(b, m[k])
	}
	h[key] = b
}

// SetTextMap adds a map of texts to texts.
func (h Headers) SetTextMap(key int32, m map[string]string) {
	if len(m) == 0 {
		h[key] = nil
		return
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b = appendSized(appendSized(b, k), m[k])
	}
	h[key] = b
}
