package link

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// listen has a router be reached over TCP.
func (d *node) listen() {
	d.net.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		d.net.t.Fatal(err)
	}
	d.at.Address = "tls:" + l.Addr().String()
	d.opt.Dial = TLSDial(func() *tls.Config { return clientConfig(d.cert, d.net.pool()) })
	d.net.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go d.Serve(context.Background(), tls.Server(conn, d.serverConfig()), d.at)
		}
	}()
}

// until waits for something that takes a moment.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("in vain: %s", what)
		}
	}
}

// linked returns the link of one router to another, once there is one.
func linked(t testing.TB, from, to *node) *Link {
	t.Helper()
	var k *Link
	until(t, from.id+" is linked with "+to.id, func() bool {
		for _, k = range from.All() {
			if k.Peer() == to.id {
				return true
			}
		}
		return false
	})
	return k
}

// TestTransit sends packets over three routers, and back: all arrive that were
// taken, in their order and as they were.
func TestTransit(t *testing.T) {
	n := newNetwork(t)
	a, b, c := n.node("a", ""), n.node("b", ""), n.node("c", "")
	for _, d := range []*node{a, b, c} {
		d.listen()
	}
	a.meets(b)
	c.meets(b)
	first, last := linked(t, b, a), linked(t, b, c)
	b.set(func() {
		b.forward = func(linkID string, p *wire.Packet) {
			to := first
			if linkID == first.ID() {
				to = last
			}
			if err := to.OfferWhenRoom(context.Background(), p); err != nil {
				t.Error(err)
			}
		}
	})
	body := make([]byte, 100_000)
	for i := range body {
		body[i] = byte(rand.Uint32())
	}
	const count = 500
	for _, way := range []struct {
		from, to *node
	}{{a, c}, {c, a}} {
		var got atomic.Int64
		way.to.set(func() {
			way.to.forward = func(_ string, p *wire.Packet) {
				i := int(got.Add(1)) - 1
				if seq, _ := p.Uint32(message.HeaderStreamFlags); int(seq) != i || !bytes.Equal(p.Body, body[:len(p.Body)]) || len(p.Body) != i*len(body)/count {
					t.Errorf("packet %d has %d bytes, and is %d", i, len(p.Body), seq)
				}
			}
		})
		k := linked(t, way.from, b)
		for i := range count {
			p := &wire.Packet{Type: message.TypePayload, Block: wire.Block{}.Uint32(message.HeaderStreamFlags, uint32(i)), Body: body[:i*len(body)/count]}
			if err := k.OfferWhenRoom(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		until(t, fmt.Sprintf("all arrived at %s", way.to.id), func() bool { return got.Load() == count })
	}
}

// TestFair has one circuit send as much as a slow link takes, and another a word
// now and then: no word is lost, and none waits for what the first has queued.
func TestFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		n.rate = 5 << 20
		a, b := n.node("a", ""), n.node("b", "")
		a.meets(b)
		pass(time.Second)
		k := a.only()
		var mu sync.Mutex
		var most time.Duration
		var bytes int
		b.set(func() {
			b.forward = func(_ string, p *wire.Packet) {
				mu.Lock()
				defer mu.Unlock()
				if sent, ok := p.Uint64(message.HeaderStreamSeq); ok {
					most = max(most, time.Duration(time.Now().UnixNano()-int64(sent)))
				} else {
					bytes += len(p.Body)
				}
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		var done sync.WaitGroup
		done.Go(func() {
			for k.OfferWhenRoom(ctx, payload("much", strings.Repeat("x", 32<<10))) == nil {
			}
		})
		for range 40 {
			pass(90 * time.Millisecond)
			word := payload("words", "word")
			word.Block = wire.Block(word.Block).Uint64(message.HeaderStreamSeq, uint64(time.Now().UnixNano()))
			if !k.Offer(word) {
				t.Error("there is no room for a word")
			}
		}
		done.Wait()
		pass(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if most == 0 || most > 200*time.Millisecond {
			t.Errorf("a word took up to %v", most)
		}
		if bytes < 15<<20 {
			t.Errorf("of the rest only %d bytes arrived in 4 s", bytes)
		}
		a.stop()
		b.stop()
		pass(time.Minute) // sockets that are slow close slowly
	})
}

// TestWrongAddress has a router be reached where another is said to be: it is
// not taken for that.
func TestWrongAddress(t *testing.T) {
	n := newNetwork(t)
	a, b, c := n.node("a", ""), n.node("b", ""), n.node("c", "")
	for _, d := range []*node{a, b} {
		d.listen()
	}
	for _, test := range []struct{ address, peer string }{
		{b.at.Address, "c"}, {"tls:nowhere", "b"}, {"udp:127.0.0.1:1", "b"}, {"", "b"},
	} {
		if conn, err := a.opt.Dial(t.Context(), test.address, test.peer); err == nil {
			_ = conn.Close()
			t.Errorf("%s was reached at %q", test.peer, test.address)
		}
	}
	c.at.Address = b.at.Address
	a.meets(c)
	until(t, "it is dialled", func() bool {
		a.Links.mu.RLock()
		defer a.Links.mu.RUnlock()
		return a.peers["c"].targets[keyOf("", "tls", "c", "")].delay > 0
	})
	if len(a.ids())+len(b.ids()) > 0 {
		t.Errorf("links are %v, %v", a.ids(), b.ids())
	}
}

// BenchmarkTransit sends payloads from a router over another to a third.
func BenchmarkTransit(b *testing.B) {
	for _, size := range []int{1 << 10, 10 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			n := newNetwork(b)
			from, over, to := n.node("from", ""), n.node("over", ""), n.node("to", "")
			for _, d := range []*node{from, over, to} {
				d.listen()
			}
			from.meets(over)
			over.meets(to)
			next := linked(b, over, to)
			over.set(func() {
				over.forward = func(_ string, p *wire.Packet) { _ = next.OfferWhenRoom(context.Background(), p) }
			})
			var got atomic.Int64
			done := make(chan struct{})
			to.set(func() {
				to.forward = func(string, *wire.Packet) {
					if got.Add(1) == int64(b.N) {
						close(done)
					}
				}
			})
			k := linked(b, from, over)
			block, body := wire.Block{}.Text(message.HeaderStreamCircuit, "circuit").Uint64(message.HeaderStreamSeq, 1), make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if err := k.OfferWhenRoom(context.Background(), &wire.Packet{Type: message.TypePayload, Block: block, Body: body}); err != nil {
					b.Fatal(err)
				}
			}
			<-done
		})
	}
}
