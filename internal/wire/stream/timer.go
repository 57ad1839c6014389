package stream

import "time"

// arm makes the timer fire at a time, if it does not fire before. It is not
// stopped when there is nothing to wait for any more: to fire once for nothing
// costs less than to stop it for every acknowledgement.
func (e *End) arm(at, now time.Duration) {
	if e.timerAt != 0 && e.timerAt <= at {
		return
	}
	e.timerAt = max(at, now+time.Millisecond)
	if e.timer == nil {
		e.timer = time.AfterFunc(e.timerAt-now, e.fire)
		return
	}
	e.timer.Reset(e.timerAt - now)
}

func (e *End) fire() {
	var t todo
	e.mu.Lock()
	e.timerAt = 0
	if e.phase != over {
		now, stamp := e.now()
		e.expire(&t, now, stamp)
		if at, ok := e.wakeAt(now); ok {
			e.arm(at, now)
		}
	}
	e.mu.Unlock()
	e.do(&t)
}

// expire does what is due.
func (e *End) expire(t *todo, now time.Duration, stamp uint16) {
	switch {
	case e.phase == lingering:
		if now >= e.lingerBy {
			e.phase, t.over, t.reason = over, true, e.reason
		}
	case e.startBy > 0 && now >= e.startBy:
		e.fail(ErrNotStarted, t)
	case e.eof >= 0 && !e.sentAll && now >= e.closeBy:
		e.fail(ErrUnheard, t)
	case e.peerEnd && e.out.bytes > 0 && now >= e.heard+closeWait:
		e.fail(ErrUnheard, t)
	case e.incomplete(now):
		e.fail(ErrIncomplete, t)
	default:
		if at, ok := e.out.due(); ok && now >= at {
			t.send = e.out.round(now, stamp)
		}
	}
}

// incomplete reports whether the peer has ended for long and what is missing
// before its end does not come. While the reader has something to take it may
// be that there was no room.
func (e *End) incomplete(now time.Duration) bool {
	if e.ending < e.in.next || e.in.done || now < e.endingBy {
		return false
	}
	if e.in.next > e.reached || e.in.read < e.in.next {
		e.reached, e.endingBy = e.in.next, now+closeWait
		return false
	}
	return true
}

// wakeAt returns when something is due next; ok is false if nothing is.
func (e *End) wakeAt(now time.Duration) (at time.Duration, ok bool) {
	first := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	switch e.phase {
	case over:
		return 0, false
	case lingering:
		return e.lingerBy, true
	}
	if e.startBy > 0 {
		first(e.startBy)
	}
	if e.eof >= 0 && !e.sentAll {
		first(e.closeBy)
	}
	if e.ending >= e.in.next && !e.in.done {
		first(e.endingBy)
	}
	if due, flying := e.out.due(); flying {
		// Some of what is due may be left for later: not all is sent at once.
		first(max(due, now+leastWait))
	}
	return at, ok
}
