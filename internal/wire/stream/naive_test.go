package stream

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"
)

// naive is an end as somebody else might have made it: it knows few rules, is
// wasteful, sends long messages in parts if told so, and knows no FlagEOF unless
// told so.
type naive struct {
	s  *side
	mu sync.Mutex

	started  bool
	out      map[int32]*Payload // not acknowledged
	sent     int32
	in       map[int32]*Payload
	next     int32
	queue    []Message
	waiting  bool // the user waits for room
	closed   bool
	heardEnd bool
	tookEnd  bool
	over     bool
	reason   error
	heard    time.Time
	acked    time.Time
}

func newNaive(s *side) *naive {
	return &naive{s: s, out: map[int32]*Payload{}, in: map[int32]*Payload{}, heard: time.Now(), acked: time.Now()}
}

func (n *naive) flag() uint32 {
	if n.s.name == 1 {
		return FlagTerminator
	}
	return 0
}

func (n *naive) headers() []Header {
	if !n.s.plan.caps {
		return nil
	}
	return []Header{{KeyCapabilities, []byte{0, 0, 1, 0}}}
}

// put keeps a payload and sends it, and looks after it every 100 ms.
func (n *naive) put(flags uint32, headers []Header, data []byte) func() {
	p := &Payload{Circuit: "c", Seq: n.sent, Flags: flags | n.flag(), Stamp: 1, Headers: headers, Data: data}
	n.out[n.sent] = p
	n.sent++
	if len(n.out) == 1 {
		n.acked = time.Now()
	}
	var again func()
	again = func() {
		n.mu.Lock()
		_, missing := n.out[p.Seq]
		missing = missing && !n.over
		tired := n.closed && time.Since(n.acked) > time.Minute
		n.mu.Unlock()
		switch {
		case tired:
			n.Abort(ErrUnheard)
		case missing:
			more := *p
			more.Flags |= FlagAgain
			n.s.send(&more, false)
			n.s.w.locked(func() { n.s.w.after(300*time.Millisecond, again) })
		}
	}
	return func() {
		n.s.send(p, false)
		n.s.w.locked(func() { n.s.w.after(300*time.Millisecond, again) })
	}
}

func (n *naive) Start() {
	n.mu.Lock()
	n.started = true
	send := n.put(FlagStart, n.headers(), nil)
	n.mu.Unlock()
	send()
}

func (n *naive) TryWrite(m Message) bool {
	n.mu.Lock()
	if n.waiting = !n.started || len(n.out) > 20; n.waiting || n.over {
		n.mu.Unlock()
		return false
	}
	var headers []Header
	if m.Flags != 0 {
		headers = append(headers, Header{KeyDataFlags, binary.LittleEndian.AppendUint32(nil, m.Flags)})
	}
	if m.UUID != nil {
		headers = append(headers, Header{KeyUUID, m.UUID})
	}
	var sends []func()
	if mtu := n.s.plan.mtu; mtu > 0 && len(m.Data) > mtu {
		rest := append(binary.AppendUvarint(nil, uint64(len(m.Data))), m.Data...)
		for len(rest) > 0 {
			cut := min(mtu, len(rest))
			sends = append(sends, n.put(FlagChunk, headers, rest[:cut:cut]))
			rest, headers = rest[cut:], nil
		}
	} else {
		sends = append(sends, n.put(0, headers, m.Data))
	}
	n.mu.Unlock()
	for _, send := range sends {
		send()
	}
	return true
}

func (n *naive) Writable() error { return nil }

func (n *naive) CloseWrite() error {
	n.mu.Lock()
	if n.over || !n.started {
		n.mu.Unlock()
		return errors.New("too late")
	}
	n.closed, n.acked = true, time.Now()
	flag := FlagEnd
	if n.s.plan.caps {
		flag = FlagEOF
	}
	send := n.put(flag, nil, nil)
	n.mu.Unlock()
	send()
	return nil
}

func (n *naive) CloseRead()  { panic("not planned") }
func (n *naive) Close(error) { panic("not planned") }

func (n *naive) Abort(reason error) {
	if reason == nil {
		reason = ErrAborted
	}
	n.finish(reason)
}

func (n *naive) finish(reason error) {
	n.mu.Lock()
	was := n.over
	n.over, n.reason = true, reason
	n.mu.Unlock()
	if !was {
		n.s.isDone(reason)
		n.s.isOver(reason)
		n.s.ready()
	}
}

func (n *naive) Next() (Message, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) > 0 {
		m := n.queue[0]
		n.queue = n.queue[1:]
		return m, true
	}
	if n.tookEnd || !n.heardEnd && !n.over {
		return Message{}, false
	}
	n.tookEnd = true
	if n.heardEnd {
		return Message{End: true}, true
	}
	return Message{End: true, Err: n.reason}, true
}

func (n *naive) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Stats{Heard: time.Since(n.heard)}
}

func (n *naive) Payload(p *Payload) {
	n.mu.Lock()
	if n.over || p.Flags&FlagTerminator == n.flag() {
		n.mu.Unlock()
		return
	}
	n.heard = time.Now()
	var sends []func()
	if p.Flags&FlagStart != 0 && !n.started {
		n.started = true
		if n.s.plan.caps {
			sends = append(sends, n.put(0, n.headers(), nil))
		}
		sends = append(sends, n.s.room)
	}
	if p.Seq >= n.next {
		n.in[p.Seq] = p
	}
	for n.in[n.next] != nil {
		n.deliver(n.in[n.next])
		delete(n.in, n.next)
		n.next++
	}
	held := 0
	for _, m := range n.queue {
		held += len(m.Data)
	}
	n.mu.Unlock()
	for _, send := range sends {
		send()
	}
	n.s.ack(&Ack{Circuit: "c", Flags: n.flag(), Held: uint32(held), Stamp: p.Stamp, Seqs: []int32{p.Seq}})
	n.s.ready()
	n.overIfBoth()
}

func (n *naive) deliver(p *Payload) {
	m := Message{Data: p.Data, UUID: p.Header(KeyUUID)}
	if f := p.Header(KeyDataFlags); f != nil {
		m.Flags = binary.LittleEndian.Uint32(f)
	}
	switch {
	case n.heardEnd, p.Flags&(FlagStart|FlagRefuse) != 0, p.Header(KeyCapabilities) != nil:
	case p.Flags&FlagEOF != 0 && !n.s.plan.caps:
		n.s.w.locked(func() { n.s.w.fault("an end that knows no EOF was sent one") })
	case p.Flags&(FlagEnd|FlagEOF) != 0:
		n.heardEnd = true
	default:
		n.queue = append(n.queue, m)
	}
}

func (n *naive) Acked(a *Ack) {
	if a.Flags&FlagTerminator == n.flag() {
		return
	}
	n.mu.Lock()
	n.heard = time.Now()
	for _, seq := range a.Seqs {
		if n.out[seq] != nil {
			delete(n.out, seq)
			n.acked = time.Now()
		}
	}
	room := n.waiting && n.started && len(n.out) < 10
	n.mu.Unlock()
	if room {
		n.s.room()
	}
	n.overIfBoth()
}

// overIfBoth is over soon after both directions are.
func (n *naive) overIfBoth() {
	n.mu.Lock()
	both := n.closed && n.heardEnd && len(n.out) == 0
	n.mu.Unlock()
	if both {
		n.s.w.locked(func() { n.s.w.after(5*time.Second, func() { n.finish(nil) }) })
	}
}
