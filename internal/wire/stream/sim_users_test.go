package stream

import (
	"bytes"
	"errors"
	"time"
)

// tooLong is how long a world may take. Everything in it that waits waits for
// minutes at most.
const tooLong = 30 * time.Minute

// run makes the ends and lets their users do as planned.
func (w *world) run() {
	w.began = time.Now()
	for i, s := range w.sides {
		if s.plan.naive {
			s.end = newNaive(s)
			continue
		}
		s.end = New(Options{
			Circuit: "c", Terminator: i == 1, Now: time.Now, Window: s.window, Buffer: s.buffer,
			Send: s.send, Ack: s.ack, Ready: s.ready, Room: s.room, Done: s.isDone, Over: s.isOver,
		})
	}
	w.locked(func() {
		w.after(w.upTo(time.Second), func() {
			w.sides[0].end.Start()
			w.locked(w.sides[0].pumpSoon)
		})
		for _, s := range w.sides {
			s.pumpSoon()
			if s.plan.breakAt > 0 {
				w.after(s.plan.breakAt, s.breakUp)
			}
		}
	})
	deadline := time.NewTimer(tooLong)
	defer deadline.Stop()
	select {
	case <-w.stopped:
	case <-deadline.C:
		w.locked(func() { w.fault("it never ends") })
	}
}

// room, ready, isDone and isOver are the functions of a side's Options.
func (s *side) room() { s.w.locked(s.pumpSoon) }

func (s *side) ready() {
	s.w.locked(func() {
		if s.readAgain = true; !s.reading && !s.paused {
			s.readSoon(0)
		}
	})
}

func (s *side) isDone(reason error) {
	s.w.locked(func() {
		s.w.note("%d is done: %v", s.name, reason)
		if s.done {
			s.w.fault("side %d is done twice", s.name)
		}
		s.done, s.doneErr = true, reason
		s.w.unroute()
	})
}

func (s *side) isOver(reason error) {
	s.w.locked(func() {
		s.w.note("%d is over: %v", s.name, reason)
		if s.over || !s.done || reason != s.doneErr {
			s.w.fault("side %d is over because of %v: over before %v, done before %v because of %v", s.name, reason, s.over, s.done, s.doneErr)
		}
		s.over = true
		s.stopIfFinished()
	})
}

// pumpSoon lets the user write on.
func (s *side) pumpSoon() {
	if !s.pumping {
		s.pumping = true
		s.w.after(s.plan.gap, s.pump)
	}
}

// pump writes one message.
func (s *side) pump() {
	s.w.locked(func() { s.pumping = false })
	if s.vanished {
		return
	}
	if s.sent < len(s.plan.sizes) {
		if !s.end.TryWrite(s.message(s.sent)) {
			return // room is told of, or nothing more can be written
		}
		s.sent++
		s.weigh()
		s.w.locked(s.pumpSoon)
		return
	}
	s.w.locked(func() {
		s.w.after(s.plan.closeWait, func() {
			s.w.locked(func() { s.w.note("%d closes for writing", s.name) })
			_ = s.end.CloseWrite()
		})
	})
}

func (s *side) readSoon(d time.Duration) {
	s.reading = true
	s.w.after(d+s.w.upTo(s.plan.readGap), s.read)
}

// read takes one message.
func (s *side) read() {
	if s.vanished {
		return
	}
	s.readAgain = false
	m, ok := s.end.Next()
	s.weigh()
	s.w.locked(func() {
		s.reading = false
		switch {
		case ok:
			s.look(m)
			m.Memory.Release()
		case s.readAgain: // something came meanwhile
		default:
			return
		}
		if s.plan.pauseAt == s.got && s.got > 0 && !s.paused && s.plan.pause > 0 {
			s.paused = true
			s.w.after(s.plan.pause, func() {
				s.w.locked(func() {
					s.paused, s.plan.pause = false, 0
					s.readSoon(0)
				})
			})
			return
		}
		s.readSoon(0)
	})
}

// look compares a message with what was written.
func (s *side) look(m Message) {
	w := s.w
	switch {
	case s.ended:
		w.fault("side %d got %+v after the end", s.name, m)
	case m.End:
		w.note("%d reads the end: %v", s.name, m.Err)
		s.ended, s.endErr, s.endAt = true, m.Err, time.Since(w.began)
		s.stopIfFinished()
	case s.deaf:
		w.fault("side %d got a message though it takes none", s.name)
	case s.got >= len(s.other.plan.sizes):
		w.fault("side %d got more than there is", s.name)
	default:
		want := s.other.content(s.got)
		if !bytes.Equal(m.Data, want.Data) || m.Flags != want.Flags || !bytes.Equal(m.UUID, want.UUID) {
			w.fault("side %d got as message %d %d bytes with flags %d, want %d bytes with flags %d",
				s.name, s.got, len(m.Data), m.Flags, len(want.Data), want.Flags)
		}
		s.got++
	}
}

// breakUp does what loses data.
func (s *side) breakUp() {
	s.w.locked(func() {
		s.w.note("%d breaks: %d", s.name, s.plan.breaks)
		switch s.plan.breaks {
		case byVanish:
			s.vanished, s.broke = true, true
			s.stopIfFinished()
			// Somebody notices that a router or a client is gone.
			s.w.after(10*time.Second+s.w.upTo(time.Minute), func() {
				s.other.end.Abort(nil)
				s.end.Abort(nil)
			})
		case byDeafness:
			s.deaf = true
		default:
			s.broke = true
		}
	})
	switch s.plan.breaks {
	case byClose:
		s.end.Close(errBroken)
	case byAbort:
		s.end.Abort(errBroken)
	case byDeafness:
		s.end.CloseRead()
		s.w.locked(s.stopIfFinished)
	}
}

// unroute is what a controller does once an end is done: the circuit is taken
// away when it is quiet.
func (w *world) unroute() {
	if w.unrouting {
		return
	}
	w.unrouting = true
	for _, s := range w.sides {
		var check func()
		check = func() {
			if s.over {
				return
			}
			if s.end.Stats().Heard >= 5*time.Second {
				w.locked(func() { w.note("%d is unrouted", s.name) })
				s.end.Abort(nil)
				return
			}
			w.locked(func() { w.after(5*time.Second, check) })
		}
		w.after(5*time.Second, check)
	}
}

// stopIfFinished ends the world when both ends are over and their users have
// seen it.
func (s *side) stopIfFinished() {
	for _, x := range s.w.sides {
		if !x.over || !x.ended && !x.deaf && !x.vanished {
			return
		}
	}
	s.w.stop()
}

// judge looks at how it ended.
func (w *world) judge() {
	for _, s := range w.sides {
		from := s.other
		all := s.ended && s.endErr == nil && s.got == len(from.plan.sizes) && from.sent == s.got
		switch {
		case all, s.deaf, s.vanished:
		case s.broke && s.ended && s.endErr != nil: // it threw away what had arrived
		case w.gentle:
			w.fault("side %d did not get everything: %d of %d, %v", s.name, s.got, len(from.plan.sizes), s.endErr)
		case s.endErr == nil && s.ended && !from.broke && from.doneErr == nil:
			w.fault("side %d got a part and believes that it is all", s.name)
		// Whoever wrote what did not arrive knows that something is wrong, unless
		// it caused that.
		case !from.broke && !from.vanished && from.doneErr == nil && !errors.Is(from.end.Writable(), ErrRefused):
			w.fault("side %d did not get everything, and side %d does not know", s.name, from.name)
		}
		if w.brisk > 0 && s.endAt > w.brisk {
			w.fault("side %d had everything only after %v, not within %v", s.name, s.endAt, w.brisk)
		}
		if w.clean && s.doneErr != nil && !s.plan.naive && !from.plan.naive {
			w.fault("side %d ended because of %v", s.name, s.doneErr)
		}
		if w.gentle && s.doneErr != nil && (s.other.doneErr != nil || !errors.Is(s.doneErr, ErrAborted) && !errors.Is(s.doneErr, ErrUnheard)) {
			w.fault("side %d ended because of %v, side %d because of %v", s.name, s.doneErr, s.other.name, s.other.doneErr)
		}
	}
}
