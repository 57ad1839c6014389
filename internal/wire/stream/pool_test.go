package stream

import (
	"slices"
	"testing"
	"testing/synctest"
)

// chunkSize is how much is written at once.
const chunkSize = 32 << 10

// fill writes as long as there is room.
func (l *lone) fill() {
	for l.TryWrite(Message{Data: make([]byte, chunkSize)}) {
	}
}

// drain acknowledges all that was sent.
func (l *lone) drain() {
	for _, p := range l.taken() {
		l.say(0, p.Seq)
	}
}

// TestPool has ends share what may be on its way: one that is busy alone has its whole
// window, many have about the same, and who is idle or has ended takes nothing from
// anybody.
func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := &Pool{Size: 32 << 20, Least: 128 << 10}
		all := make([]*lone, 50)
		for i := range all {
			all[i] = started(Options{Pool: pool})
		}
		alone := func(when string, l *lone) {
			t.Helper()
			for range 200 { // a window that has shrunk grows again with what is acknowledged
				l.fill()
				l.drain()
			}
			l.fill()
			if l.out.bytes < Window {
				t.Errorf("%s: one alone has %d on its way, and may have %d", when, l.out.bytes, Window)
			}
			l.drain()
		}
		alone("beside ends that carry nothing", all[0])
		for range 50 {
			for _, l := range all {
				l.drain()
				l.fill()
			}
		}
		var has []int
		total := 0
		for _, l := range all {
			has = append(has, l.out.bytes)
			total += l.out.bytes
		}
		if least, most := slices.Min(has), slices.Max(has); least < pool.Least || most > 4*least {
			t.Errorf("of fifty one has %d on its way and another %d", least, most)
		}
		if total > pool.Size+len(all)*(chunkSize+entry) || total < pool.Size/2 {
			t.Errorf("all have %d on their way, of %d that they share", total, pool.Size)
		}
		for _, l := range all[1:] {
			l.drain()
		}
		all[0].drain()
		alone("after others were busy", all[0])
		for i, l := range all {
			l.fill()
			l.hear(0, 0, "somebody has to read this, and nobody does")
			switch i % 3 {
			case 0:
				l.Close(nil)
			case 1:
				l.Abort(nil)
			case 2:
				l.hear(1, FlagEnd|FlagRefuse, "")
				l.CloseRead()
			}
		}
		if used := pool.used.Load(); used != 0 {
			t.Errorf("ends that have ended hold %d", used)
		}
	})
}

// TestPoolOfReaders has nobody read: peers are told to stop the sooner the less is left
// for all, and everybody gets something through even so.
func TestPoolOfReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := &Pool{Size: 8 << 20, Least: 128 << 10}
		chunk := string(make([]byte, chunkSize))
		var all []*lone
		total := 0
		for range 50 {
			l := started(Options{Pool: pool})
			for seq := int32(0); ; seq++ {
				l.hear(seq, 0, chunk)
				if l.acks[len(l.acks)-1].Held > Buffer {
					break
				}
			}
			if l.in.held < pool.Least/2 {
				t.Fatalf("a peer is told to stop after %d", l.in.held)
			}
			total += l.in.held
			all = append(all, l)
		}
		if total > pool.Size+len(all)*(pool.Least+2*(chunkSize+entry)) {
			t.Errorf("all hold %d, of %d that they share", total, pool.Size)
		}
		for _, l := range all {
			l.Close(nil)
		}
		if used := pool.used.Load(); used != 0 {
			t.Errorf("ends that have ended hold %d", used)
		}
	})
}
