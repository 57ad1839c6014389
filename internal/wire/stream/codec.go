package stream

import (
	"encoding/binary"
	"fmt"
	"math"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Flags of payloads. Acknowledgements have FlagTerminator alone.
const (
	FlagEnd        uint32 = 1  // the sender is gone, or sends no more and knows no better word
	FlagTerminator uint32 = 2  // the sender is the end that was dialed
	FlagStart      uint32 = 4  // the terminator may speak
	FlagChunk      uint32 = 8  // a part of a message
	FlagAgain      uint32 = 16 // sent before
	FlagEOF        uint32 = 32 // the sender sends no more
	FlagRefuse     uint32 = 64 // the sender takes no more
)

// Keys of headers of payloads.
const (
	KeyUUID         byte = 0
	KeyCapabilities byte = 1
	KeyDataFlags    byte = 0x10
)

const (
	// maxCircuit is how long the id of a circuit may be; controllers give out
	// 22 characters at most.
	maxCircuit = 128
	// maxSeqs is how many payloads one acknowledgement may name: as many as an
	// end has in flight.
	maxSeqs = span
	// unsaid is what an acknowledgement without a number says about what is held.
	unsaid = math.MaxUint32
)

// Header is a header of a payload, which both ends see.
type Header struct {
	Key   byte
	Value []byte
}

// Payload is one step of a stream. Nothing in it is changed once it was handed
// on. Whoever is handed one lets go of its memory, or hands it on.
type Payload struct {
	Circuit string
	Seq     int32
	Flags   uint32
	Stamp   uint16 // the sender's clock in milliseconds, or what is left of it
	Headers []Header
	Data    []byte

	// Memory is a hold on what Data and Headers are in.
	Memory wire.Memory
	// Batch, of one that arrives, is what came with it and may be acknowledged with
	// it; nil if it came alone.
	Batch *wire.Batch

	frame int // bytes of the frame that it came in, which it keeps in memory
}

// Header returns a header of the payload, nil if there is none.
func (p *Payload) Header(key byte) []byte {
	for i := range p.Headers {
		if p.Headers[i].Key == key {
			return p.Headers[i].Value
		}
	}
	return nil
}

// cost is what the payload takes of memory, with everything around it.
func (p *Payload) cost() int { return max(p.frame, len(p.Data)) + entry }

// CircuitOf returns the circuit that a payload or acknowledgement belongs to,
// for who only passes it on.
func CircuitOf(p *wire.Packet) ([]byte, bool) {
	id, ok := p.Bytes(message.HeaderStreamCircuit)
	return id, ok && len(id) > 0 && len(id) <= maxCircuit
}

// fields are the headers that payloads and acknowledgements have.
type fields struct {
	circuit           string
	seq               uint64
	flags, held       uint32
	stamp             uint16
	hasSeq, hasHeld   bool
	damaged, repeated bool
	seen              uint8
}

// take reads one header if it is one of these.
func (f *fields) take(key int32, value []byte) {
	if key < message.HeaderStreamCircuit || key > message.HeaderStreamStamp {
		return
	}
	bit := uint8(1) << (key - message.HeaderStreamCircuit)
	f.repeated = f.repeated || f.seen&bit != 0
	f.seen |= bit
	size := 4
	switch key {
	case message.HeaderStreamCircuit:
		size = len(value)
		f.damaged = f.damaged || size == 0 || size > maxCircuit
	case message.HeaderStreamSeq:
		size = 8
	case message.HeaderStreamStamp:
		size = 2
	}
	if f.damaged = f.damaged || len(value) != size; f.damaged {
		return
	}
	switch key {
	case message.HeaderStreamCircuit:
		f.circuit = string(value)
	case message.HeaderStreamSeq:
		f.seq, f.hasSeq = binary.LittleEndian.Uint64(value), true
	case message.HeaderStreamFlags:
		f.flags = binary.LittleEndian.Uint32(value)
	case message.HeaderStreamHeld:
		f.held, f.hasHeld = binary.LittleEndian.Uint32(value), true
	case message.HeaderStreamStamp:
		f.stamp = binary.LittleEndian.Uint16(value)
	}
}

// check says what is wrong with the headers of what.
func (f *fields) check(what string) error {
	switch {
	case f.damaged:
		return fmt.Errorf("stream: a header of the %s has the wrong length", what)
	case f.repeated:
		return fmt.Errorf("stream: a header of the %s comes twice", what)
	case f.circuit == "":
		return fmt.Errorf("stream: the %s names no circuit", what)
	}
	return nil
}

// ParsePayload reads a payload. It copies nothing: the packet must not be
// changed any more, and its memory is the payload's.
func ParsePayload(p *wire.Packet) (*Payload, error) {
	var f fields
	var own [4]uint64
	out := &Payload{Data: p.Body, Memory: p.Memory, Batch: p.Batch, frame: len(p.Block) + len(p.Body)}
	p.Each(func(key int32, value []byte) {
		if key < message.HeaderPayload || key > message.HeaderPayloadLast {
			f.take(key, value)
			return
		}
		k := byte(key - message.HeaderPayload)
		bit := uint64(1) << (k % 64)
		f.repeated = f.repeated || own[k/64]&bit != 0
		own[k/64] |= bit
		out.Headers = append(out.Headers, Header{Key: k, Value: value})
	})
	if err := f.check("payload"); err != nil {
		return nil, err
	}
	if !f.hasSeq || f.seq > math.MaxInt32 {
		return nil, fmt.Errorf("stream: the payload has no sequence between 0 and %d", math.MaxInt32)
	}
	out.Circuit, out.Seq, out.Flags, out.Stamp = f.circuit, int32(f.seq), f.flags, f.stamp
	return out, nil
}

// Packet returns the payload as a frame, which has its memory. The circuit is its first header, so
// that who passes it on finds it at once.
func (p *Payload) Packet() *wire.Packet {
	size := 8 + len(p.Circuit) + 16 + 12 + 10
	for i := range p.Headers {
		size += 8 + len(p.Headers[i].Value)
	}
	b := wire.Block(make([]byte, 0, size)).
		Text(message.HeaderStreamCircuit, p.Circuit).
		Uint64(message.HeaderStreamSeq, uint64(p.Seq))
	if p.Flags != 0 {
		b = b.Uint32(message.HeaderStreamFlags, p.Flags)
	}
	b = b.Uint16(message.HeaderStreamStamp, p.Stamp)
	for i := range p.Headers {
		b = b.Bytes(message.HeaderPayload+int32(p.Headers[i].Key), p.Headers[i].Value)
	}
	return &wire.Packet{Type: message.TypePayload, Block: b, Body: p.Data, Memory: p.Memory}
}

// Ack says which payloads arrived, and how much its sender holds.
type Ack struct {
	Circuit string
	Flags   uint32
	Held    uint32 // bytes that wait to be taken from the stream
	Stamp   uint16 // of the payload that is acknowledged
	Seqs    []int32
	// Batch is what it may go together with; nil if it goes alone.
	Batch *wire.Batch

	one [1]int32 // what Seqs is most of the time
}

// ParseAck reads an acknowledgement.
func ParseAck(p *wire.Packet) (*Ack, error) {
	var f fields
	p.Each(f.take)
	if err := f.check("acknowledgement"); err != nil {
		return nil, err
	}
	n := len(p.Body) / 4
	if len(p.Body)%4 != 0 || n > maxSeqs {
		return nil, fmt.Errorf("stream: %d bytes are no sequences of at most %d payloads", len(p.Body), maxSeqs)
	}
	a := &Ack{Circuit: f.circuit, Flags: f.flags, Held: unsaid, Stamp: f.stamp}
	if f.hasHeld {
		a.Held = f.held
	}
	if n == 1 {
		a.Seqs = a.one[:]
	} else if n > 1 {
		a.Seqs = make([]int32, n)
	}
	for i := range a.Seqs {
		a.Seqs[i] = int32(binary.BigEndian.Uint32(p.Body[4*i:]))
	}
	return a, nil
}

// Packet returns the acknowledgement as a frame.
func (a *Ack) Packet() *wire.Packet {
	// The block and the body are one piece of memory.
	head := 8 + len(a.Circuit) + 12 + 12 + 10
	b := wire.Block(make([]byte, 0, head+4*len(a.Seqs))).Text(message.HeaderStreamCircuit, a.Circuit)
	if a.Flags != 0 {
		b = b.Uint32(message.HeaderStreamFlags, a.Flags)
	}
	b = b.Uint32(message.HeaderStreamHeld, a.Held).Uint16(message.HeaderStreamStamp, a.Stamp)
	all := []byte(b)
	for _, seq := range a.Seqs {
		all = binary.BigEndian.AppendUint32(all, uint32(seq))
	}
	n := len(b)
	return &wire.Packet{Type: message.TypeAck, Block: all[:n:n], Body: all[n:], Batch: a.Batch}
}
