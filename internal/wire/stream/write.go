package stream

import (
	"context"
	"encoding/binary"
	"math"
	"time"
)

// Write sends a message, and has its memory unless it fails. It waits while as much is in flight, or held by the
// other end, as may be. A terminator keeps a little until it is started, and
// then waits for that.
func (e *End) Write(ctx context.Context, m Message) error {
	for {
		e.mu.Lock()
		p, room, err := e.write(m)
		var waiters chan struct{}
		var again <-chan time.Time
		if e.poor {
			again = time.After(poorWait) // others give back what it needs
		}
		if !room && err == nil {
			if e.waiters == nil {
				e.waiters = make(chan struct{})
			}
			waiters = e.waiters
		}
		e.mu.Unlock()
		if err != nil {
			return err
		}
		if room {
			// What is not sent is sent again later.
			if p != nil {
				e.send(p, true)
			}
			return nil
		}
		select {
		case <-waiters:
		case <-again:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// TryWrite sends a message unless Write would wait. Room is called when it would
// not any more. It is also false if nothing can be written any more.
func (e *End) TryWrite(m Message) bool {
	e.mu.Lock()
	p, room, err := e.write(m)
	e.tried = e.tried || !room && err == nil
	e.mu.Unlock()
	if p != nil {
		e.send(p, false)
	}
	return room
}

// Writable returns why nothing can be written any more, nil if it can be.
func (e *End) Writable() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.writable()
}

func (e *End) writable() error {
	switch {
	case e.phase != living && e.reason != nil:
		return e.reason
	case e.refused:
		return ErrRefused
	case e.phase != living || e.closing:
		return ErrClosed
	case e.out.next > math.MaxInt32-8: // the last are for the end
		return ErrExhausted
	}
	return nil
}

// write takes a message if there is room; p is nil if it is sent later.
func (e *End) write(m Message) (p *Payload, room bool, err error) {
	if err := e.writable(); err != nil {
		return nil, false, err
	}
	e.poor = false
	if e.started && e.out.full() {
		return nil, false, nil
	}
	if e.poor = !e.afford(0, len(m.Data)); e.poor {
		return nil, false, nil
	}
	defer e.settle()
	if !e.started {
		return nil, e.keepEarly(m), nil
	}
	now, stamp := e.now()
	return e.enqueue(0, m.headers(), m, now, stamp), true, nil
}

// keepEarly keeps a message until the start.
func (e *End) keepEarly(m Message) bool {
	bytes := 0
	for _, m := range e.early {
		bytes += len(m.Data) + entry
	}
	if bytes > min(earlyBytes, e.o.Window) || len(e.early) == earlyMessages {
		return false
	}
	e.early = append(e.early, m)
	return true
}

// headers are those of a payload that carries the message.
func (m *Message) headers() (list []Header) {
	if m.Flags != 0 {
		list = append(list, Header{KeyDataFlags, binary.LittleEndian.AppendUint32(nil, m.Flags)})
	}
	if len(m.UUID) > 0 {
		list = append(list, Header{KeyUUID, m.UUID})
	}
	return list
}

// wake lets go on who waits for room.
func (e *End) wake(t *todo) {
	if e.waiters != nil {
		close(e.waiters)
		e.waiters = nil
	}
	t.room, e.tried = t.room || e.tried, false
}

// CloseWrite says that no more is written. What was is sent again until it is
// acknowledged; if for closeWait nothing is, the end gives up. The other
// direction stays open.
func (e *End) CloseWrite() error {
	var t todo
	e.mu.Lock()
	var err error
	switch {
	case e.phase != living:
		err = e.writable()
	case !e.closing && !e.refused:
		e.closing = true
		if e.started {
			now, stamp := e.now()
			t.send = append(t.send, e.sendEOF(now, stamp))
		}
		e.wake(&t)
	}
	e.mu.Unlock()
	e.do(&t)
	return err
}

// sendEOF waits for no window: it is nothing but a number.
func (e *End) sendEOF(now time.Duration, stamp uint16) *Payload {
	flag := FlagEnd
	if e.peerEOF {
		flag = FlagEOF
	}
	e.eof, e.closeBy = e.out.next, now+closeWait
	return e.enqueue(flag, nil, Message{}, now, stamp)
}

// Acked takes an acknowledgement that arrived.
func (e *End) Acked(a *Ack) {
	if a.Flags&FlagTerminator != 0 == e.o.Terminator {
		return
	}
	var t todo
	e.mu.Lock()
	if e.phase == living {
		e.acked(a, &t)
		e.settle()
	}
	e.mu.Unlock()
	e.do(&t)
}

func (e *End) acked(a *Ack, t *todo) {
	now, stamp := e.now()
	e.heard = now
	again, silent := 0, e.out.silent
	recent := len(a.Seqs) == 0
	for _, seq := range a.Seqs {
		fresh, resent := e.out.ack(int64(seq), a.Stamp, now)
		if resent {
			again += 2
		}
		if fresh && e.closing {
			e.closeBy = now + closeWait
		}
		if recent = recent || resent || int64(seq) >= e.out.newest; fresh {
			e.out.newest = max(e.out.newest, int64(seq))
		}
	}
	was := e.out.held
	// An acknowledgement that was overtaken may tell of more room than there is.
	if held := int(min(a.Held, math.MaxInt32)); recent || held > was {
		e.out.held = held
	}
	if len(a.Seqs) == 0 && e.out.held > Buffer {
		e.out.crowded()
	}
	// What the peer had no room for comes again as soon as it has.
	if was > Buffer && e.out.held <= Buffer {
		e.out.cursor, e.out.silent, again = e.out.base, 0, burst
	}
	if silent > 0 && e.out.silent == 0 && e.out.bytes > 0 {
		e.arm(now+e.out.wait(), now)
	}
	if again > 0 {
		t.send = e.out.overdue(now, stamp, again)
	}
	if (e.waiters != nil || e.tried) && e.out.roomy() {
		e.wake(t)
	}
	// Everything before the end of writing was sent before it, so that nothing
	// in flight means that all has arrived.
	if e.eof >= 0 && e.out.base > e.eof && !e.sentAll {
		e.sentAll = true
		e.finishIfBoth(t, now)
	}
}
