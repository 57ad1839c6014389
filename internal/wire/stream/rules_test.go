package stream

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lone is an end whose peer is the test.
type lone struct {
	*End
	mu     sync.Mutex // what the race detector goes by; time keeps things apart
	sent   []*Payload
	acks   []*Ack
	rooms  int
	done   []error
	over   []error
	refuse bool
}

func newLone(o Options) *lone {
	l := &lone{}
	o.Circuit, o.Now = "c", time.Now
	o.Send = func(p *Payload, _ bool) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.refuse {
			l.sent = append(l.sent, p)
		}
		return !l.refuse
	}
	locked := func(f func()) {
		l.mu.Lock()
		defer l.mu.Unlock()
		f()
	}
	o.Ack = func(a *Ack) { locked(func() { l.acks = append(l.acks, a) }) }
	o.Room = func() { locked(func() { l.rooms++ }) }
	o.Done = func(err error) { locked(func() { l.done = append(l.done, err) }) }
	o.Over = func(err error) { locked(func() { l.over = append(l.over, err) }) }
	l.End = New(o)
	return l
}

// pass lets time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (l *lone) pass(d time.Duration) {
	l.mu.Lock()
	_ = l.sent // what was done to it comes before what the timer does
	l.mu.Unlock()
	pass(d)
}

func (l *lone) taken() []*Payload {
	p := l.sent
	l.sent = nil
	return p
}

func seqsOf(list []*Payload) (seqs []int32) {
	for _, p := range list {
		seqs = append(seqs, p.Seq)
	}
	return seqs
}

// say acknowledges payloads of an initiator.
func (l *lone) say(held int, seqs ...int32) {
	l.Acked(&Ack{Circuit: "c", Flags: FlagTerminator, Held: uint32(held), Seqs: seqs})
}

func started(o Options) *lone {
	l := newLone(o)
	l.Start()
	l.say(0, 0)
	l.taken()
	return l
}

// hear is a payload of a terminator.
func (l *lone) hear(seq int32, flags uint32, data string, headers ...Header) {
	l.Payload(&Payload{Circuit: "c", Seq: seq, Flags: flags | FlagTerminator, Stamp: 9, Headers: headers, Data: []byte(data)})
}

func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLone(Options{})
		l.Start()
		l.Start()
		first := l.taken()
		if len(first) != 1 || first[0].Seq != 0 || first[0].Flags != FlagStart || len(first[0].Headers) != 1 ||
			first[0].Headers[0].Key != 1 || string(first[0].Headers[0].Value) != "\x00\x00\x01\x00" || first[0].Stamp == 0 {
			t.Fatalf("the initiator begins with %+v", first)
		}
		l.Close(nil)

		l = newLone(Options{Terminator: true})
		if !l.TryWrite(Message{Data: make([]byte, 2*earlyBytes)}) || l.TryWrite(Message{}) || len(l.sent) != 0 {
			t.Fatal("what is written early is not kept, or without a bound")
		}
		l.Payload(&Payload{Circuit: "c", Seq: 0, Flags: FlagStart, Stamp: 77, Headers: capabilities})
		l.Payload(&Payload{Circuit: "c", Seq: 0, Flags: FlagStart, Stamp: 78, Headers: capabilities})
		answer := l.taken()
		if len(answer) != 2 || answer[0].Seq != 0 || answer[0].Flags != FlagTerminator || answer[0].Header(KeyCapabilities) == nil ||
			answer[1].Seq != 1 || len(answer[1].Data) != 2*earlyBytes || l.rooms != 1 {
			t.Fatalf("the terminator answers %+v", answer)
		}
		if len(l.acks) != 2 || l.acks[1].Stamp != 78 || !slices.Equal(l.acks[1].Seqs, []int32{0}) || l.acks[1].Flags != FlagTerminator {
			t.Fatalf("the start is acknowledged with %+v", l.acks)
		}
		l.Close(nil)

		// Peers that say nothing of what they know are told nothing either.
		l = newLone(Options{Terminator: true})
		l.Payload(&Payload{Circuit: "c", Seq: 0, Flags: FlagStart})
		if answer := l.taken(); len(answer) != 0 {
			t.Fatalf("the terminator answers %+v", answer)
		}
		l.Close(nil)
	})
}

// TestWhatIsConsumed: what an end says for itself is not handed to its user, and
// everything else is.
func TestWhatIsConsumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(Options{})
		caps := capabilities[0]
		flags := Header{KeyDataFlags, []byte{1, 0, 0, 0}}
		l.hear(0, 0, "", caps)
		l.hear(1, 0, "with", caps)
		l.hear(2, 0, "", caps, flags)
		l.hear(3, 0, "")
		l.hear(4, 0, "uuid", Header{KeyUUID, []byte("0123")})
		l.hear(5, FlagEOF, "")
		l.hear(6, 0, "too late")
		wantNext(t, l.End, "with")
		if m, ok := l.Next(); !ok || m.Flags != 1 {
			t.Fatalf("flags alone are %+v, %v", m, ok)
		}
		wantNext(t, l.End, "")
		if m, ok := l.Next(); !ok || string(m.UUID) != "0123" {
			t.Fatalf("the id is %+v, %v", m, ok)
		}
		wantEnd(t, l.End, nil)
		if len(l.acks) != 7 {
			t.Errorf("%d acknowledgements", len(l.acks))
		}
		l.Close(nil)
	})
}

func TestLoopsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(Options{})
		l.Payload(&Payload{Circuit: "c", Seq: 0, Data: []byte("own")})
		wantNothing(t, l.End)
		if l.TryWrite(Message{}) {
			l.Acked(&Ack{Circuit: "c", Seqs: []int32{1}})
		}
		if s := l.Stats(); len(l.acks) != 0 || s.Dropped != 1 || s.InFlight == 0 {
			t.Errorf("%d acknowledgements, %+v", len(l.acks), s)
		}
		l.Close(nil)
	})
}

// TestSentAgain: what is not acknowledged comes again, with a flag and a stamp of
// its own, ever more seldom, and all of it as soon as somebody answers.
func TestSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(Options{})
		for range 50 {
			l.TryWrite(Message{Data: []byte("x")})
		}
		first := l.taken()
		l.pass(leastWait - time.Millisecond)
		if again := l.taken(); len(again) != 0 {
			t.Fatalf("%d came again at once", len(again))
		}
		l.pass(2 * time.Millisecond)
		again := l.taken()
		if len(again) != burst || again[0].Seq != 1 || again[0].Flags != FlagAgain || again[0].Stamp == first[0].Stamp || first[0].Flags != 0 {
			t.Fatalf("%d came again, first %+v after %+v", len(again), again[0], first[0])
		}
		var gaps []time.Duration
		last := time.Now()
		for range 8 {
			for l.sent = nil; len(l.sent) == 0; {
				l.pass(time.Millisecond)
			}
			if got := len(l.sent); got > burstBlind {
				t.Fatalf("%d were sent into silence", got)
			}
			gaps = append(gaps, time.Since(last).Round(10*time.Millisecond))
			last = time.Now()
		}
		if !slices.IsSorted(gaps) || gaps[7] > mostSilence+leastWait || gaps[7] < mostSilence/2 {
			t.Errorf("came again after %v", gaps)
		}
		// One answer, and two more go at once, and so on.
		l.taken()
		l.say(0, 1)
		l.pass(leastWait + 2*time.Millisecond)
		for range 10 {
			for _, p := range l.taken() {
				l.say(0, p.Seq)
			}
		}
		l.pass(leastWait + 2*time.Millisecond)
		for _, p := range l.taken() {
			l.say(0, p.Seq)
		}
		if s := l.Stats(); s.InFlight != 0 {
			t.Errorf("left: %+v", s)
		}
		l.Close(nil)
	})
}

// TestNoTimerWhenIdle: an end that waits for nothing costs nothing.
func TestNoTimerWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, nil)
		p.a.Start()
		for range 10 * idleSlots {
			write(t, p.a, "one")
		}
		drain(p.b)
		pass(startWait + time.Second)
		for _, e := range []*End{p.a, p.b} {
			e.mu.Lock()
			if e.timerAt != 0 {
				t.Errorf("an idle end wakes up at %v", e.timerAt)
			}
			if len(e.out.slots) > idleSlots || len(e.in.slots) > idleSlots {
				t.Errorf("an idle end keeps %d and %d slots", len(e.out.slots), len(e.in.slots))
			}
			e.mu.Unlock()
			e.Abort(nil)
		}
	})
}

// TestOvertaken: an acknowledgement that comes after a later one is not believed
// that there is more room.
func TestOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(Options{})
		for range 10 * idleSlots {
			l.TryWrite(Message{})
		}
		for _, c := range []struct {
			seq        int32
			said, want int
		}{{10, 5000, 5000}, {9, 4000, 5000}, {8, 6000, 6000}, {11, 3000, 3000}} {
			if l.say(c.said, c.seq); l.out.held != c.want {
				t.Errorf("payload %d says that %d are held, which makes %d, not %d", c.seq, c.said, c.want, l.out.held)
			}
		}
		l.say(1000)
		if l.out.held != 1000 {
			t.Errorf("what names no payload makes %d", l.out.held)
		}
		for seq := range int32(10*idleSlots + 1) {
			l.say(0, seq)
		}
		if len(l.out.slots) > idleSlots {
			t.Errorf("with nothing in flight %d slots are kept", len(l.out.slots))
		}
		l.Close(nil)
	})
}

// TestRTT: what is measured is how long it took, however the stamp comes back,
// and one that was sent twice tells nothing.
func TestRTT(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(Options{})
		answer := func(after time.Duration, want time.Duration) {
			t.Helper()
			l.TryWrite(Message{})
			l.pass(after)
			l.say(0, l.taken()[0].Seq)
			if got := l.Stats().RTT; got.Round(time.Millisecond) != want {
				t.Fatalf("measured %v, want %v", got, want)
			}
		}
		l.out.rtt = 20 * time.Millisecond
		answer(30*time.Millisecond, 25*time.Millisecond)
		answer(25*time.Millisecond, 25*time.Millisecond)
		l.out.rtt = 100 * time.Millisecond
		answer(100*time.Millisecond, 100*time.Millisecond)
		l.TryWrite(Message{})
		seq := l.taken()[0].Seq
		l.pass(time.Second)
		again := l.taken()
		l.say(0, seq)
		if got := l.Stats().RTT; len(again) == 0 || got != 100*time.Millisecond {
			t.Errorf("one of %d told %v", len(again)+1, got)
		}
		// A single one changes little.
		l.out.measure(time.Hour)
		if got := l.Stats().RTT; got != 250*time.Millisecond {
			t.Errorf("an hour makes it %v", got)
		}
		l.out.rtt = time.Hour
		if w := l.out.wait(); w != mostWait {
			t.Errorf("waits for %v", w)
		}
		l.Close(nil)
	})
}

// TestWindow: the window shrinks with what is sent again, down to a bound, and
// grows with what is acknowledged.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(Options{Window: 64 << 10})
		chunk := make([]byte, 1024)
		n := 0
		for l.TryWrite(Message{Data: chunk}) {
			n++
		}
		if want := (64<<10)/(1024+entry) + 1; n != want {
			t.Errorf("%d fit, want %d", n, want)
		}
		l.pass(20 * time.Minute)
		if l.out.window != leastWindow {
			t.Errorf("the window shrank to %d", l.out.window)
		}
		for seq := range int32(n) {
			l.say(0, seq+1)
		}
		if l.rooms != 1 {
			t.Errorf("room was told of %d times", l.rooms)
		}
		for l.out.window < 64<<10 {
			if !l.TryWrite(Message{Data: chunk}) {
				t.Fatal("no room")
			}
			l.say(0, int32(l.out.next-1))
		}
		for range 100 {
			l.say(0, 1)
		}
		if l.out.factor <= leastFactor {
			t.Error("acknowledgements that come twice change nothing")
		}
		l.Close(nil)
	})
}

// TestPeerIsFull: what the peer holds counts, one payload goes even so, and it is
// heard when there is room again.
func TestPeerIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(Options{})
		l.TryWrite(Message{Data: make([]byte, 1000)})
		l.say(Buffer+1, 1)
		if !l.TryWrite(Message{Data: make([]byte, 1000)}) {
			t.Fatal("nothing is in flight, and nothing may go")
		}
		if l.TryWrite(Message{}) {
			t.Fatal("more went to who is full")
		}
		wrote := make(chan error, 1)
		go func() { wrote <- l.Write(t.Context(), Message{}) }()
		l.pass(10 * time.Second)
		if again := len(l.taken()); again < 5 || again > 20 {
			t.Errorf("asked %d times in ten seconds", again)
		}
		l.say(0)
		if err := <-wrote; err != nil || l.rooms != 1 {
			t.Errorf("with room again: %v, %d", err, l.rooms)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		l.say(Buffer + 1)
		go func() { wrote <- l.Write(ctx, Message{}) }()
		synctest.Wait()
		gone := errors.New("gone")
		cancel(gone)
		if err := <-wrote; err != gone {
			t.Errorf("a write that is given up: %v", err)
		}
		go func() { wrote <- l.Write(t.Context(), Message{}) }()
		synctest.Wait()
		l.Close(gone)
		if err := <-wrote; err != gone {
			t.Errorf("a write when the stream ends: %v", err)
		}
		if err := l.CloseWrite(); err != gone {
			t.Errorf("the end of writing after the end: %v", err)
		}
	})
}

// TestUnheard: who closes waits as long as something arrives, and not longer.
func TestUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(Options{})
		l.TryWrite(Message{Data: []byte("one")})
		l.TryWrite(Message{Data: []byte("two")})
		if err := errors.Join(l.CloseWrite(), l.CloseWrite()); err != nil {
			t.Fatal(err)
		}
		if last := l.sent[len(l.sent)-1]; last.Flags != FlagEnd || last.Seq != 3 {
			t.Fatalf("a peer that never said that it knows EOF is sent %+v", last)
		}
		l.pass(closeWait - time.Second)
		l.say(0, 1)
		l.pass(closeWait - time.Second)
		if len(l.done) != 0 {
			t.Fatalf("gave up: %v", l.done)
		}
		l.taken()
		l.pass(2 * time.Second)
		if len(l.done) != 1 || !errors.Is(l.done[0], ErrUnheard) || len(l.over) != 0 {
			t.Fatalf("done %v, over %v", l.done, l.over)
		}
		said := l.taken()
		if last := said[len(said)-1]; last.Flags != FlagEnd|FlagRefuse || last.Seq != 4 {
			t.Errorf("the last word is %+v", last)
		}
		acks := len(l.acks)
		l.hear(0, 0, "late")
		if len(l.acks) != acks+1 {
			t.Error("who lingers does not acknowledge")
		}
		wantEnd(t, l.End, ErrUnheard)
		l.pass(linger)
		if len(l.over) != 1 || len(l.taken()) != 0 {
			t.Errorf("over %v", l.over)
		}
		l.hear(0, 0, "later")
		if len(l.acks) != acks+1 {
			t.Error("who is over acknowledges")
		}
	})
}

// TestGone: who has said that it is gone, and is heard no more, is not written
// to for ever. Who says nothing but that it writes no more is.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, flag := range []uint32{FlagEOF, FlagEnd} {
			l := started(Options{})
			l.hear(0, flag, "")
			wantEnd(t, l.End, nil)
			l.pass(time.Hour) // nothing is in flight, and nothing is wrong
			l.TryWrite(Message{Data: []byte("x")})
			l.say(0, 1)
			l.TryWrite(Message{Data: []byte("y")})
			l.pass(closeWait - time.Second)
			if len(l.done) != 0 {
				t.Fatalf("gave up: %v", l.done)
			}
			l.pass(2 * time.Second)
			gave := len(l.done) == 1 && errors.Is(l.done[0], ErrUnheard)
			if gave != (flag == FlagEnd) {
				t.Errorf("flag %d: done %v", flag, l.done)
			}
			l.Abort(nil)
		}
	})
}

// TestIncomplete: an end that arrives before what belongs before it waits for
// that, but not for ever.
func TestIncomplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(Options{})
		l.hear(0, 0, "zero")
		l.hear(3, FlagEnd, "")
		l.hear(1, 0, "one")
		l.pass(closeWait + time.Second)
		wantNext(t, l.End, "zero")
		wantNext(t, l.End, "one")
		wantNothing(t, l.End)
		if len(l.done) != 0 {
			t.Fatalf("gave up while there was something to read: %v", l.done)
		}
		l.pass(2 * closeWait)
		if len(l.done) != 1 || !errors.Is(l.done[0], ErrIncomplete) {
			t.Fatalf("done %v", l.done)
		}
		wantEnd(t, l.End, ErrIncomplete)

		whole := started(Options{})
		whole.hear(1, FlagEnd, "")
		whole.hear(0, 0, "zero")
		l.pass(2 * closeWait)
		wantNext(t, whole.End, "zero")
		wantEnd(t, whole.End, nil)
		whole.Abort(nil)
	})
}

// TestExhausted: numbers run out rather than begin again.
func TestExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(Options{})
		l.out.base, l.out.next = math.MaxInt32-8, math.MaxInt32-8
		write(t, l.End, "the last")
		if err := l.Write(t.Context(), Message{}); !errors.Is(err, ErrExhausted) {
			t.Fatalf("one more: %v", err)
		}
		l.CloseRead()
		if err := l.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		l.Close(nil)
		if got := seqsOf(l.taken()); got[len(got)-1] != math.MaxInt32-5 {
			t.Errorf("sent %v", got)
		}
	})
}

// TestNotSent: what finds no room on the way is sent again like what is lost.
func TestNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := started(Options{})
		l.refuse = true
		write(t, l.End, "one")
		l.refuse = false
		l.pass(leastWait + time.Millisecond)
		if again := l.taken(); len(again) != 1 || string(again[0].Data) != "one" {
			t.Fatalf("sent again: %v", again)
		}
		l.Close(nil)
	})
}
