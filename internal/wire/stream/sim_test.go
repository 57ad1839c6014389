package stream

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/test/machine"
)

var oneSeed = flag.Uint64("seed", 0, "run TestSimulation with this seed alone")

// seeds is how many worlds TestSimulation makes; the race detector makes each
// of them many times slower.
const seeds, seedsRaced = 4000, 300

// TestSimulation lets two ends talk through worlds that lose, double, delay and
// reorder what they say, that are cut and healed, whose readers are slow, and
// whose users close in any order and at any time, or vanish. Whatever happens,
// what comes out is what went in, in order and once, up to an end that both
// have heard of, or an error; it comes to an end in time; and nothing takes more
// memory than it may.
func TestSimulation(t *testing.T) {
	if *oneSeed != 0 {
		simulate(t, *oneSeed, true)
		return
	}
	n := uint64(seeds)
	if machine.Raced {
		n = seedsRaced
	}
	const lanes = 2
	for lane := range uint64(lanes) {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			for seed := 1 + lane; seed <= n && !t.Failed(); seed += lanes {
				simulate(t, seed, false)
			}
		})
	}
}

func simulate(t *testing.T, seed uint64, verbose bool) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed, verbose)
		w.run()
		synctest.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.wrong == "" {
			w.judge()
		}
		if w.wrong != "" {
			t.Errorf("seed %d: %s\nthe world: %s\nrun it alone: go test ./internal/wire/stream -run TestSimulation -seed %d -v",
				seed, w.wrong, w.describe(), seed)
		}
	})
}

// peer is an end, ours or one of others.
type peer interface {
	Start()
	TryWrite(Message) bool
	Writable() error
	CloseWrite() error
	CloseRead()
	Close(error)
	Abort(error)
	Next() (Message, bool)
	Payload(*Payload)
	Acked(*Ack)
	Stats() Stats
}

// world is what is between the ends, and what their users do.
type world struct {
	mu      sync.Mutex
	rng     *rand.Rand
	verbose bool
	began   time.Time
	wrong   string
	stopped chan struct{} // closed when there is nothing more to see

	loss, double, refuse int // percent
	delay, jitter        time.Duration
	cuts                 [][2]time.Duration // when nothing passes
	gentle               bool               // everything must arrive
	clean                bool               // and both ends must know
	brisk                time.Duration      // and it must not take longer
	loops                bool               // some of what is sent comes back
	coded                bool               // what is sent becomes bytes and back
	unrouting            bool

	sides [2]*side
}

// A side is an end and its user.
type side struct {
	w     *world
	name  int // 0 dials
	end   peer
	other *side
	plan  plan

	window, buffer int
	sent           int // messages
	got            int
	pumping        bool
	reading        bool
	readAgain      bool
	paused         bool
	started        bool // a start was delivered
	vanished       bool
	ended          bool // the reader has seen the end
	endErr         error
	endAt          time.Duration
	done, over     bool
	doneErr        error
	broke          bool // its user did what loses data
	deaf           bool // its user takes no more
	numbers        map[int32][]byte
}

// plan is what a user is going to do.
type plan struct {
	sizes     []int
	gap       time.Duration // between messages
	readGap   time.Duration
	pauseAt   int // messages
	pause     time.Duration
	closeWait time.Duration
	breakAt   time.Duration // 0: never
	breaks    breakage
	naive     bool
	mtu       int  // of a naive end: messages are sent in parts of so much
	caps      bool // a naive end that knows FlagEOF
}

type breakage int

const (
	byClose breakage = iota
	byVanish
	byDeafness
	byAbort
	breakages
)

var (
	errBroken = errors.New("broken on purpose")
	// stuff is what messages are cut from.
	stuff = func() []byte {
		b := make([]byte, 1<<20)
		src := rand.NewChaCha8([32]byte{1})
		_, _ = src.Read(b)
		return b
	}()
)

// content is the message with a number.
func (s *side) content(i int) Message {
	n := s.plan.sizes[i]
	at := (i*7919 + s.name*104729) % (len(stuff) - n)
	m := Message{Data: stuff[at : at+n], Flags: uint32(i % 5)}
	if i%7 == 3 {
		m.UUID = stuff[at : at+16]
	}
	return m
}

func (w *world) pick(n int) int {
	if n <= 0 {
		return 0
	}
	return w.rng.IntN(n)
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.pick(int(d) + 1)) }

func newWorld(seed uint64, verbose bool) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x5eed)), verbose: verbose, stopped: make(chan struct{})}
	w.gentle = w.pick(3) > 0
	w.coded = w.pick(2) == 0
	switch w.pick(4) {
	case 0: // nothing goes wrong
	case 1:
		w.loss, w.double = w.pick(10), w.pick(10)
	default:
		w.loss, w.double, w.refuse = w.pick(35), w.pick(20), w.pick(20)
	}
	w.delay, w.jitter = w.upTo(50*time.Millisecond), w.upTo(time.Duration(w.pick(3))*100*time.Millisecond)
	w.loops = w.pick(5) == 0
	longest := 60 * time.Second
	if w.gentle {
		longest = 8 * time.Second
	}
	at := time.Duration(0)
	for range w.pick(3) {
		at += w.upTo(10*time.Second) + 5*time.Second
		long := w.upTo(longest)
		w.cuts = append(w.cuts, [2]time.Duration{at, at + long})
		at += long
	}
	for i := range w.sides {
		w.sides[i] = &side{w: w, name: i, numbers: map[int32][]byte{}}
	}
	naive := w.pick(4) == 0
	for i, s := range w.sides {
		s.other = w.sides[1-i]
		s.window, s.buffer = 8<<10+w.pick(200<<10), 4<<10+w.pick(100<<10)
		s.plan = w.newPlan()
		if naive && i == w.pick(2) && !w.sides[0].plan.naive {
			s.plan.naive, s.plan.caps = true, w.pick(2) == 0
			if w.pick(2) == 0 {
				s.plan.mtu = 100 + w.pick(3000)
			}
		}
	}
	if !w.gentle {
		s := w.sides[w.pick(2)]
		if w.pick(4) > 0 && !s.plan.naive {
			s.plan.breakAt, s.plan.breaks = w.upTo(20*time.Second)+1, breakage(w.pick(int(breakages)))
		}
	}
	w.clean = w.gentle && len(w.cuts) == 0 && w.loss < 10 && w.refuse == 0
	if w.pick(20) == 0 {
		w.hurry()
	}
	return w
}

// hurry makes a world in which nothing goes wrong, except that a reader pauses
// until nobody can send any more. When it goes on everything is there at once.
func (w *world) hurry() {
	w.gentle, w.clean, w.loops, w.cuts = true, true, false, nil
	w.loss, w.double, w.refuse, w.delay, w.jitter = 0, 0, 0, w.upTo(10*time.Millisecond), 0
	for i, s := range w.sides {
		s.window, s.buffer = 100<<10, 100<<10
		s.plan = plan{sizes: make([]int, 60*(1-i))}
		for n := range s.plan.sizes {
			s.plan.sizes[n] = 2000 + w.pick(5000)
		}
	}
	reader := &w.sides[1].plan
	reader.pauseAt, reader.pause = 1+w.pick(20), 2*time.Second+w.upTo(5*time.Second)
	// To write and to read take a millisecond each at most.
	w.brisk = time.Second + reader.pause + 2*60*time.Millisecond + 5*2*w.delay
}

func (w *world) newPlan() plan {
	p := plan{gap: w.upTo(time.Duration(w.pick(3)) * 40 * time.Millisecond), readGap: w.upTo(time.Duration(w.pick(3)) * 60 * time.Millisecond)}
	p.sizes = make([]int, w.pick(60))
	largest := []int{1, 100, 2000, 20000, 60000}[w.pick(5)]
	for i := range p.sizes {
		if p.sizes[i] = w.pick(largest + 1); w.pick(6) == 0 {
			p.sizes[i] = 0
		}
	}
	p.closeWait = w.upTo(3 * time.Second)
	if w.pick(4) == 0 {
		p.pauseAt, p.pause = 1+w.pick(20), w.upTo(8*time.Second)
		if !w.gentle {
			p.pause *= 10
		}
	}
	return p
}

func (w *world) describe() string {
	text := fmt.Sprintf("gentle %v, loss %d%%, double %d%%, refuse %d%%, delay %v+%v, cuts %v",
		w.gentle, w.loss, w.double, w.refuse, w.delay, w.jitter, w.cuts)
	for _, s := range w.sides {
		text += fmt.Sprintf("\n  side %d: window %d, buffer %d, %d messages, sent %d, got %d, ended %v (%v), done %v (%v), over %v, breaks %v (%d), naive %v (mtu %d, caps %v)",
			s.name, s.window, s.buffer, len(s.plan.sizes), s.sent, s.got, s.ended, s.endErr, s.done, s.doneErr, s.over,
			s.plan.breakAt, s.plan.breaks, s.plan.naive, s.plan.mtu, s.plan.caps)
	}
	return text
}

func (w *world) fault(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf("after %v: ", time.Since(w.began)) + fmt.Sprintf(format, args...)
		w.stop()
	}
}

func (w *world) stop() {
	select {
	case <-w.stopped:
	default:
		close(w.stopped)
	}
}

func (w *world) note(format string, args ...any) {
	if w.verbose {
		fmt.Printf("%12v  %s\n", time.Since(w.began), fmt.Sprintf(format, args...))
	}
}

// after runs f with nothing else running. A few nanoseconds keep events apart,
// so that a seed always tells the same story. The race detector does not know
// that time keeps them apart, and is told by the lock.
func (w *world) after(d time.Duration, f func()) {
	time.AfterFunc(d+time.Duration(1+w.rng.IntN(1_000_000)), func() {
		w.locked(func() {})
		f()
		w.locked(func() {})
	})
}

func (w *world) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) cut() bool {
	now := time.Since(w.began)
	for _, c := range w.cuts {
		if now >= c[0] && now < c[1] {
			return true
		}
	}
	return w.sides[0].vanished || w.sides[1].vanished
}

// carry brings something to the other side, or does not.
func (w *world) carry(deliver func()) {
	n := 1
	if w.pick(100) < w.double {
		n = 2
	}
	for range n {
		if w.cut() || w.pick(100) < w.loss {
			continue
		}
		w.after(w.delay+w.upTo(w.jitter), func() {
			lost := false
			if w.locked(func() { lost = w.cut() }); !lost {
				deliver()
			}
		})
	}
}

// send is Options.Send of a side.
func (s *side) send(p *Payload, _ bool) bool {
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("%d sends %d flags %d, %d bytes", s.name, p.Seq, p.Flags, len(p.Data))
	if s.name == 1 && !s.started {
		w.fault("the terminator spoke before the start")
	}
	if before, known := s.numbers[p.Seq]; known && !bytes.Equal(before, p.Data) {
		w.fault("side %d sent payload %d again and with other data", s.name, p.Seq)
	}
	s.numbers[p.Seq] = slices.Clone(p.Data)
	if w.pick(100) < w.refuse {
		return false
	}
	arrives := func() *Payload { return p }
	if w.coded {
		// What becomes bytes is in memory that is used again, as in routers.
		back, err := ParsePayload(p.Packet())
		if err != nil || !samePayload(back, p) {
			w.fault("%+v became %+v, %v", p, back, err)
			return false
		}
		packet := p.Packet()
		data := packet.Append(nil)
		packet.Release()
		arrives = func() *Payload {
			again, _ := ParsePayload(reread(data)) // as before
			return again
		}
	}
	flags := p.Flags
	if w.loops && w.pick(20) == 0 {
		w.carry(func() { s.end.Payload(arrives()) })
	}
	w.carry(func() {
		if flags&FlagStart != 0 {
			w.locked(func() { s.other.started = true })
		}
		s.other.end.Payload(arrives())
		s.other.weigh()
		if flags&FlagRefuse != 0 && s.other.end.Writable() == nil && !s.other.plan.naive {
			w.locked(func() { w.fault("side %d writes though nobody takes it", s.other.name) })
		}
	})
	return true
}

// reread reads a packet into memory that is used again.
func reread(data []byte) *wire.Packet {
	r := bytes.NewReader(data)
	h, err := wire.ReadHead(r, wire.Bounds{Headers: 1 << 20, Body: 1 << 20})
	if err != nil {
		panic(err)
	}
	p, err := h.ReadPooled(r)
	if err != nil {
		panic(err)
	}
	return p
}

// message is the content with a number, in memory that is used again.
func (s *side) message(i int) Message {
	m := s.content(i)
	if !s.w.coded {
		return m
	}
	p := reread((&wire.Packet{Block: wire.Block(nil).Bytes(0, m.UUID), Body: m.Data}).Append(nil))
	m.Data, m.Memory = p.Body, p.Memory
	if m.UUID != nil {
		m.UUID, _ = p.Bytes(0)
	}
	return m
}

func (s *side) ack(a *Ack) {
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("%d acknowledges %v, holds %d", s.name, a.Seqs, a.Held)
	if w.coded {
		back, err := ParseAck(a.Packet())
		if err != nil || !sameAck(back, a) {
			w.fault("%+v became %+v, %v", a, back, err)
			return
		}
		a = back
	}
	if w.loops && w.pick(20) == 0 {
		w.carry(func() { s.end.Acked(a) })
	}
	w.carry(func() { s.other.end.Acked(a) })
}

// weigh checks that nothing takes more memory than it may.
func (s *side) weigh() {
	if s.plan.naive {
		return
	}
	const largest = 60000 + 4*entry
	stats := s.end.Stats()
	s.w.locked(func() {
		if stats.InFlight > s.window+largest || stats.Held > s.buffer+Window+largest || stats.Held < 0 || stats.InFlight < 0 {
			s.w.fault("side %d has %+v with a window of %d and a buffer of %d", s.name, stats, s.window, s.buffer)
		}
		// Between our own ends the window of the one bounds what the other holds.
		if !s.other.plan.naive && stats.Held > s.buffer+s.other.window+2*largest {
			s.w.fault("side %d holds %d with a buffer of %d and a window of %d", s.name, stats.Held, s.buffer, s.other.window)
		}
	})
}
