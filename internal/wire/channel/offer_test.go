package channel

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// TestOffer offers more than a peer takes: what is refused costs nothing, and
// whoever was refused hears when there is room, whether it waits or not.
func TestOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		rooms := 0
		c := New("c", Options{Soft: 1000, Beat: -1, Silence: -1, Room: func(*Channel) { rooms++ }, Now: time.Now,
			Handle: func(*Channel, *wire.Frame) {}})
		c.Attach(here)
		taken := 0
		for c.Offer(&wire.Packet{Type: 6, Body: make([]byte, 100)}) {
			taken++
			synctest.Wait() // what can be written is
		}
		if taken < 2 || taken > 20 {
			t.Fatalf("%d packets of 100 bytes were taken where about 1000 bytes may wait", taken)
		}
		waited := make(chan error)
		go func() {
			waited <- c.OfferWhenRoom(t.Context(), &wire.Packet{Type: 6, Body: []byte("last")})
		}()
		time.Sleep(time.Hour)
		if c.Err() != nil || rooms != 0 {
			t.Fatalf("a peer that takes nothing for an hour: %v, %d calls", c.Err(), rooms)
		}
		for got := 0; got <= taken; got++ {
			p, err := wire.ReadPacket(there, wire.Bounds{Headers: 100, Body: 100})
			if err != nil {
				t.Fatal(err)
			}
			if last := string(p.Body) == "last"; last != (got == taken) {
				t.Fatalf("packet %d of %d has body %q", got, taken, p.Body)
			}
		}
		if err := <-waited; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if rooms != 1 {
			t.Fatalf("was told of room %d times, not once", rooms)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for c.Offer(&wire.Packet{Type: 6, Body: make([]byte, 100)}) {
		}
		if err := c.OfferWhenRoom(ctx, &wire.Packet{Type: 6}); err != context.Canceled {
			t.Fatalf("waiting in vain: %v", err)
		}
		c.Close(nil)
		if err := c.OfferWhenRoom(t.Context(), &wire.Packet{Type: 6}); err != ErrClosed {
			t.Fatalf("offering to what is closed: %v", err)
		}
	})
}

// TestOfferFirst has something small go before much that waits, even where there
// is no room for more of that.
func TestOfferFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		c := New("c", Options{Soft: 1 << 20, Beat: -1, Silence: -1, Now: time.Now, Handle: func(*Channel, *wire.Frame) {}})
		c.Attach(here)
		defer c.Close(nil)
		for c.Offer(&wire.Packet{Type: 6, Body: make([]byte, 100_000)}) {
			synctest.Wait()
		}
		small := 0
		for ; c.OfferFirst(&wire.Packet{Type: 7, Body: make([]byte, 1000)}); small++ {
		}
		if small < 1000 || small > 1100 {
			t.Errorf("%d small ones were taken", small)
		}
		data, got := 0, 0
		for got < small {
			p, err := wire.ReadPacket(there, wire.Bounds{Headers: 100, Body: 100_000})
			if err != nil {
				t.Fatal(err)
			}
			if p.Type == 7 {
				got++
			} else if data++; data > 2 { // those that were being written
				t.Fatalf("%d of much came before one of %d small ones", data, small-got)
			}
		}
		if c.OfferFirst(&wire.Packet{Type: 7}); c.Err() != nil {
			t.Error(c.Err())
		}
		c.Close(nil)
		if c.OfferFirst(&wire.Packet{Type: 7}) {
			t.Error("what is closed takes something")
		}
	})
}

// TestLanes has one send much and others little: those have room and do not wait
// for all of it, and everything of one stays in its order.
func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		c := New("c", Options{Soft: 1 << 20, Beat: -1, Silence: -1, Now: time.Now, Handle: func(*Channel, *wire.Frame) {},
			Lane: func(p *wire.Packet) []byte { return p.Block }})
		c.Attach(here)
		defer c.Close(nil)
		number := map[string]byte{}
		packet := func(lane string, size int) *wire.Packet {
			number[lane]++
			return &wire.Packet{Type: 6, Block: wire.Block{}.Text(1, lane), Body: append(make([]byte, size), number[lane])}
		}
		much := 0
		for ; c.Offer(packet("much", 30_000)); much++ {
			synctest.Wait()
		}
		number["much"]-- // the last was not taken
		if c.Offer(packet("late", 600_000)) {
			t.Error("more than a share was taken where there was no room")
		}
		delete(number, "late")
		for i := range 5 {
			for _, lane := range []string{"a", "b", "c"} {
				if !c.Offer(packet(lane, 1000)) {
					t.Fatalf("there was no room for packet %d of %s", i, lane)
				}
			}
		}
		got, seen, behind := map[string]byte{}, 0, 0
		for range much + 15 {
			p, err := wire.ReadPacket(there, wire.Bounds{Headers: 100, Body: 100_000})
			if err != nil {
				t.Fatal(err)
			}
			lane, _ := p.Bytes(1)
			if got[string(lane)]++; p.Body[len(p.Body)-1] != got[string(lane)] {
				t.Fatalf("packet %d of %s comes as number %d", p.Body[len(p.Body)-1], lane, got[string(lane)])
			}
			if string(lane) != "much" {
				seen++
			} else if seen < 15 {
				behind += len(p.Body)
			}
		}
		if behind > 2*chunk+3*turn { // what was taken already, and some turns
			t.Errorf("little waited for %d bytes of much", behind)
		}
		if c.queue.any() || c.queue.bytes != 0 || len(c.queue.lanes.byKey) != 0 {
			t.Errorf("left are %+v", &c.queue)
		}
	})
}

// TestPacket has some frames seen before their headers are taken apart.
func TestPacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var packets, frames []int32
		a, _ := pair(t, Options{}, Options{
			Packet: func(_ *Channel, p *wire.Packet) bool {
				packets = append(packets, p.Type)
				return p.Type == 6
			},
			Handle: func(_ *Channel, f *wire.Frame) { frames = append(frames, f.Type) },
		})
		for _, typ := range []int32{6, 7, 6} {
			if err := a.Send(&wire.Frame{Type: typ}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(packets) != 3 || len(frames) != 1 || frames[0] != 7 {
			t.Fatalf("saw packets %v and frames %v", packets, frames)
		}
	})
}

// TestReaders reads from a further socket, which neither gets anything nor
// keeps the channel.
func TestReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var frames []int32
		_, b := pair(t, Options{}, Options{Handle: func(_ *Channel, f *wire.Frame) { frames = append(frames, f.Type) }})
		here, there := net.Pipe()
		b.AttachReader(there)
		if _, err := here.Write((&wire.Frame{Type: 9}).Append(nil)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(frames) != 1 || b.Sockets() != 1 {
			t.Fatalf("heard %v on %d sockets", frames, b.Sockets())
		}
		b.detach(b.sockets[0], ErrSilent)
		if b.Err() != ErrSilent {
			t.Fatal("a socket that is only read from keeps the channel")
		}
		if _, err := here.Write([]byte{1}); err == nil {
			t.Fatal("the further socket outlives the channel")
		}
	})
}

// TestEchoed measures how long a sign of life is on its way.
func TestEchoed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		var took []time.Duration
		c := New("c", Options{Echoed: func(d time.Duration) { took = append(took, d) }, Now: time.Now, Handle: func(*Channel, *wire.Frame) {}})
		c.Attach(here)
		defer c.Close(nil)
		f, err := wire.Read(there, wire.Bounds{Headers: 100, Body: 100})
		if err != nil {
			t.Fatal(err)
		}
		stamp, ok := f.Headers.Uint64(message.HeaderHeartbeat)
		if !ok {
			t.Fatalf("%v is no heartbeat", f)
		}
		time.Sleep(3 * time.Millisecond)
		answer := &wire.Frame{Type: message.TypeHeartbeat, Headers: wire.Headers{}}
		answer.Headers.SetUint64(message.HeaderHeartbeatResponse, stamp)
		// Once more, and what was never asked for, are no signs of life.
		forged := &wire.Frame{Type: message.TypeHeartbeat, Headers: wire.Headers{}}
		forged.Headers.SetUint64(message.HeaderHeartbeatResponse, stamp-uint64(time.Minute))
		for _, f := range []*wire.Frame{forged, answer, answer} {
			if _, err := there.Write(f.Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if len(took) != 1 || took[0] != 3*time.Millisecond {
			t.Fatalf("measured %v, not 3ms", took)
		}
	})
}

// TestBorneBeats has signs of life come with data, as other programs send them:
// they are heeded, and the data goes on without them.
func TestBorneBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		var took []time.Duration
		var blocks []string
		c := New("c", Options{
			Echoed: func(d time.Duration) { took = append(took, d) }, Now: time.Now, Beat: -1, Silence: -1,
			Packet: func(_ *Channel, p *wire.Packet) bool {
				blocks = append(blocks, string(p.Block))
				return true
			},
		})
		c.Attach(here)
		defer c.Close(nil)
		c.Ask()
		asked, err := wire.Read(there, wire.Bounds{Headers: 100, Body: 100})
		if err != nil {
			t.Fatal(err)
		}
		sent, _ := asked.Headers.Uint64(message.HeaderHeartbeat)
		time.Sleep(5 * time.Millisecond)
		data := wire.Block{}.Text(message.HeaderStreamCircuit, "circuit").Uint64(message.HeaderHeartbeatResponse, sent).
			Uint64(message.HeaderHeartbeat, 77).Uint64(message.HeaderStreamSeq, 3)
		if _, err := there.Write((&wire.Packet{Type: message.TypePayload, Block: data}).Append(nil)); err != nil {
			t.Fatal(err)
		}
		f, err := wire.Read(there, wire.Bounds{Headers: 100, Body: 100})
		if err != nil {
			t.Fatal(err)
		}
		if echo, _ := f.Headers.Uint64(message.HeaderHeartbeatResponse); echo != 77 {
			t.Errorf("the peer that asked by its data hears %v", f)
		}
		synctest.Wait()
		if len(took) != 1 || took[0] != 5*time.Millisecond {
			t.Errorf("measured %v, not 5ms", took)
		}
		want := string(wire.Block{}.Text(message.HeaderStreamCircuit, "circuit").Uint64(message.HeaderStreamSeq, 3))
		if len(blocks) != 1 || blocks[0] != want {
			t.Errorf("data goes on with headers %q, want %q", blocks, want)
		}
	})
}

// TestSkipped sends a frame that is too large between others, on a channel that
// reads past it.
func TestSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies []string
		var skipped []int64
		a, b := pair(t, Options{}, Options{
			Bounds: wire.Bounds{Headers: 100, Body: 100}, Skipped: func(e *wire.TooLarge) { skipped = append(skipped, e.Headers+e.Body) },
			Handle: func(_ *Channel, f *wire.Frame) { bodies = append(bodies, string(f.Body)) },
		})
		for _, f := range []*wire.Frame{
			{Type: 6, Body: []byte("one")}, {Type: 6, Body: make([]byte, 100_000)}, {Type: 6, Headers: wire.Headers{7: make([]byte, 200)}},
			{Type: 6, Body: []byte("two")},
		} {
			if err := a.Send(f); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if b.Err() != nil || !slices.Equal(bodies, []string{"one", "two"}) || !slices.Equal(skipped, []int64{100_000, 208}) {
			t.Errorf("the channel is %v, heard %q and skipped %v", b.Err(), bodies, skipped)
		}
	})
}

// TestDeepLanes has more wait in lanes than beside them, and tells of room when
// both have some.
func TestDeepLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		rooms := 0
		c := New("c", Options{Soft: 10_000, Deep: 100_000, Beat: -1, Silence: -1, Now: time.Now, Handle: func(*Channel, *wire.Frame) {},
			Room: func(*Channel) { rooms++ },
			Lane: func(p *wire.Packet) []byte {
				if p.Type == 6 {
					return []byte("lane")
				}
				return nil
			}})
		defer c.Close(nil)
		taken := map[int32]int{}
		for _, kind := range []int32{6, 7} {
			for c.Offer(&wire.Packet{Type: kind, Body: make([]byte, 1000)}) {
				taken[kind]++
			}
		}
		if taken[6] < 95 || taken[6] > 105 || taken[7] < 9 || taken[7] > 11 {
			t.Fatalf("%d were taken in a lane, %d beside it", taken[6], taken[7])
		}
		c.Attach(here)
		for range taken[6] + taken[7] {
			if _, err := wire.ReadPacket(there, wire.Bounds{Headers: 100, Body: 100_000}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if rooms != 1 || !c.Offer(&wire.Packet{Type: 6}) || !c.Offer(&wire.Packet{Type: 7}) {
			t.Errorf("room was told of %d times", rooms)
		}
	})
}
