package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

var most = Bounds{Headers: 64 << 10, Body: 1 << 20}

// TestBytes holds a frame to the bytes that peers expect.
func TestBytes(t *testing.T) {
	f := Frame{Type: 2, Seq: -1, Headers: Headers{}, Body: []byte("ok")}
	f.Headers.SetBool(2, true)
	f.Headers.SetUint32(1, 0xffffffff)
	want := []byte{
		3, 6, 9, 12, 2, 0, 0, 0, 255, 255, 255, 255, 21, 0, 0, 0, 2, 0, 0, 0,
		1, 0, 0, 0, 4, 0, 0, 0, 255, 255, 255, 255,
		2, 0, 0, 0, 1, 0, 0, 0, 1,
		'o', 'k',
	}
	if got := f.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("got  % x\nwant % x", got, want)
	}
}

// TestRoundTrip sends random frames through a connection that gives what it
// likes at a time.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &Frame{
			Type: rapid.Int32().Draw(rt, "type"), Seq: rapid.Int32().Draw(rt, "seq"),
			Headers: rapid.MapOfN(rapid.Int32(), rapid.SliceOfN(rapid.Byte(), 1, 50), 0, 20).Draw(rt, "headers"),
			Body:    rapid.SliceOfN(rapid.Byte(), 0, 300_000).Draw(rt, "body"),
		}
		wire := append(f.Append(nil), "next"...)
		r := iotest.OneByteReader(bytes.NewReader(wire))
		if len(wire) > 5000 {
			r = iotest.HalfReader(bytes.NewReader(wire))
		}
		got, err := Read(r, most)
		if err != nil {
			rt.Fatal(err)
		}
		if got.Type != f.Type || got.Seq != f.Seq || !bytes.Equal(got.Body, f.Body) || !maps.EqualFunc(got.Headers, f.Headers, bytes.Equal) {
			rt.Fatalf("got %+v, want %+v", got, f)
		}
		if rest, _ := io.ReadAll(r); string(rest) != "next" {
			rt.Fatalf("what follows is %q", rest)
		}
	})
}

// TestRefused lists what is no frame.
func TestRefused(t *testing.T) {
	good := (&Frame{Type: 1, Headers: Headers{5: []byte("12345678")}, Body: []byte("body")}).Append(nil)
	with := func(change func(b []byte)) []byte {
		b := bytes.Clone(good)
		change(b)
		return b
	}
	for _, test := range []struct {
		name string
		data []byte
		want error
	}{
		{"nothing", nil, io.EOF},
		{"part of the prefix", good[:10], io.ErrUnexpectedEOF},
		{"part of the headers", good[:25], io.ErrUnexpectedEOF},
		{"part of the body", good[:len(good)-1], io.ErrUnexpectedEOF},
		{"another magic", with(func(b []byte) { b[3] = 0x0a }), ErrMagic},
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), ErrMagic},
		{"huge headers", with(func(b []byte) { binary.LittleEndian.PutUint32(b[12:], 1<<31) }), ErrTooLarge},
		{"huge body", with(func(b []byte) { binary.LittleEndian.PutUint32(b[16:], 1<<32-1) }), ErrTooLarge},
		{"a header longer than the block", with(func(b []byte) { binary.LittleEndian.PutUint32(b[24:], 9) }), ErrHeaders},
		{"a header of almost four gigabytes", with(func(b []byte) { binary.LittleEndian.PutUint32(b[24:], 1<<32-8) }), ErrHeaders},
		{"half a header", with(func(b []byte) { binary.LittleEndian.PutUint32(b[12:], 3) }), ErrHeaders},
	} {
		if _, err := Read(bytes.NewReader(test.data), most); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	twice := Frame{Type: 1, Headers: Headers{5: nil}}
	block := append(twice.Headers.append(nil), twice.Headers.append(nil)...)
	if _, err := parseHeaders(block); !errors.Is(err, ErrHeaders) {
		t.Errorf("a key that comes twice: %v", err)
	}
}

// TestAnnouncedIsNotAllocated announces much and sends nothing.
func TestAnnouncedIsNotAllocated(t *testing.T) {
	p := (&Frame{}).Append(nil)
	binary.LittleEndian.PutUint32(p[16:], 1<<30)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Read(bytes.NewReader(p), Bounds{Body: 1 << 30})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes were set aside for a body that never came", got)
	}
}

// TestValues writes and reads every type of header.
func TestValues(t *testing.T) {
	h := Headers{}
	texts, data, pairs := []string{"a", "", "b"}, map[uint32][]byte{1: []byte("x"), 1 << 31: {}}, map[string]string{"k": "v", "": ""}
	h.SetText(1, "text")
	h.SetBool(2, true)
	h.SetUint32(3, 7)
	h.SetUint64(4, 1<<40)
	h.SetTexts(5, texts)
	h.SetData(6, data)
	h.SetTextMap(7, pairs)
	h.SetTexts(8, nil)
	gotTexts, ok1 := h.Texts(5)
	gotData, ok2 := h.Data(6)
	gotPairs, ok3 := h.TextMap(7)
	none, ok4 := h.Texts(8)
	n32, ok5 := h.Uint32(3)
	n64, ok6 := h.Uint64(4)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || h.Text(1) != "text" || !h.Bool(2) || n32 != 7 || n64 != 1<<40 ||
		!reflect.DeepEqual(gotTexts, texts) || !reflect.DeepEqual(gotData, data) || !reflect.DeepEqual(gotPairs, pairs) || none != nil {
		t.Errorf("headers came back as %v, %v, %v, %v, %v, %v", gotTexts, gotData, gotPairs, none, n32, n64)
	}
	if _, ok := h.Uint32(4); ok {
		t.Error("eight bytes were read as four")
	}
	if _, ok := h.Byte(4); ok {
		t.Error("eight bytes were read as one")
	}
}

// FuzzRead reads anything: what is a frame comes back as the same bytes, but
// for the order of headers, and the typed readers never fail worse than with
// no value.
func FuzzRead(f *testing.F) {
	seed := Frame{Type: 20218, Seq: 3, Headers: Headers{}, Body: []byte("x")}
	seed.Headers.SetTexts(12, []string{"a", "b"})
	seed.Headers.SetData(10, map[uint32][]byte{1003: []byte("key")})
	seed.Headers.SetTextMap(13, map[string]string{"serviceId": "s"})
	f.Add(seed.Append(nil))
	f.Add([]byte{3, 6, 9, 12})
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, err := Read(bytes.NewReader(data), most)
		if err != nil {
			return
		}
		size := prefix + frame.Headers.size() + len(frame.Body)
		if size > len(data) {
			t.Fatalf("a frame of %d bytes came from %d", size, len(data))
		}
		again, err := Read(bytes.NewReader(frame.Append(nil)), most)
		if err != nil || !reflect.DeepEqual(frame, again) {
			t.Fatalf("read again: %v, %+v, was %+v", err, again, frame)
		}
		for key := range frame.Headers {
			frame.Headers.Texts(key)
			frame.Headers.Data(key)
			frame.Headers.TextMap(key)
			frame.Headers.Byte(key)
		}
	})
}

// TestHeadersSorted has one frame always be the same bytes.
func TestHeadersSorted(t *testing.T) {
	f := Frame{Headers: Headers{}}
	for range 50 {
		f.Headers[rand.Int32()] = []byte{1}
	}
	first := f.Append(nil)
	for range 10 {
		if !bytes.Equal(first, f.Append(nil)) {
			t.Fatal("one frame has two forms")
		}
	}
}
