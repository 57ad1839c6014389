package stream

import (
	"encoding/binary"
	"math"
)

// receiver is what has arrived at an end and was not taken by its reader.
type receiver struct {
	ring[*Payload]
	read int64 // the one that the reader takes next
	next int64 // the first that has not arrived
	top  int64 // one more than the highest that has arrived
	held int   // bytes, with what they cost
	// handed is how long the message is that the reader got last: it has it until
	// it asks for another.
	handed int
	room   int // how many held may be
	share  int // how many it is said to be, of what many have together
	said   uint32
	done   bool // nothing more is handed out; what arrives is acknowledged

	parts *parts

	gotBytes int64
}

// What becomes of a payload that arrives.
type verdict uint8

const (
	kept verdict = iota
	known
	refused
)

// take keeps a payload, if it is new and there is room.
func (r *receiver) take(p *Payload) verdict {
	seq := int64(p.Seq)
	switch {
	case r.done || seq < r.next:
		return known
	case seq >= r.next+span:
		return refused
	case seq < r.top && *r.at(seq) != nil:
		return known
	// An end is nothing but a number, and may not come again.
	case r.held > r.room && seq >= r.top && p.Flags&(FlagEnd|FlagEOF) == 0:
		return refused
	// Who keeps to the rules has no more than a window in flight and never gets
	// here. What the reader waits for is taken even so, or nothing would move.
	case r.held+p.cost() > r.room+Window && (seq > r.next || r.read < r.next):
		return refused
	}
	r.top = max(r.top, seq+1)
	r.fit(r.read, r.top)
	*r.at(seq) = p
	r.held += p.cost()
	for r.next < r.top && *r.at(r.next) != nil {
		r.next++
	}
	return kept
}

// pop returns the payload that is next, nil if it has not arrived.
func (r *receiver) pop() *Payload {
	if r.read == r.next {
		return nil
	}
	slot := r.at(r.read)
	p := *slot
	*slot = nil
	r.read++
	r.held -= p.cost()
	if r.read == r.top {
		r.idle()
	}
	return p
}

// finish hands nothing more out, and gives memory back.
func (r *receiver) finish() {
	r.done, r.slots, r.held, r.parts = true, nil, 0, nil
	r.read, r.top = r.next, r.next
}

// cut forgets what cannot be handed out any more: what is beyond a gap.
func (r *receiver) cut() {
	for ; r.top > r.next; r.top-- {
		if slot := r.at(r.top - 1); *slot != nil {
			r.held -= (*slot).cost()
			*slot = nil
		}
	}
}

// say returns what the peer is to be told about what is held. Peers stop at the
// Buffer that they expect, whatever the one here is.
func (r *receiver) say() uint32 {
	r.said = uint32(min(int64(r.held)*Buffer/int64(r.share), math.MaxUint32-1))
	return r.said
}

// shrunk reports whether the peer should know that there is room again.
func (r *receiver) shrunk() bool {
	return r.said > emptied && int64(r.held)*Buffer/int64(r.share) < int64(r.said/2)
}

// parts are what has arrived of a message that comes in several.
type parts struct {
	flags uint32
	uuid  []byte
	total int
	data  []byte
}

// message returns what a payload means to the reader; ok is false if it means
// nothing, or not yet.
func (r *receiver) message(p *Payload) (m Message, ok bool, err error) {
	if p.Flags&FlagChunk != 0 && (len(p.Data) > 0 || r.parts != nil) {
		return r.part(p)
	}
	m = Message{Data: p.Data, UUID: p.Header(KeyUUID), Memory: p.Memory}
	flags := p.Header(KeyDataFlags)
	if len(flags) == 4 {
		m.Flags = binary.LittleEndian.Uint32(flags)
	}
	own := p.Flags&(FlagStart|FlagRefuse) != 0 || p.Header(KeyCapabilities) != nil
	if own && len(p.Data) == 0 && flags == nil && m.UUID == nil {
		return Message{}, false, nil
	}
	r.gotBytes += int64(len(m.Data))
	return m, true, nil
}

// part adds a part of a message. The first begins with the length of all.
func (r *receiver) part(p *Payload) (m Message, ok bool, err error) {
	data := p.Data
	if r.parts == nil {
		total, n := binary.Uvarint(data)
		if n <= 0 || total > maxMessage {
			return Message{}, false, ErrParts
		}
		data = data[n:]
		r.parts = &parts{total: int(total), uuid: p.Header(KeyUUID)}
		if flags := p.Header(KeyDataFlags); len(flags) == 4 {
			r.parts.flags = binary.LittleEndian.Uint32(flags)
		}
	}
	all := r.parts
	if len(data) > all.total-len(all.data) {
		return Message{}, false, ErrParts
	}
	switch {
	case len(data) == all.total:
		all.data = data // one part that is everything
	case cap(all.data)-len(all.data) < len(data):
		// Memory is set aside for what has come, not for what was announced.
		grown := make([]byte, len(all.data), min(all.total, 2*(len(all.data)+len(data))))
		copy(grown, all.data)
		all.data = grown
		fallthrough
	default:
		all.data = append(all.data, data...)
	}
	if len(all.data) < all.total {
		return Message{}, false, nil
	}
	r.parts = nil
	r.gotBytes += int64(len(all.data))
	return Message{Data: all.data, Flags: all.flags, UUID: all.uuid}, true, nil
}

// cutAll forgets everything that was not taken.
func (r *receiver) cutAll() {
	r.slots, r.held, r.parts = nil, 0, nil
	r.read, r.top = r.next, r.next
}
