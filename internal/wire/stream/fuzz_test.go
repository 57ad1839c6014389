package stream

import (
	"bytes"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// packetOf reads a packet as one that arrived is read.
func packetOf(block, body []byte) (*wire.Packet, bool) {
	whole := (&wire.Packet{Block: block, Body: body}).Append(nil)
	p, err := wire.ReadPacket(bytes.NewReader(whole), wire.Bounds{Headers: 1 << 16, Body: 1 << 16})
	return p, err == nil
}

func FuzzPayload(f *testing.F) {
	for _, p := range []*Payload{
		{Circuit: "c"},
		{Circuit: "c", Seq: 7, Flags: FlagStart, Stamp: 3, Headers: capabilities, Data: []byte("data")},
	} {
		x := p.Packet()
		f.Add(x.Block, x.Body)
	}
	f.Fuzz(func(t *testing.T, block, body []byte) {
		packet, ok := packetOf(block, body)
		if !ok {
			return
		}
		p, err := ParsePayload(packet)
		if err != nil {
			return
		}
		if id, ok := CircuitOf(packet); !ok || string(id) != p.Circuit {
			t.Errorf("who passes it on reads %q, the end %q", id, p.Circuit)
		}
		back, err := ParsePayload(p.Packet())
		if err != nil || !samePayload(back, p) {
			t.Errorf("%+v became %+v, %v", p, back, err)
		}
	})
}

func FuzzAck(f *testing.F) {
	for _, a := range []*Ack{{Circuit: "c"}, {Circuit: "c", Flags: 2, Held: 5, Stamp: 6, Seqs: []int32{1, 2}}} {
		x := a.Packet()
		f.Add(x.Block, x.Body)
	}
	f.Fuzz(func(t *testing.T, block, body []byte) {
		packet, ok := packetOf(block, body)
		if !ok {
			return
		}
		a, err := ParseAck(packet)
		if err != nil {
			return
		}
		if id, ok := CircuitOf(packet); !ok || string(id) != a.Circuit {
			t.Errorf("who passes it on reads %q, the end %q", id, a.Circuit)
		}
		back, err := ParseAck(a.Packet())
		if err != nil || !sameAck(back, a) {
			t.Errorf("%+v became %+v, %v", a, back, err)
		}
	})
}

func FuzzControl(f *testing.F) {
	x := (&Control{Type: TraceRequest, Circuit: "c", Hops: 1, HopType: "t", HopID: "i", Time: 2, User: 3, Error: "e"}).Packet()
	f.Add(x.Block, x.Body)
	f.Fuzz(func(t *testing.T, block, body []byte) {
		packet, ok := packetOf(block, body)
		if !ok {
			return
		}
		c, err := ParseControl(packet)
		if err != nil {
			return
		}
		back, err := ParseControl(c.Packet())
		if err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%+v became %+v, %v", c, back, err)
		}
	})
}

// FuzzEnd lets anybody say anything to an end while its user does anything: it
// neither panics nor hangs nor holds more than it may.
func FuzzEnd(f *testing.F) {
	f.Add(false, []byte{0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add(true, bytes.Repeat([]byte{1, 4, 0, 2, 9, 3, 1, 0, 5}, 20))
	f.Fuzz(func(t *testing.T, terminator bool, script []byte) {
		if len(script) > 4096 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			l := newLone(Options{Terminator: terminator, Window: 32 << 10, Buffer: 32 << 10})
			l.Start()
			f := &fuzzed{lone: l, script: script, peer: FlagTerminator}
			if terminator {
				f.peer = 0
			}
			for len(f.script) > 0 && !t.Failed() {
				f.step()
				bounded(t, l.End, 1<<16)
			}
			l.Close(nil)
			l.pass(linger + time.Second)
			if len(l.done) != 1 || len(l.over) != 1 {
				t.Errorf("done %v, over %v", l.done, l.over)
			}
		})
	})
}

type fuzzed struct {
	*lone
	script []byte
	peer   uint32
}

func (f *fuzzed) byte() byte {
	if len(f.script) == 0 {
		return 0
	}
	b := f.script[0]
	f.script = f.script[1:]
	return b
}

// number is near zero, or far from it.
func (f *fuzzed) number() int32 {
	n := int32(f.byte())
	if n >= 0xf0 {
		return n<<24 | int32(f.byte())<<12 | int32(f.byte())
	}
	return n % 32
}

func (f *fuzzed) step() {
	switch f.byte() % 12 {
	case 0, 1, 2, 3:
		f.payload()
	case 4, 5:
		f.Acked(&Ack{Circuit: "c", Flags: uint32(f.byte())&1*FlagTerminator ^ f.peer, Held: uint32(f.number()), Stamp: uint16(f.byte()), Seqs: []int32{f.number(), f.number()}})
	case 6:
		f.TryWrite(Message{Data: make([]byte, int(f.byte())<<(f.byte()%9)), Flags: uint32(f.byte()), UUID: f.script[:min(2, len(f.script))]})
	case 7, 8:
		f.Next()
	case 9:
		f.pass(time.Duration(f.byte()) << (f.byte() % 20) * time.Microsecond)
	case 10:
		switch f.byte() % 16 {
		case 0:
			_ = f.CloseWrite()
		case 1:
			f.CloseRead()
		case 2:
			f.Close(errBroken)
		case 3:
			f.Abort(errBroken)
		}
	default:
		f.sent, f.acks = nil, nil
		f.refuse = f.byte()%4 == 0
	}
}

func (f *fuzzed) payload() {
	flags := uint32(f.byte())
	if flags < 0xc0 { // mostly harmless ones
		flags = flags&FlagChunk | f.peer
	}
	p := &Payload{Circuit: "c", Seq: f.number(), Flags: flags, Stamp: uint16(f.byte())}
	if k := f.byte(); k < 0x20 {
		p.Headers = []Header{{k, f.script[:min(4, len(f.script))]}}
	}
	n := int(f.byte())
	p.Data = append(p.Data, f.script[:min(n%16, len(f.script))]...)
	if n > 0x80 {
		p.Data = append(p.Data, make([]byte, n<<(n%9))...)
	}
	if packet := p.Packet(); packet.Type == message.TypePayload && p.Seq >= 0 {
		if back, err := ParsePayload(packet); err == nil {
			p = back
		}
	}
	f.Payload(p)
}
