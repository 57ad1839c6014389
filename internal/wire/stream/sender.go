package stream

import (
	"time"

	"netkeep.internal/internal/wire"
)

// flight is a payload that was sent and is not acknowledged.
type flight struct {
	p      *Payload
	memory wire.Memory   // our own hold: p's is with whoever it was sent to
	sent   time.Duration // since the end was made
	tries  uint8
}

// sender is what an end has in flight, and how much that may be.
type sender struct {
	ring[flight]
	base, next int64 // the oldest in flight, and the one to be sent next
	bytes      int   // in flight, with what they cost
	window     int   // how many may be
	most       int   // how many the window may be
	held       int   // by the peer, as it said last
	newest     int64 // that is acknowledged

	rtt    time.Duration // 0 before one was measured
	factor int           // of rtt, in hundredths, gives how long to wait

	acked, ackedBytes int   // since the window grew
	lost              int   // sent again since the window shrank
	crowd             int64 // one more than was sent when the peer had no room; 0 if it always had
	twice             int   // acknowledged twice since the factor grew

	cursor int64         // up to where it was looked for what to send again
	rounds time.Duration // when that was begun last
	silent uint8         // times that it was since an acknowledgement

	sentBytes, resent int64
}

// How a window follows what happens, as everybody's does.
const (
	growAfter   = 28 // acknowledgements
	shrinkAfter = 64 // payloads sent again
	twiceAfter  = 64 // acknowledgements of what was acknowledged
	leastFactor = 150
	mostFactor  = 1000
)

// How many payloads are sent again at once: few while nothing is heard, since
// nobody may be there.
const (
	burst      = 32
	burstBlind = 4
)

// full reports whether the next payload has to wait. If nothing is in flight it
// never has: what it brings back tells what the peer holds now.
func (s *sender) full() bool {
	return s.bytes > 0 && (s.bytes > s.window || s.next-s.base >= span || s.bytes+s.held > Buffer)
}

// roomy reports whether who waits should go on: not for every payload that is
// acknowledged, if many are in flight.
func (s *sender) roomy() bool {
	return !s.full() && s.bytes <= s.window-s.window/4
}

func (s *sender) add(p *Payload, now time.Duration) {
	s.fit(s.base, s.next+1)
	*s.at(s.next) = flight{p: p, memory: p.Memory.More(), sent: now}
	s.next++
	s.bytes += p.cost()
	s.sentBytes += int64(len(p.Data))
}

// ack takes a payload out. fresh is false if it was not in flight; again says
// that it had been sent again.
func (s *sender) ack(seq int64, stamp uint16, now time.Duration) (fresh, again bool) {
	if seq < s.base || seq >= s.next || s.at(seq).p == nil {
		if s.twice++; s.twice >= twiceAfter {
			s.twice, s.factor = 0, min(s.factor+20, mostFactor)
		}
		return false, false
	}
	f := s.at(seq)
	// What was sent twice tells nothing, unless it is clear which one was heard.
	if again = f.tries > 0; !again || stamp == f.p.Stamp {
		s.measure(now - f.sent)
	}
	s.bytes -= f.p.cost()
	s.acked, s.ackedBytes = s.acked+1, s.ackedBytes+len(f.p.Data)
	f.memory.Release()
	*f = flight{}
	s.advance()
	if s.silent = 0; s.acked >= growAfter {
		grown := s.ackedBytes
		if s.crowd > 0 { // slowly: each time that it is too much costs payloads
			grown /= 4 * s.acked
		}
		s.window = min(s.window+grown, s.most)
		s.factor = max(s.factor-1, leastFactor)
		s.acked, s.ackedBytes = 0, 0
	}
	return true, again
}

// crowded is told that the peer had no room for a payload: it holds less than one
// expects. What else was in flight then does not count again.
func (s *sender) crowded() {
	if s.base < s.crowd {
		return
	}
	s.crowd = s.next
	s.window = max(min(s.window, s.bytes)/2, min(leastWindow, s.most))
	s.acked, s.ackedBytes = 0, 0
}

// measure takes how long an acknowledgement took. A single one does not change
// much.
func (s *sender) measure(took time.Duration) {
	took = max(took, time.Microsecond)
	if s.rtt == 0 {
		s.rtt = took
		return
	}
	s.rtt = (s.rtt + min(took, 4*max(s.rtt, time.Millisecond))) / 2
}

// wait is how long an acknowledgement may take.
func (s *sender) wait() time.Duration {
	w := firstWait
	if s.rtt > 0 {
		w = min(s.rtt*time.Duration(s.factor)/100+leastWait, mostWait)
	}
	return max(w, min(w<<min(s.silent, 8), mostSilence))
}

// due returns when something in flight is to be sent again; ok is false if
// nothing is in flight. Into silence it is not more often than one waits, however
// much is left.
func (s *sender) due() (at time.Duration, ok bool) {
	for n := s.base; n < s.next; n++ {
		if f := s.at(n); f.p != nil && (!ok || f.sent < at) {
			at, ok = f.sent, true
		}
	}
	if s.silent > 0 {
		at = max(at, s.rounds)
	}
	return at + s.wait(), ok
}

// round begins to send again what is due.
func (s *sender) round(now time.Duration, stamp uint16) []*Payload {
	most := burst
	switch {
	case s.held > Buffer: // it would be dropped
		most = 1
	case s.silent > 0:
		most = burstBlind
	}
	s.cursor, s.rounds = s.base, now
	again := s.overdue(now, stamp, most)
	if len(again) > 0 && s.silent < 255 {
		s.silent++
	}
	return again
}

// overdue returns up to most payloads to be sent again, in order, from where it
// left off.
func (s *sender) overdue(now time.Duration, stamp uint16, most int) (again []*Payload) {
	wait := s.wait()
	for s.cursor = max(s.cursor, s.base); s.cursor < s.next && len(again) < most; s.cursor++ {
		f := s.at(s.cursor)
		if f.p == nil || now-f.sent < wait {
			continue
		}
		p := *f.p // others may still have the one that was sent
		p.Flags, p.Stamp, p.Memory = p.Flags|FlagAgain, stamp, f.memory.More()
		f.p, f.sent, f.tries = &p, now, min(f.tries+1, 254)
		again = append(again, &p)
		if s.lost++; s.lost >= shrinkAfter {
			s.window = max(s.window-s.window/4, min(leastWindow, s.most))
			s.lost, s.acked, s.ackedBytes = 0, 0, 0
		}
	}
	s.resent += int64(len(again))
	return again
}

// keep drops what is in flight without a flag; lost says that there was data.
func (s *sender) keep(flag uint32) (lost bool) {
	for n := s.base; n < s.next; n++ {
		if f := s.at(n); f.p != nil && f.p.Flags&flag == 0 {
			lost = lost || len(f.p.Data) > 0 || len(f.p.Headers) > 0
			s.bytes -= f.p.cost()
			*f = flight{}
		}
	}
	s.advance()
	return lost
}

// advance moves base to the oldest that is in flight.
func (s *sender) advance() {
	for s.base < s.next && s.at(s.base).p == nil {
		s.base++
	}
	if s.base == s.next {
		s.idle()
	}
}

// forget drops what is in flight.
func (s *sender) forget() {
	s.slots, s.base, s.bytes = nil, s.next, 0
}
