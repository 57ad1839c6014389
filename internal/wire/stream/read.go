package stream

import (
	"encoding/binary"

	"netkeep.internal/internal/wire"
)

// CloseRead says that nothing more is taken: the other end is told to stop, and
// what still arrives is acknowledged and dropped.
func (e *End) CloseRead() {
	var t todo
	e.mu.Lock()
	if e.phase == living && !e.in.done {
		e.refusing = true
		e.in.finish()
		now, stamp := e.now()
		if e.started {
			t.send = append(t.send, e.enqueue(FlagRefuse, nil, Message{}, now, stamp))
		}
		e.finishIfBoth(&t, now)
	} else if !e.in.done {
		e.in.finish() // nobody takes it
	}
	e.settle()
	e.mu.Unlock()
	e.do(&t)
}

// Deaf reports whether nothing more is taken.
func (e *End) Deaf() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.in.done
}

// Next returns the next message, in order; ok is false if it has not arrived.
// The last one is the end.
func (e *End) Next() (m Message, ok bool) {
	var t todo
	e.mu.Lock()
	e.in.handed = 0
	m, ok = e.take(&t)
	e.in.handed = len(m.Data)
	e.settle()
	if e.phase == living && e.in.shrunk() {
		t.ack = e.ack(0)
		e.join(&t, nil)
	}
	e.mu.Unlock()
	e.do(&t)
	return m, ok
}

func (e *End) take(t *todo) (m Message, ok bool) {
	for {
		p := e.in.pop()
		if p == nil {
			break
		}
		if p.Flags&(FlagEnd|FlagEOF) != 0 {
			e.in.finish()
			now, _ := e.now()
			e.finishIfBoth(t, now)
			return Message{End: true}, true
		}
		m, ok, err := e.in.message(p)
		if err == nil && !ok && !e.afford(0, 0) {
			err = ErrPoor
		}
		if err != nil {
			e.fail(err, t)
			e.in.cutAll()
			break
		}
		if ok {
			return m, true
		}
	}
	if e.phase == living || e.in.done {
		return Message{}, false
	}
	e.in.finish()
	m = Message{End: true, Err: e.reason}
	if m.Err == nil {
		m.Err = ErrClosed
	}
	return m, true
}

// Payload takes a payload that arrived, with its memory.
func (e *End) Payload(p *Payload) {
	// One of our own has gone in a circle.
	if own := p.Flags&FlagTerminator != 0 == e.o.Terminator; own || p.Seq < 0 {
		e.mu.Lock()
		e.dropped++
		e.mu.Unlock()
		p.Memory.Release()
		return
	}
	var t todo
	e.mu.Lock()
	keeps := e.arrive(p, &t)
	e.join(&t, p.Batch)
	e.mu.Unlock()
	if !keeps {
		p.Memory.Release()
	}
	e.do(&t)
}

// arrive reports whether the payload is kept until it is taken.
func (e *End) arrive(p *Payload, t *todo) bool {
	if e.phase == over {
		return false
	}
	now, stamp := e.now()
	e.heard = now
	if e.phase == lingering {
		t.ack = e.ack(p.Stamp, p.Seq)
		return false
	}
	if c := p.Header(KeyCapabilities); len(c) >= 4 {
		e.peerEOF = binary.BigEndian.Uint32(c)&knowsEOF != 0
	}
	if p.Flags&FlagStart != 0 && !e.started && e.o.Terminator {
		e.started, e.startBy = true, 0
		if p.Header(KeyCapabilities) != nil {
			t.send = append(t.send, e.enqueue(0, capabilities, Message{}, now, stamp))
		}
		e.open(t, now, stamp)
	}
	before, what := e.in.next, refused
	if int64(p.Seq) < before || e.afford(p.cost(), 0) {
		what = e.in.take(p)
		e.settle()
	}
	switch what {
	case kept:
		t.ack = e.ack(p.Stamp, p.Seq)
		t.ready = e.in.next > before
	case known:
		t.ack = e.ack(p.Stamp, p.Seq)
	case refused:
		// No sequence: it must come again. But who sends learns why it is not
		// acknowledged.
		e.dropped++
		t.ack = e.ack(0)
	}
	e.peerEnd = e.peerEnd || p.Flags&FlagEnd != 0
	if p.Flags&(FlagEnd|FlagEOF) != 0 && e.ending < 0 {
		e.ending = int64(p.Seq)
		if e.ending >= e.in.next { // something before it is missing
			e.reached, e.endingBy = e.in.next, now+closeWait
			e.arm(e.endingBy, now)
		}
	}
	if p.Flags&FlagRefuse != 0 && !e.refused {
		e.refused, e.sentAll = true, true
		if e.out.keep(FlagRefuse) {
			e.lossy = ErrRefused
		}
		e.wake(t)
		e.finishIfBoth(t, now)
	}
	return what == kept
}

// join has an acknowledgement wait for those of payloads that came together with its
// own: the peer gets one for all. What is said of what is held goes with one that
// waits, so that it does not overtake it.
func (e *End) join(t *todo, batch *wire.Batch) {
	of := e.putOff
	switch {
	case t.ack == nil || of == nil && batch == nil:
		return
	case of == nil && !batch.Put(e):
		return
	case of == nil:
		e.putOff = t.ack
		e.putOff.Batch = batch
	case len(of.Seqs)+len(t.ack.Seqs) > maxSeqs:
		return
	default:
		of.Seqs = append(of.Seqs, t.ack.Seqs...)
		of.Held = t.ack.Held
		if t.ack.Stamp != 0 {
			of.Stamp = t.ack.Stamp
		}
	}
	t.ack = nil
}

// Flush acknowledges what has come together. It implements wire.Later.
func (e *End) Flush() {
	e.mu.Lock()
	ack := e.putOff
	e.putOff = nil
	e.mu.Unlock()
	if ack != nil {
		e.o.Ack(ack)
	}
}

// ack says what has arrived and what is held.
func (e *End) ack(stamp uint16, seqs ...int32) *Ack {
	a := &Ack{Circuit: e.o.Circuit, Held: e.in.say(), Stamp: stamp}
	if e.o.Terminator {
		a.Flags = FlagTerminator
	}
	if len(seqs) > 0 {
		a.one[0] = seqs[0]
		a.Seqs = a.one[:]
	}
	return a
}
