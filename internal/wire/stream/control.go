package stream

import (
	"encoding/binary"
	"fmt"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// What a control message is about.
const (
	TraceRequest  byte = 1
	TraceResponse byte = 2
)

// Control asks for, or tells, the way that a circuit takes.
type Control struct {
	Type    byte
	Circuit string
	Hops    uint32 // how many it may still pass
	HopType string
	HopID   string
	Time    uint64 // of who asked, returned as it is
	User    uint32 // likewise
	Error   string
}

// Answer turns a question into the answer of somebody on the way.
func (c *Control) Answer(hopType, hopID string) {
	c.Type, c.HopType, c.HopID = TraceResponse, hopType, hopID
}

// maxTraceText bounds the texts of a control message: they are for people.
const maxTraceText = 1024

// ParseControl reads a control message. Headers that it does not know are left
// out.
func ParseControl(p *wire.Packet) (*Control, error) {
	if len(p.Body) < 2 || len(p.Body) > 1+maxCircuit {
		return nil, fmt.Errorf("stream: %d bytes are no control message", len(p.Body))
	}
	c := &Control{Type: p.Body[0], Circuit: string(p.Body[1:])}
	ok := true
	p.Each(func(key int32, value []byte) {
		size, text := len(value), len(value) <= maxTraceText
		switch key {
		case message.HeaderControlHops, message.HeaderControlUser:
			ok = ok && size == 4
		case message.HeaderControlTime:
			ok = ok && size == 8
		case message.HeaderControlHopType, message.HeaderControlHopID, message.HeaderControlError:
			ok = ok && text
		}
		if ok {
			c.take(key, value)
		}
	})
	if !ok {
		return nil, fmt.Errorf("stream: a header of the control message has the wrong length")
	}
	return c, nil
}

func (c *Control) take(key int32, value []byte) {
	switch key {
	case message.HeaderControlHops:
		c.Hops = binary.LittleEndian.Uint32(value)
	case message.HeaderControlHopType:
		c.HopType = string(value)
	case message.HeaderControlHopID:
		c.HopID = string(value)
	case message.HeaderControlTime:
		c.Time = binary.LittleEndian.Uint64(value)
	case message.HeaderControlUser:
		c.User = binary.LittleEndian.Uint32(value)
	case message.HeaderControlError:
		c.Error = string(value)
	}
}

// Packet returns the message as a frame. Texts that are empty are left out.
func (c *Control) Packet() *wire.Packet {
	b := wire.Block(nil).Uint32(message.HeaderControlHops, c.Hops)
	if c.HopType != "" {
		b = b.Text(message.HeaderControlHopType, c.HopType)
	}
	if c.HopID != "" {
		b = b.Text(message.HeaderControlHopID, c.HopID)
	}
	b = b.Uint64(message.HeaderControlTime, c.Time).Uint32(message.HeaderControlUser, c.User)
	if c.Error != "" {
		b = b.Text(message.HeaderControlError, c.Error)
	}
	return &wire.Packet{Type: message.TypeStreamControl, Block: b, Body: append([]byte{c.Type}, c.Circuit...)}
}
