package stream

import (
	"context"
	"encoding/binary"
	"math"
	"sync"
	"time"
)

// How far an end has come.
type phase uint8

const (
	living    phase = iota
	lingering       // done; acknowledges what it is sent
	over
)

// capabilities is what an end can do: bit 8 says that it knows FlagEOF.
const knowsEOF uint32 = 1 << 8

var capabilities = []Header{{Key: KeyCapabilities, Value: binary.BigEndian.AppendUint32(nil, knowsEOF)}}

// End is one end of a stream. All methods may be called at any time and from
// any goroutine; none but Write blocks, unless functions of the Options do.
type End struct {
	o    Options
	born time.Time // times below are since then, so that no clock's leap matters

	mu      sync.Mutex
	timer   *time.Timer
	timerAt time.Duration // when it fires; 0 if it does not
	out     sender
	in      receiver
	waiters chan struct{} // closed when there is room; nil if nobody waits

	phase    phase
	started  bool // payloads may be sent
	closing  bool // CloseWrite was called
	refusing bool // CloseRead was called
	sentAll  bool // nothing more is to be sent, and what was is acknowledged
	refused  bool // the peer takes no more
	peerEOF  bool // the peer knows FlagEOF
	tried    bool // TryWrite had no room
	reason   error

	eof      int64         // the number of our end of writing; -1 before
	ending   int64         // the number of the peer's, if it arrived; -1 before
	reached  int64         // where the receiver was when that was looked at last
	heard    time.Duration // when the peer was heard last
	startBy  time.Duration
	closeBy  time.Duration
	endingBy time.Duration
	lingerBy time.Duration
	dropped  int64
}

// todo is what a method does after it has let go of the lock.
type todo struct {
	send       []*Payload
	ack        *Ack
	ready      bool
	room       bool
	done, over bool
	reason     error
}

// New makes an end. A terminator waits from now on for the initiator to start.
func New(o Options) *End {
	o = o.withDefaults()
	e := &End{o: o, born: o.Now(), eof: -1, ending: -1}
	e.out.window, e.out.most, e.out.factor = o.Window, o.Window, leastFactor
	e.in.room = o.Buffer
	if o.Terminator {
		e.mu.Lock()
		e.startBy = startWait
		e.arm(startWait, 0)
		e.mu.Unlock()
	}
	return e
}

func (e *End) now() (since time.Duration, stamp uint16) {
	t := e.o.Now()
	// 0 means that there is no stamp.
	return t.Sub(e.born), max(uint16(t.UnixMilli()), 1)
}

// do is called without the lock.
func (e *End) do(t *todo) {
	for _, p := range t.send {
		e.o.Send(p, false)
	}
	if t.ack != nil {
		e.o.Ack(t.ack)
	}
	if t.ready {
		e.o.Ready()
	}
	if t.room {
		e.o.Room()
	}
	if t.done {
		e.o.Done(t.reason)
	}
	if t.over {
		e.o.Over(t.reason)
	}
}

// Start lets the initiator begin. A terminator is started by the initiator.
func (e *End) Start() {
	var t todo
	e.mu.Lock()
	if !e.o.Terminator && !e.started && e.phase == living {
		e.started = true
		now, stamp := e.now()
		t.send = append(t.send, e.enqueue(FlagStart, capabilities, nil, now, stamp))
		e.open(&t, now, stamp)
	}
	e.mu.Unlock()
	e.do(&t)
}

// open does what had to wait for the start.
func (e *End) open(t *todo, now time.Duration, stamp uint16) {
	if e.refusing {
		t.send = append(t.send, e.enqueue(FlagRefuse, nil, nil, now, stamp))
	}
	if e.closing {
		t.send = append(t.send, e.sendEOF(now, stamp))
	}
	e.wake(t)
}

// enqueue gives a payload its number and keeps it until it is acknowledged.
func (e *End) enqueue(flags uint32, headers []Header, data []byte, now time.Duration, stamp uint16) *Payload {
	p := e.payload(flags, stamp)
	p.Headers, p.Data = headers, data
	e.out.add(p, now)
	e.arm(now+e.out.wait(), now)
	return p
}

func (e *End) payload(flags uint32, stamp uint16) *Payload {
	if e.o.Terminator {
		flags |= FlagTerminator
	}
	return &Payload{Circuit: e.o.Circuit, Seq: int32(e.out.next), Flags: flags, Stamp: stamp}
}

// Write sends a message. It waits while as much is in flight, or held by the
// other end, as may be, and until a terminator was started.
func (e *End) Write(ctx context.Context, m Message) error {
	for {
		e.mu.Lock()
		p, room, err := e.write(m)
		var waiters chan struct{}
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
			e.o.Send(p, true)
			return nil
		}
		select {
		case <-waiters:
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
	if room {
		e.o.Send(p, false)
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
	case e.phase != living || e.closing:
		return ErrClosed
	case e.refused:
		return ErrRefused
	case e.out.next > math.MaxInt32-8: // the last are for the end
		return ErrExhausted
	}
	return nil
}

func (e *End) write(m Message) (p *Payload, room bool, err error) {
	if err := e.writable(); err != nil {
		return nil, false, err
	}
	if !e.started || e.out.full() {
		return nil, false, nil
	}
	now, stamp := e.now()
	var headers []Header
	if m.Flags != 0 {
		headers = append(headers, Header{KeyDataFlags, binary.LittleEndian.AppendUint32(nil, m.Flags)})
	}
	if len(m.UUID) > 0 {
		headers = append(headers, Header{KeyUUID, m.UUID})
	}
	return e.enqueue(0, headers, m.Data, now, stamp), true, nil
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
	return e.enqueue(flag, nil, nil, now, stamp)
}

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
			t.send = append(t.send, e.enqueue(FlagRefuse, nil, nil, now, stamp))
		}
		e.finishIfBoth(&t, now)
	}
	e.mu.Unlock()
	e.do(&t)
}

// Next returns the next message, in order; ok is false if it has not arrived.
// The last one is the end.
func (e *End) Next() (m Message, ok bool) {
	var t todo
	e.mu.Lock()
	m, ok = e.take(&t)
	if e.phase == living && e.in.shrunk() {
		t.ack = e.ack(0)
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

// Payload takes a payload that arrived.
func (e *End) Payload(p *Payload) {
	// One of our own has gone in a circle.
	if own := p.Flags&FlagTerminator != 0 == e.o.Terminator; own || p.Seq < 0 {
		e.mu.Lock()
		e.dropped++
		e.mu.Unlock()
		return
	}
	var t todo
	e.mu.Lock()
	e.arrive(p, &t)
	e.mu.Unlock()
	e.do(&t)
}

func (e *End) arrive(p *Payload, t *todo) {
	if e.phase == over {
		return
	}
	now, stamp := e.now()
	e.heard = now
	if e.phase == lingering {
		t.ack = e.ack(p.Stamp, p.Seq)
		return
	}
	if c := p.Header(KeyCapabilities); len(c) >= 4 {
		e.peerEOF = binary.BigEndian.Uint32(c)&knowsEOF != 0
	}
	if p.Flags&FlagStart != 0 && !e.started && e.o.Terminator {
		e.started, e.startBy = true, 0
		if p.Header(KeyCapabilities) != nil {
			t.send = append(t.send, e.enqueue(0, capabilities, nil, now, stamp))
		}
		e.open(t, now, stamp)
	}
	before := e.in.next
	switch e.in.take(p) {
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
	if p.Flags&(FlagEnd|FlagEOF) != 0 && e.ending < 0 && int64(p.Seq) >= e.in.next {
		e.ending, e.reached, e.endingBy = int64(p.Seq), e.in.next, now+closeWait
		e.arm(e.endingBy, now)
	}
	if p.Flags&FlagRefuse != 0 && !e.refused {
		e.refused, e.sentAll = true, true
		e.out.keep(FlagRefuse)
		e.wake(t)
		e.finishIfBoth(t, now)
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

// Acked takes an acknowledgement that arrived.
func (e *End) Acked(a *Ack) {
	if a.Flags&FlagTerminator != 0 == e.o.Terminator {
		return
	}
	var t todo
	e.mu.Lock()
	if e.phase == living {
		e.acked(a, &t)
	}
	e.mu.Unlock()
	e.do(&t)
}

func (e *End) acked(a *Ack, t *todo) {
	now, stamp := e.now()
	e.heard = now
	again, silent := 0, e.out.silent
	for _, seq := range a.Seqs {
		fresh, resent := e.out.ack(int64(seq), a.Stamp, now)
		if resent {
			again += 2
		}
		if fresh && e.closing {
			e.closeBy = now + closeWait
		}
	}
	was := e.out.held
	e.out.held = int(min(a.Held, math.MaxInt32))
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

// finishIfBoth is called when one direction is over.
func (e *End) finishIfBoth(t *todo, now time.Duration) {
	if e.in.done && e.sentAll && e.phase == living {
		e.finish(nil, t, now)
	}
}

// finish leaves nothing to be done but to acknowledge.
func (e *End) finish(reason error, t *todo, now time.Duration) {
	e.phase, e.reason = lingering, reason
	e.out.forget()
	e.in.cut()
	e.wake(t)
	t.ready, t.done, t.reason = true, true, reason
	if !e.started { // nobody to whom an acknowledgement would matter
		e.phase, t.over = over, true
		return
	}
	e.lingerBy = now + linger
	e.arm(e.lingerBy, now)
}

// fail ends the stream, and says so once.
func (e *End) fail(reason error, t *todo) {
	if e.phase != living {
		return
	}
	now, stamp := e.now()
	if e.started {
		// It takes a number, and is not kept: whoever misses it is told by others.
		t.send = append(t.send, e.payload(FlagEnd, stamp))
		e.out.next++
	}
	e.finish(reason, t, now)
}

// Close ends the stream in both directions. The other end is told once, and
// what it sends is acknowledged for a while, so that it need not be sent again;
// then the end is over.
func (e *End) Close(reason error) {
	var t todo
	e.mu.Lock()
	e.fail(reason, &t)
	e.in.cutAll()
	e.mu.Unlock()
	e.do(&t)
}

// Abort ends the stream at once and tells nobody. What has arrived can still be
// taken.
func (e *End) Abort(reason error) {
	if reason == nil {
		reason = ErrAborted
	}
	var t todo
	e.mu.Lock()
	if e.phase == living {
		e.started = false
		now, _ := e.now()
		e.finish(reason, &t, now)
	} else if e.phase == lingering {
		e.phase, t.over, t.reason = over, true, e.reason
	}
	if t.over && e.timer != nil {
		e.timer.Stop()
	}
	e.mu.Unlock()
	e.do(&t)
}

// Stats returns what the end has done so far.
func (e *End) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, _ := e.now()
	return Stats{
		Sent: e.out.sentBytes, Received: e.in.gotBytes, Resent: e.out.resent, Dropped: e.dropped,
		InFlight: e.out.bytes, Held: e.in.held, RTT: e.out.rtt, Heard: now - e.heard,
	}
}
