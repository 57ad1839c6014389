package stream

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// bounded checks that an end keeps to its bounds, and that what it says about
// itself is true.
func bounded(t *testing.T, e *End, largest int) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	held, n := 0, 0
	for _, p := range e.in.slots {
		if p != nil {
			held += p.cost()
			n++
		}
	}
	if held != e.in.held || held > e.o.Buffer+Window+largest {
		t.Errorf("holds %d, says %d, may hold %d", held, e.in.held, e.o.Buffer+Window+largest)
	}
	if most := (e.o.Buffer + Window + largest) / entry; n > most || len(e.in.slots) > 4*most {
		t.Errorf("%d payloads in %d slots", n, len(e.in.slots))
	}
	flying := 0
	for _, f := range e.out.slots {
		if f.p != nil {
			flying += f.p.cost()
		}
	}
	if flying != e.out.bytes || flying > e.o.Window+largest || len(e.out.slots) > 2*span {
		t.Errorf("%d in flight in %d slots, says %d, may be %d", flying, len(e.out.slots), e.out.bytes, e.o.Window+largest)
	}
}

// TestHostilePeers: whatever somebody sends, an end holds no more than it may,
// and what is right is still taken.
func TestHostilePeers(t *testing.T) {
	large := strings.Repeat("x", 64<<10)
	for name, attack := range map[string]func(l *lone){
		"very many of nothing": func(l *lone) {
			for seq := range int32(10 * span) {
				l.hear(seq, 0, "")
			}
		},
		"everything but the first": func(l *lone) {
			for seq := range int32(10 * span) {
				l.hear(seq+1, 0, "")
			}
		},
		"a high number and all below it": func(l *lone) {
			l.hear(span-1, 0, "")
			for seq := int32(span - 2); seq > 0; seq-- {
				l.hear(seq, 0, large)
			}
		},
		"numbers from everywhere": func(l *lone) {
			for seq := int32(1); seq > 0; seq *= 3 {
				l.hear(seq, 0, large)
				l.hear(-seq, 0, large)
			}
		},
		"ends without end": func(l *lone) {
			for seq := range int32(2 * span) {
				l.hear(seq+1, FlagEnd|FlagEOF, large)
			}
		},
		"acknowledgements of nothing": func(l *lone) {
			for seq := range int32(2 * span) {
				l.say(-1, seq, -seq, seq<<8)
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := started(Options{})
			attack(l)
			bounded(t, l.End, len(large)+entry)
			for seq, word := range []string{"zero", "one", "two"} {
				l.hear(int32(seq), 0, word)
			}
			m, ok := l.Next()
			if !ok || m.End {
				t.Errorf("%s: what was waited for is %+v, %v", name, m, ok)
			}
			for ok {
				_, ok = l.Next()
			}
			bounded(t, l.End, len(large)+entry)
			l.Abort(nil)
		})
	}
}

// TestSmallBuffer: who may hold less says so in the other's terms, so that it
// stops in time.
func TestSmallBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(Options{Buffer: 100 << 10})
		seq := int32(0)
		for l.in.held <= 100<<10 {
			l.hear(seq, 0, strings.Repeat("x", 10_000))
			seq++
		}
		if last := l.acks[len(l.acks)-1]; last.Held <= Buffer {
			t.Errorf("a full end says that it holds %d", last.Held)
		}
		l.hear(seq, 0, "no room")
		last := l.acks[len(l.acks)-1]
		if len(last.Seqs) != 0 || last.Held <= Buffer || last.Stamp != 0 {
			t.Errorf("what there was no room for is answered with %+v", last)
		}
		// The end has room always.
		l.hear(seq, FlagEOF, "")
		l.acks = nil
		for range seq / 2 {
			l.Next()
		}
		if len(l.acks) != 0 {
			t.Errorf("told too early: %+v", l.acks[0])
		}
		for range seq - seq/2 {
			l.Next()
		}
		if len(l.acks) == 0 || len(l.acks) > 4 || len(l.acks[0].Seqs) != 0 || l.acks[0].Held > Buffer/2 {
			t.Errorf("told of room by %+v", l.acks)
		}
		wantEnd(t, l.End, nil)
		l.Abort(nil)
	})
}

// TestParts: a message in parts is put together, and what does not make one ends
// the stream.
func TestParts(t *testing.T) {
	total := func(n uint64, rest string) string { return string(binary.AppendUvarint(nil, n)) + rest }
	for name, c := range map[string]struct {
		parts []string
		want  string
		err   error
	}{
		"two parts":        {[]string{total(6, "abc"), "def"}, "abcdef", nil},
		"one part":         {[]string{total(3, "abc")}, "abc", nil},
		"many parts":       {[]string{total(5, "a"), "b", "c", "", "de"}, "abcde", nil},
		"nothing":          {[]string{total(0, "")}, "", nil},
		"a length alone":   {[]string{total(2, ""), "ab"}, "ab", nil},
		"no part at all":   {[]string{""}, "", nil},
		"too long":         {[]string{total(maxMessage+1, "a")}, "", ErrParts},
		"more than said":   {[]string{total(2, "a"), "bc"}, "", ErrParts},
		"more at once":     {[]string{total(2, "abc")}, "", ErrParts},
		"a length of 2^64": {[]string{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"}, "", ErrParts},
		"half a length":    {[]string{"\xff"}, "", ErrParts},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := started(Options{})
			for seq, part := range c.parts {
				headers := []Header{{KeyDataFlags, []byte{4, 0, 0, 0}}, {KeyUUID, []byte("id")}}
				if seq > 0 {
					headers = nil
				}
				l.hear(int32(seq), FlagChunk, part, headers...)
			}
			m, ok := l.Next()
			switch {
			case c.err != nil:
				if !ok || !m.End || !errors.Is(m.Err, c.err) || len(l.done) != 1 {
					t.Errorf("%s: %+v, %v", name, m, ok)
				}
			case !ok || string(m.Data) != c.want || m.Flags != 4 || string(m.UUID) != "id":
				t.Errorf("%s: %+v, %v", name, m, ok)
			}
			l.Abort(nil)
		})
	}
}

// TestAnnouncedParts: a length that is announced costs nothing.
func TestAnnouncedParts(t *testing.T) {
	var before, after runtime.MemStats
	ends := make([]*lone, 100)
	runtime.ReadMemStats(&before)
	for i := range ends {
		ends[i] = newLone(Options{})
		ends[i].Start()
		ends[i].hear(0, FlagChunk, string(binary.AppendUvarint(nil, maxMessage))+"a")
		wantNothing(t, ends[i].End)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > maxMessage {
		t.Errorf("%d ends took %d bytes", len(ends), took)
	}
	for _, e := range ends {
		e.Abort(nil)
	}
}

// TestManyGoroutines is for the race detector: everything at once.
func TestManyGoroutines(t *testing.T) {
	var a, b *End
	toA, toB := make(chan any, 64), make(chan any, 64)
	put := func(to chan any) func(any) bool {
		return func(x any) bool {
			select {
			case to <- x:
				return true
			default:
				return false
			}
		}
	}
	options := func(to chan any, ready chan struct{}, over chan error, terminator bool) Options {
		send := put(to)
		return Options{
			Circuit: "c", Terminator: terminator, Now: time.Now, Window: 64 << 10, Buffer: 64 << 10,
			Send: func(p *Payload, wait bool) bool {
				if wait {
					to <- p
					return true
				}
				return send(p)
			},
			Ack: func(x *Ack) { send(x) },
			Ready: func() {
				select {
				case ready <- struct{}{}:
				default:
				}
			},
			Over: func(err error) { over <- err },
		}
	}
	overs := [2]chan error{make(chan error, 1), make(chan error, 1)}
	readies := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	a = New(options(toB, readies[0], overs[0], false))
	b = New(options(toA, readies[1], overs[1], true))
	quit := make(chan struct{})
	defer close(quit)
	carry := func(from chan any, e *End) {
		for {
			select {
			case x := <-from:
				switch x := x.(type) {
				case *Payload:
					e.Payload(x)
				case *Ack:
					e.Acked(x)
				}
			case <-quit:
				return
			}
		}
	}
	go carry(toA, a)
	go carry(toB, b)
	a.Start()

	const writers, each = 4, 200
	for _, e := range []*End{a, b} {
		wrote := make(chan error, writers)
		for range writers {
			go func() {
				var err error
				for range each {
					err = errors.Join(err, e.Write(t.Context(), Message{Data: make([]byte, 1000)}))
				}
				wrote <- err
			}()
		}
		go func() {
			for range writers {
				if err := <-wrote; err != nil {
					t.Errorf("write: %v", err)
				}
			}
			if err := e.CloseWrite(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
	}
	for i, e := range []*End{a, b} {
		n := 0
		for {
			m, ok := e.Next()
			if !ok {
				<-readies[i]
				e.Stats()
				continue
			}
			if m.End {
				if m.Err != nil {
					t.Errorf("the end: %v", m.Err)
				}
				break
			}
			n++
		}
		if n != writers*each {
			t.Errorf("%d messages arrived of %d", n, writers*each)
		}
	}
	a.Abort(nil)
	b.Abort(nil)
	<-overs[0]
	<-overs[1]
}

// TestSmallBufferIsLearned: who sends to one that holds little finds out how
// little, and does not send most of it twice.
func TestSmallBufferIsLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var from, to *End
		later := func(f func()) { time.AfterFunc(2*time.Millisecond, f) }
		from = New(Options{Circuit: "c", Now: time.Now,
			Send: func(p *Payload, _ bool) bool { later(func() { to.Payload(p) }); return true },
			Ack:  func(a *Ack) { later(func() { to.Acked(a) }) }})
		ready := make(chan struct{}, 1)
		to = New(Options{Circuit: "c", Terminator: true, Buffer: 64 << 10, Now: time.Now,
			Send: func(p *Payload, _ bool) bool { later(func() { from.Payload(p) }); return true },
			Ack:  func(a *Ack) { later(func() { from.Acked(a) }) },
			Ready: func() {
				select {
				case ready <- struct{}{}:
				default:
				}
			}})
		from.Start()
		const messages = 10_000
		go func() {
			for range messages {
				_ = from.Write(t.Context(), Message{Data: make([]byte, 16<<10)})
			}
		}()
		began := time.Now()
		for got := 0; got < messages; {
			if _, ok := to.Next(); !ok {
				<-ready
				continue
			}
			got++
			<-time.After(time.Millisecond)
		}
		if s := from.Stats(); s.Resent > messages/10 {
			t.Errorf("%d of %d were sent again, window %d", s.Resent, messages, from.out.window)
		}
		if took := time.Since(began); took > 3*messages*time.Millisecond {
			t.Errorf("a reader that takes %v for %d messages had to wait: %v", messages*time.Millisecond, messages, took)
		}
		from.Abort(nil)
		to.Abort(nil)
	})
}
