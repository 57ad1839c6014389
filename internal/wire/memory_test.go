package wire

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// pack returns a frame as bytes, with a header.
func pack(value, body []byte) []byte {
	return (&Packet{Type: 5, Block: Block(nil).Bytes(1, value), Body: body}).Append(nil)
}

func readPooled(data []byte) (*Packet, error) {
	r := bytes.NewReader(data)
	h, err := ReadHead(r, Bounds{Headers: 1 << 10, Body: 1 << 20})
	if err != nil {
		return nil, err
	}
	return h.ReadPooled(r)
}

// holder is somebody with a hold on a packet, and what has to be in it.
type holder struct {
	memory      Memory
	block, body []byte
	want        *Packet
}

// TestHolds has packets read, held by several and released in any order: what
// somebody has a hold of stays as it was, whatever is read meanwhile.
func TestHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all []holder
		n := byte(0)
		one := func() int { return rapid.IntRange(0, len(all)-1).Draw(rt, "who") }
		rt.Repeat(map[string]func(*rapid.T){
			"read": func(rt *rapid.T) {
				n++
				size := rapid.SampledFrom([]int{0, 10, 800, 900, 1100, 1500, 4096, 9000, 16 << 10, 32 << 10, 64 << 10, 100 << 10}).Draw(rt, "size")
				value, body := bytes.Repeat([]byte{n}, 40), bytes.Repeat([]byte{n}, size)
				p, err := readPooled(pack(value, body))
				if err != nil {
					rt.Fatal(err)
				}
				if m := p.Memory.of; m != nil {
					if cap(p.Block) > len(p.Block) || cap(p.Body) > len(p.Body) {
						rt.Fatal("who adds to a part of the packet writes over what is behind it")
					}
					if 3*len(m.bytes) > 4*(len(p.Block)+len(p.Body)) {
						rt.Fatalf("%d bytes take %d", len(p.Block)+len(p.Body), len(m.bytes))
					}
				}
				all = append(all, holder{p.Memory, p.Block, p.Body, &Packet{Block: Block(nil).Bytes(1, value), Body: body}})
			},
			"share": func(*rapid.T) {
				if len(all) > 0 {
					h := all[one()]
					h.memory = h.memory.More()
					all = append(all, h)
				}
			},
			"release": func(*rapid.T) {
				if len(all) > 0 {
					i := one()
					all[i].memory.Release()
					all = slices.Delete(all, i, i+1)
				}
			},
			"": func(rt *rapid.T) {
				for _, h := range all {
					if !bytes.Equal(h.block, h.want.Block) || !bytes.Equal(h.body, h.want.Body) {
						rt.Fatal("what somebody has a hold of has changed")
					}
				}
			},
		})
	})
}

// TestReleasedTwice: a hold that is let go of twice is a mistake that must not be
// overlooked, since the memory may be another's by then.
func TestReleasedTwice(t *testing.T) {
	p, err := readPooled(pack(nil, make([]byte, 4096)))
	if err != nil {
		t.Fatal(err)
	}
	m := p.Memory
	p.Release()
	p.Release() // a packet knows that it has none any more
	if p.Block != nil || p.Body != nil {
		t.Error("what is released can still be looked at")
	}
	defer func() {
		if recover() == nil {
			t.Error("nobody has noticed")
		}
	}()
	m.Release()
}

// TestPoisoned: where memory is overwritten, all of it is.
func TestPoisoned(t *testing.T) {
	m := pooled(4096)
	m.poison()
	if !bytes.Equal(m.bytes, bytes.Repeat([]byte{poisoned}, len(m.bytes))) {
		t.Error("something is left in it")
	}
}

// TestPooledCut has frames that end early, or whose headers do not add up: they are
// refused as those are that are read into memory of their own.
func TestPooledCut(t *testing.T) {
	whole := pack(make([]byte, 40), make([]byte, 4096))
	for _, n := range []int{prefix, prefix + 20, len(whole) - 1} {
		if _, err := readPooled(whole[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d bytes it ends with %v", n, err)
		}
	}
	damaged := slices.Clone(whole)
	damaged[prefix+4] = 200
	if _, err := readPooled(damaged); !errors.Is(err, ErrHeaders) {
		t.Errorf("damaged headers give %v", err)
	}
}
