package stream

import (
	"encoding/binary"
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
	early   []Message     // written before the start
	putOff  *Ack          // what is said when nothing more comes at once; nil if nothing is

	phase    phase
	started  bool // payloads may be sent
	closing  bool // CloseWrite was called
	refusing bool // CloseRead was called
	sentAll  bool // nothing more is to be sent, and what was is acknowledged
	refused  bool // the peer takes no more
	peerEOF  bool // the peer knows FlagEOF
	peerEnd  bool // the peer has sent FlagEnd, and may be gone
	tried    bool // TryWrite had no room
	poor     bool // the purse had nothing for what was to be written
	reason   error
	lossy    error // why the other end does not have everything though it ended well

	eof      int64         // the number of our end of writing; -1 before
	ending   int64         // the number of the peer's, if it arrived; -1 before
	reached  int64         // where the receiver was when that was looked at last
	heard    time.Duration // when the peer was heard last
	startBy  time.Duration
	closeBy  time.Duration
	endingBy time.Duration
	lingerBy time.Duration
	dropped  int64
	lent     int // bytes of the purse
	holds    int // bytes, as the pool knows
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
	e.in.room, e.in.share = o.Buffer, o.Buffer
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
		e.send(p, false)
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

// send hands a payload on. One that nobody has taken is sent again with a hold of
// its own.
func (e *End) send(p *Payload, wait bool) {
	if !e.o.Send(p, wait) {
		p.Memory.Release()
	}
}

// Start lets the initiator begin. A terminator is started by the initiator.
func (e *End) Start() {
	var t todo
	e.mu.Lock()
	if !e.o.Terminator && !e.started && e.phase == living {
		e.started = true
		now, stamp := e.now()
		t.send = append(t.send, e.enqueue(FlagStart, capabilities, Message{}, now, stamp))
		e.open(&t, now, stamp)
	}
	e.mu.Unlock()
	e.do(&t)
}

// open does what had to wait for the start.
func (e *End) open(t *todo, now time.Duration, stamp uint16) {
	for _, m := range e.early {
		t.send = append(t.send, e.enqueue(0, m.headers(), m, now, stamp))
	}
	e.early = nil
	if e.refusing {
		t.send = append(t.send, e.enqueue(FlagRefuse, nil, Message{}, now, stamp))
	}
	if e.closing {
		t.send = append(t.send, e.sendEOF(now, stamp))
	}
	e.wake(t)
}

// enqueue gives a payload its number and keeps it until it is acknowledged.
func (e *End) enqueue(flags uint32, headers []Header, m Message, now time.Duration, stamp uint16) *Payload {
	p := e.payload(flags, stamp)
	p.Headers, p.Data, p.Memory = headers, m.Data, m.Memory
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

// finishIfBoth is called when one direction is over.
func (e *End) finishIfBoth(t *todo, now time.Duration) {
	if e.in.done && e.sentAll && e.phase == living {
		e.finish(e.lossy, t, now)
	}
}

// finish leaves nothing to be done but to acknowledge.
func (e *End) finish(reason error, t *todo, now time.Duration) {
	e.phase, e.reason = lingering, reason
	e.early = nil
	e.out.forget()
	e.in.cut()
	e.settle()
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
		t.send = append(t.send, e.payload(FlagEnd|FlagRefuse, stamp))
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
	e.settle()
	e.mu.Unlock()
	e.do(&t)
}

// Abort ends the stream at once and tells nobody. What has arrived can still be
// taken. Without a reason it ends well if nothing but that was missing.
func (e *End) Abort(reason error) {
	var t todo
	e.mu.Lock()
	switch e.phase {
	case living:
		if all := e.sentAll && e.ending >= 0 && e.ending < e.in.next; all && reason == nil {
			reason = e.lossy
		} else if reason == nil {
			reason = ErrAborted
		}
		e.started = false
		now, _ := e.now()
		e.finish(reason, &t, now)
	case lingering:
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
