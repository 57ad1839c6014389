package stream

import (
	"bytes"
	"encoding/hex"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// unhex reads bytes that were written down in groups.
func unhex(t testing.TB, groups ...string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Join(groups, ""), " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The bytes below are written by hand from what is known of the format.
func TestPayloadBytes(t *testing.T) {
	p := &Payload{
		Circuit: "abc", Seq: 258, Flags: FlagTerminator | FlagEOF, Stamp: 0x1234,
		Headers: []Header{{KeyCapabilities, []byte{0, 0, 1, 0}}, {KeyDataFlags, []byte{1, 0, 0, 0}}},
		Data:    []byte("hi"),
	}
	want := unhex(t,
		"d0080000 03000000 616263",           // 2256: the circuit
		"d1080000 08000000 0201000000000000", // 2257: the sequence
		"d2080000 04000000 22000000",         // 2258: flags
		"d4080000 02000000 3412",             // 2260: the stamp
		"d1070000 04000000 00000100",         // 2000+1: capabilities, big-endian
		"e0070000 04000000 01000000",         // 2000+16: data flags
	)
	got := p.Packet()
	if got.Type != 1100 || !bytes.Equal(got.Block, want) || string(got.Body) != "hi" {
		t.Fatalf("type %d, headers\n%x, want\n%x", got.Type, got.Block, want)
	}
	if &got.Body[0] != &p.Data[0] {
		t.Error("the data was copied")
	}
	back, err := ParsePayload(got)
	if err != nil {
		t.Fatal(err)
	}
	if !samePayload(back, p) {
		t.Fatalf("read back as %+v", back)
	}
	if id, ok := CircuitOf(got); !ok || string(id) != "abc" {
		t.Errorf("the circuit is %q, %v", id, ok)
	}
	if plain := (&Payload{Circuit: "abc"}).Packet(); len(plain.Block) != 8+3+16+10 {
		t.Errorf("no flags take %d bytes of headers", len(plain.Block))
	}
}

func TestAckBytes(t *testing.T) {
	a := &Ack{Circuit: "abc", Flags: FlagTerminator, Held: 10_000, Stamp: 0xfffe, Seqs: []int32{7, 258}}
	want := unhex(t,
		"d0080000 03000000 616263",
		"d2080000 04000000 02000000",
		"d3080000 04000000 10270000",
		"d4080000 02000000 feff",
	)
	got := a.Packet()
	if got.Type != 1101 || !bytes.Equal(got.Block, want) || !bytes.Equal(got.Body, unhex(t, "00000007 00000102")) {
		t.Fatalf("type %d, headers\n%x, want\n%x, body %x", got.Type, got.Block, want, got.Body)
	}
	back, err := ParseAck(got)
	if err != nil || !sameAck(back, a) {
		t.Fatalf("read back as %+v, %v", back, err)
	}
	if id, ok := CircuitOf(got); !ok || string(id) != "abc" {
		t.Errorf("the circuit is %q, %v", id, ok)
	}
	// Who does not say what it holds may hold any amount.
	silent, err := ParseAck(&wire.Packet{Block: wire.Block(nil).Text(message.HeaderStreamCircuit, "abc")})
	if err != nil || silent.Held != math.MaxUint32 || len(silent.Seqs) != 0 {
		t.Errorf("an empty one is %+v, %v", silent, err)
	}
}

func TestControlBytes(t *testing.T) {
	c := &Control{
		Type: TraceResponse, Circuit: "abc", Hops: 2, HopType: "forwarder", HopID: "r1", Time: 3, User: 4, Error: "no",
	}
	want := unhex(t,
		"14000000 04000000 02000000",
		"15000000 09000000 666f72776172646572",
		"16000000 02000000 7231",
		"17000000 08000000 0300000000000000",
		"18000000 04000000 04000000",
		"19000000 02000000 6e6f",
	)
	got := c.Packet()
	if got.Type != 1102 || !bytes.Equal(got.Block, want) || string(got.Body) != "\x02abc" {
		t.Fatalf("type %d, headers\n%x, want\n%x, body %q", got.Type, got.Block, want, got.Body)
	}
	if back, err := ParseControl(got); err != nil || !reflect.DeepEqual(back, c) {
		t.Fatalf("read back as %+v, %v", back, err)
	}
}

func TestDamagedFrames(t *testing.T) {
	circuit := wire.Block(nil).Text(message.HeaderStreamCircuit, "c")
	whole := slices.Clone(circuit).Uint64(message.HeaderStreamSeq, 1)
	long := strings.Repeat("c", maxCircuit+1)
	for what, block := range map[string]wire.Block{
		"no circuit":         wire.Block(nil).Uint64(message.HeaderStreamSeq, 1),
		"an empty circuit":   wire.Block(nil).Text(message.HeaderStreamCircuit, "").Uint64(message.HeaderStreamSeq, 1),
		"a long circuit":     wire.Block(nil).Text(message.HeaderStreamCircuit, long).Uint64(message.HeaderStreamSeq, 1),
		"no sequence":        circuit,
		"a large sequence":   slices.Clone(circuit).Uint64(message.HeaderStreamSeq, 1<<31),
		"a short sequence":   slices.Clone(circuit).Uint32(message.HeaderStreamSeq, 1),
		"two circuits":       slices.Clone(whole).Text(message.HeaderStreamCircuit, "d"),
		"two data flags":     slices.Clone(whole).Uint32(2016, 1).Uint32(2016, 2),
		"a stamp of 4 bytes": slices.Clone(whole).Uint32(message.HeaderStreamStamp, 1),
		"flags of 2 bytes":   slices.Clone(whole).Uint16(message.HeaderStreamFlags, 1),
	} {
		if p, err := ParsePayload(&wire.Packet{Block: block}); err == nil {
			t.Errorf("a payload with %s was read as %+v", what, p)
		}
	}
	for what, p := range map[string]*wire.Packet{
		"no circuit":       {Block: wire.Block(nil).Uint32(message.HeaderStreamHeld, 1)},
		"half a sequence":  {Block: circuit, Body: make([]byte, 6)},
		"too many":         {Block: circuit, Body: make([]byte, 4*maxSeqs+4)},
		"held in 8 bytes":  {Block: slices.Clone(circuit).Uint64(message.HeaderStreamHeld, 1)},
		"two sizes of all": {Block: slices.Clone(circuit).Uint32(message.HeaderStreamHeld, 1).Uint32(message.HeaderStreamHeld, 2)},
	} {
		if a, err := ParseAck(p); err == nil {
			t.Errorf("an acknowledgement with %s was read as %+v", what, a)
		}
	}
	for what, p := range map[string]*wire.Packet{
		"no circuit":     {Body: []byte{1}},
		"a long circuit": {Body: []byte("\x01" + long)},
		"short hops":     {Body: []byte("\x01c"), Block: wire.Block(nil).Uint16(message.HeaderControlHops, 1)},
		"a short time":   {Body: []byte("\x01c"), Block: wire.Block(nil).Uint16(message.HeaderControlTime, 1)},
		"a long text":    {Body: []byte("\x01c"), Block: wire.Block(nil).Bytes(message.HeaderControlError, make([]byte, maxTraceText+1))},
	} {
		if c, err := ParseControl(p); err == nil {
			t.Errorf("a control message with %s was read as %+v", what, c)
		}
	}
}

func samePayload(a, b *Payload) bool {
	return a.Circuit == b.Circuit && a.Seq == b.Seq && a.Flags == b.Flags && a.Stamp == b.Stamp &&
		bytes.Equal(a.Data, b.Data) && slices.EqualFunc(a.Headers, b.Headers, func(x, y Header) bool {
		return x.Key == y.Key && bytes.Equal(x.Value, y.Value)
	})
}

func sameAck(a, b *Ack) bool {
	return a.Circuit == b.Circuit && a.Flags == b.Flags && a.Held == b.Held && a.Stamp == b.Stamp && slices.Equal(a.Seqs, b.Seqs)
}
