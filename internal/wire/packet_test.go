package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// blockOf is headers as bytes, in the order of keys.
func blockOf(h Headers) (b Block) {
	for _, key := range slices.Sorted(maps.Keys(h)) {
		b = b.Bytes(key, h[key])
	}
	return b
}

// agree checks that a packet says of its headers what the map says.
func agree(t rapid.TB, p *Packet, h Headers) {
	t.Helper()
	seen := Headers{}
	p.Each(func(key int32, value []byte) { seen[key] = value })
	if !maps.EqualFunc(seen, h, bytes.Equal) {
		t.Fatalf("each gives %v, the map has %v", seen, h)
	}
	for key := range h {
		value, ok := p.Bytes(key)
		if !ok || !bytes.Equal(value, h[key]) {
			t.Fatalf("header %d is %x, %v, in the map %x", key, value, ok, h[key])
		}
		got32, ok32 := p.Uint32(key)
		want32, wantOK := h.Uint32(key)
		if got32 != want32 || ok32 != wantOK {
			t.Fatalf("header %d is the number %d, %v, in the map %d, %v", key, got32, ok32, want32, wantOK)
		}
		got64, ok64 := p.Uint64(key)
		want64, wantOK := h.Uint64(key)
		if got64 != want64 || ok64 != wantOK {
			t.Fatalf("header %d is the number %d, %v, in the map %d, %v", key, got64, ok64, want64, wantOK)
		}
	}
}

// TestPacketIsTheFrame: a packet is the frame whose headers nobody has taken
// apart, whoever wrote it.
func TestPacketIsTheFrame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &Frame{
			Type: rapid.Int32().Draw(rt, "type"), Seq: rapid.Int32().Draw(rt, "seq"),
			Headers: rapid.MapOfN(rapid.Int32Range(-3, 12), rapid.SliceOfN(rapid.Byte(), 0, 9), 0, 10).Draw(rt, "headers"),
			Body:    rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(rt, "body"),
		}
		bytesOf := f.Append(nil)
		made := &Packet{Type: f.Type, Seq: f.Seq, Block: blockOf(f.Headers), Body: f.Body}
		if !bytes.Equal(made.Append(nil), bytesOf) || made.Size() != len(bytesOf) {
			rt.Fatalf("the packet is % x, the frame % x", made.Append(nil), bytesOf)
		}
		r := bytes.NewReader(append(slices.Clone(bytesOf), "next"...))
		p, err := ReadPacket(r, most)
		if err != nil {
			rt.Fatal(err)
		}
		if rest, _ := io.ReadAll(r); string(rest) != "next" {
			rt.Fatalf("what follows is %q", rest)
		}
		agree(rt, p, f.Headers)
		if _, ok := p.Bytes(99); ok {
			rt.Fatal("it has a header that nobody gave it")
		}
		back, err := p.Frame()
		if err != nil || back.Type != f.Type || back.Seq != f.Seq || !bytes.Equal(back.Body, f.Body) || !maps.EqualFunc(back.Headers, f.Headers, bytes.Equal) {
			rt.Fatalf("%+v, %v came back of %+v", back, err, f)
		}
		// What others may see does not change when a header is taken out.
		before, block := p.Block, slices.Clone(p.Block)
		keys := rapid.SliceOfN(rapid.Int32Range(-3, 12), 0, 4).Draw(rt, "dropped")
		p.Drop(keys...)
		left := maps.Clone(f.Headers)
		maps.DeleteFunc(left, func(key int32, _ []byte) bool { return slices.Contains(keys, key) })
		agree(rt, p, left)
		if !bytes.Equal(before, block) {
			rt.Fatal("the bytes of the packet were changed")
		}
	})
}

func TestBlockBytes(t *testing.T) {
	got := Block(nil).Text(1, "a").Uint16(2, 0x0102).Uint32(3, 0x01020304).Uint64(4, 5).Bytes(5, nil)
	want := []byte{
		1, 0, 0, 0, 1, 0, 0, 0, 'a',
		2, 0, 0, 0, 2, 0, 0, 0, 2, 1,
		3, 0, 0, 0, 4, 0, 0, 0, 4, 3, 2, 1,
		4, 0, 0, 0, 8, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0,
		5, 0, 0, 0, 0, 0, 0, 0,
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got  % x\nwant % x", got, want)
	}
}

// TestDamagedBlocks: who has read a packet need not look whether its headers add
// up.
func TestDamagedBlocks(t *testing.T) {
	whole := Block(nil).Uint32(1, 2)
	var many Block
	for key := range int32(maxHeaders + 1) {
		many = many.Bytes(key, nil)
	}
	for what, block := range map[string][]byte{
		"half a key":         {1, 0},
		"a key alone":        {1, 0, 0, 0},
		"half a length":      {1, 0, 0, 0, 1, 0},
		"a length too long":  {1, 0, 0, 0, 2, 0, 0, 0, 9},
		"a length of 2^32-1": {1, 0, 0, 0, 255, 255, 255, 255, 9},
		"something after":    append(slices.Clone(whole), 7),
		"too many":           many,
	} {
		data := (&Packet{Block: block, Body: []byte("body")}).Append(nil)
		if _, err := ReadPacket(bytes.NewReader(data), most); !errors.Is(err, ErrHeaders) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := ReadPacket(bytes.NewReader((&Packet{Block: many[:len(many)-8]}).Append(nil)), most); err != nil {
		t.Errorf("as many as there may be: %v", err)
	}
}

// TestTooLargePackets: what is too large is known from its beginning, and by how
// much, so that it can be passed over.
func TestTooLargePackets(t *testing.T) {
	small := Bounds{Headers: 20, Body: 10}
	for what, p := range map[string]*Packet{
		"headers": {Block: Block(nil).Text(1, "thirteen byte")},
		"body":    {Body: make([]byte, 11)},
	} {
		data := p.Append(nil)
		_, err := ReadHead(bytes.NewReader(data), small)
		large, ok := errors.AsType[*TooLarge](err)
		if !ok || !errors.Is(err, ErrTooLarge) || int(large.Headers+large.Body) != len(data)-prefix || large.Most != small {
			t.Errorf("%s: %v", what, err)
		}
	}
	h, err := ReadHead(bytes.NewReader((&Packet{Body: make([]byte, 10)}).Append(nil)), small)
	if err != nil || h.Size() != 10 {
		t.Errorf("as large as may be: %d, %v", h.Size(), err)
	}
}

// FuzzPacket reads anything: a packet that is read is the bytes that it was read
// from, and a frame is a packet.
func FuzzPacket(f *testing.F) {
	f.Add((&Packet{Type: 1, Seq: 2, Block: Block(nil).Uint32(3, 4), Body: []byte("5")}).Append(nil))
	f.Add((&Packet{Block: Block(nil).Text(3, "4").Text(3, "5")}).Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadPacket(bytes.NewReader(data), most)
		frame, frameErr := Read(bytes.NewReader(data), most)
		if err != nil {
			if frameErr == nil {
				t.Fatalf("a frame that is no packet: %v", err)
			}
			return
		}
		if !bytes.Equal(p.Append(nil), data[:p.Size()]) {
			t.Fatalf("read as %+v", p)
		}
		n := 0
		p.Each(func(key int32, value []byte) { n += 8 + len(value) })
		if n != len(p.Block) {
			t.Fatalf("headers of %d bytes in %d", n, len(p.Block))
		}
		if frameErr == nil {
			agree(t, p, frame.Headers)
		}
		if len(p.Block) >= 8 {
			first := int32(binary.LittleEndian.Uint32(p.Block))
			p.Drop(first)
			if _, ok := p.Bytes(first); ok {
				t.Fatalf("header %d is still there", first)
			}
		}
	})
}
