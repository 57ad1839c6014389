package link

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// sever ends all connections of a link, as a cable does that is cut.
func (k *Link) sever() {
	s := k.parts()
	for _, c := range slices.Concat(s.data, s.acks) {
		c.Close(nil)
	}
}

// ended is why the first connection of a link has.
func (k *Link) ended() error { return k.parts().data[0].Err() }

// strand is the hello of one of several connections: the first, unless it shows
// a secret.
func (c *caller) strand(linkID, typ string, secret []byte) channel.Hello {
	h := c.hello(linkID)
	h.Headers.SetBool(message.HeaderGrouped, true)
	h.Headers.SetText(message.HeaderChannelType, typ)
	if secret == nil {
		h.Headers.SetBool(message.HeaderGroupFirst, true)
	} else {
		h.Headers[message.HeaderGroupSecret] = secret
	}
	return h
}

// bundled dials a router with the first of several connections.
func (c *caller) bundled(linkID string) (net.Conn, []byte) {
	c.t.Helper()
	conn := c.socket()
	answer, err := channel.Greet(conn, time.Now().Add(time.Minute), c.strand(linkID, dataStrand, nil))
	if err != nil {
		c.t.Fatal(err)
	}
	secret := answer[message.HeaderGroupSecret]
	if !answer.Bool(message.HeaderGrouped) || answer.Text(message.HeaderChannelType) != dataStrand || len(secret) < 16 ||
		answer.Text(message.HeaderConnectionID) != "conn-"+linkID || answer.Text(message.HeaderListenerID) != c.to.id {
		c.t.Fatalf("the answer is %v", answer)
	}
	return conn, secret
}

// heardOn reads from connections until they end, and tells what came on each.
type heardOn struct {
	mu   sync.Mutex
	came map[net.Conn][]string
}

func (h *heardOn) listen(conn net.Conn) {
	for {
		f, err := wire.Read(conn, wire.Bounds{Headers: 1000, Body: 1000})
		if err != nil {
			return
		}
		if f.Type != message.TypeHeartbeat {
			h.mu.Lock()
			h.came[conn] = append(h.came[conn], string(f.Body))
			h.mu.Unlock()
		}
	}
}

func (h *heardOn) on(conn net.Conn) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.came[conn])
}

// TestStrands has a peer come with several connections for one link. Each
// circuit keeps to one of them, and the link lasts as long as one for data does.
func TestStrands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.node("r", "")
		c := n.caller(t, "newer", r)
		first, secret := c.bundled("link")
		var said struct {
			Links []struct{ ID, Dest string }
		}
		if err := json.Unmarshal([]byte(r.Inspect()), &said); err != nil || len(said.Links) != 1 || said.Links[0].ID != "link" || said.Links[0].Dest != "newer" {
			t.Errorf("%s, %v", r.Inspect(), err)
		}
		second, err := c.greet(c.strand("link", dataStrand, secret))
		if err != nil {
			t.Fatal(err)
		}
		again := c.strand("link", ackStrand, secret)
		again.Headers.SetBool(message.HeaderGroupFirst, true) // some say so of all
		acks, err := c.greet(again)
		if err != nil {
			t.Fatal(err)
		}
		h := &heardOn{came: map[net.Conn][]string{}}
		for _, conn := range []net.Conn{first, second, acks} {
			go h.listen(conn)
			if _, err := conn.Write(payload("circuit", "from there").Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := r.bodies("link"); len(got) != 3 {
			t.Errorf("over all came %q", got)
		}
		k := r.only()
		for i := range 100 {
			circuit := fmt.Sprint("circuit", i%20)
			if !k.Offer(payload(circuit, circuit)) {
				t.Fatal("nothing can be sent")
			}
		}
		ack := func() *wire.Packet {
			return &wire.Packet{Type: message.TypeAck, Block: wire.Block{}.Text(message.HeaderStreamCircuit, "circuit"), Body: []byte("an ack")}
		}
		if !k.Offer(ack()) {
			t.Fatal("nothing can be acknowledged")
		}
		synctest.Wait()
		one, two := h.on(first), h.on(second)
		if len(one) == 0 || len(two) == 0 || len(one)+len(two) != 100 || slices.ContainsFunc(one, func(circuit string) bool { return slices.Contains(two, circuit) }) {
			t.Errorf("of 20 circuits came %d packets on one and %d on the other: %q, %q", len(one), len(two), one, two)
		}
		if got := h.on(acks); !slices.Equal(got, []string{"an ack"}) {
			t.Errorf("for acknowledgements came %q", got)
		}

		_ = acks.Close()
		_ = first.Close()
		synctest.Wait()
		if r.only() != k || !k.Offer(payload("circuit", "rest")) || !k.Offer(ack()) {
			t.Fatal("the link ends with the first of its connections")
		}
		synctest.Wait()
		if got := h.on(second)[len(two):]; !slices.Contains(got, "rest") || !slices.Contains(got, "an ack") {
			t.Errorf("on what is left came %q", got)
		}
		_ = second.Close()
		synctest.Wait()
		if len(r.ids()) > 0 || len(r.bundles) > 0 {
			t.Error("the link outlives its connections")
		}
		if _, err := c.greet(c.strand("link", dataStrand, secret)); err == nil {
			t.Error("a link that is over gets another connection")
		}
	})
}

// TestStrangeStrand lists connections that do not become part of a link.
func TestStrangeStrand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.node("r", "")
		c := n.caller(t, "peer", r)
		conn, secret := c.bundled("link")
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		thief := n.caller(t, "thief", r)
		disguised := thief.strand("link", dataStrand, secret)
		disguised.Headers.SetText(message.HeaderLinkRouter, "peer")
		elsewhere := c.strand("link", dataStrand, secret)
		elsewhere.ID = "other"
		for name, try := range map[string]func() (net.Conn, error){
			"another secret":      func() (net.Conn, error) { return c.greet(c.strand("link", dataStrand, []byte("guess"))) },
			"another router":      func() (net.Conn, error) { return thief.greet(thief.strand("link", dataStrand, secret)) },
			"another certificate": func() (net.Conn, error) { return thief.greet(disguised) },
			"another link":        func() (net.Conn, error) { return c.greet(elsewhere) },
			"no link":             func() (net.Conn, error) { return c.greet(c.strand("none", dataStrand, secret)) },
		} {
			if _, err := try(); err == nil {
				t.Errorf("%s: it is welcome", name)
			}
		}
		for range maxStrands - 1 {
			conn, err := c.greet(c.strand("link", ackStrand, secret))
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
		if _, err := c.greet(c.strand("link", ackStrand, secret)); err == nil {
			t.Error("there is no end of connections")
		}
		if k := r.only(); k.ID() != "link" || k.Peer() != "peer" {
			t.Errorf("the router has the links %v", r.ids())
		}
	})
}

// TestStrandsAlive has a peer answer signs of life over another connection than
// it was asked over, which is as good, and then not at all.
func TestStrandsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.node("r", "")
		c := n.caller(t, "peer", r)
		first, secret := c.bundled("link")
		other, err := c.greet(c.strand("link", ackStrand, secret))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, other) }()
		var mu sync.Mutex
		mute := false
		go func() {
			for {
				f, err := wire.Read(first, wire.Bounds{Headers: 1000, Body: 1000})
				if err != nil {
					return
				}
				mu.Lock()
				stamp, asks := f.Headers.Uint64(message.HeaderHeartbeat)
				asks = asks && !mute
				mu.Unlock()
				if asks {
					_, _ = other.Write((&wire.Packet{Type: message.TypeHeartbeat, Block: wire.Block{}.Uint64(message.HeaderHeartbeatResponse, stamp)}).Append(nil))
				}
			}
		}()
		pass(10 * silence)
		if k := r.only(); k.histogram().Count == 0 || k.histogram().Max > int64(unheard) {
			t.Errorf("it measures %+v", k.histogram())
		}
		mu.Lock()
		mute = true
		mu.Unlock()
		pass(silence + 3*channel.Beat)
		if len(r.ids()) > 0 {
			t.Error("a link that says nothing stays")
		}
	})
}

// TestStrandsRedialled has a router dial several connections, and those that it
// loses again; the controller is told of all. A peer that is too old is not
// asked for any.
func TestStrandsRedialled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.node("a", ""), n.node("b", "")
		var states []message.LinkState
		a.opt.Strands = 3
		a.opt.State = func(m message.LinkState) { a.set(func() { states = append(states, m) }) }
		a.meets(b)
		pass(2 * strandWait)
		k := a.only()
		whole := func() bool {
			s, other := k.parts(), b.only().parts()
			return len(s.data) == 3 && len(s.acks) == 1 && len(other.data) == 3 && len(other.acks) == 1
		}
		if !whole() {
			t.Fatalf("it has %+v", k.conns())
		}
		a.set(func() {
			if last := states[len(states)-1]; last.ID != k.id || last.Iteration != 1 || len(last.Conns.Conns) != 4 || len(states) > int(last.Conns.Iteration) {
				t.Errorf("the controller is told %+v", states)
			}
		})
		b.set(func() { b.down = true })
		k.parts().data[0].Close(nil)
		k.parts().acks[0].Close(nil)
		pass(2 * maxStrandWait)
		if a.only() != k || whole() || !k.Offer(payload("circuit", "on what is left")) {
			t.Fatalf("with two lost it has %+v", k.conns())
		}
		b.set(func() { b.down = false })
		pass(2 * maxStrandWait)
		if a.only() != k || !whole() {
			t.Errorf("after that it has %+v", k.conns())
		}
		if got := b.bodies(k.id); !slices.Equal(got, []string{"on what is left"}) {
			t.Errorf("there came %q", got)
		}
		k.sever()
		pass(2 * strandWait)
		if again := a.only(); again == k || again.iteration != 2 || len(again.parts().data) != 3 {
			t.Errorf("after all were lost there is %s %d with %+v", again.id, again.iteration, again.conns())
		}
	})
	for version, takes := range map[string]bool{
		"": false, "v1.6.5": false, "v1.5.99": false, "v0.30.0": false, "1.6.20": false, "v1.6.6": true, "v1.10.0": true, "v2.0.3": true, "v2.1.0-pre2": true, "v0.0.0": true,
	} {
		if takesStrands(version) != takes {
			t.Errorf("%q: %v", version, !takes)
		}
	}
}

// TestStrandsTLS sends much over a link of several connections between two
// routers: all of every circuit arrives, in its order.
func TestStrandsTLS(t *testing.T) {
	n := newNetwork(t)
	a, b := n.node("a", ""), n.node("b", "")
	for _, d := range []*node{a, b} {
		d.listen()
	}
	a.opt.Strands = 3
	a.meets(b)
	k := linked(t, a, b)
	until(t, "all connections are there", func() bool { return k.missing(3) == "" && len(b.only().parts().acks) == 1 })
	const circuits, count = 12, 200
	body := bytes.Repeat([]byte("0123456789"), 3000)
	for _, way := range []struct{ from, to *node }{{a, b}, {b, a}} {
		var mu sync.Mutex
		got := map[string]uint32{}
		way.to.set(func() {
			way.to.forward = func(_ string, p *wire.Packet) {
				mu.Lock()
				defer mu.Unlock()
				circuit := string(circuitOf(p))
				if seq, _ := p.Uint32(message.HeaderStreamFlags); seq != got[circuit] || !bytes.Equal(p.Body, body) {
					t.Errorf("packet %d of %s is %d, with %d bytes", got[circuit], circuit, seq, len(p.Body))
				}
				got[circuit]++
			}
		})
		var sent sync.WaitGroup
		for c := range circuits {
			sent.Go(func() {
				for i := range uint32(count) {
					block := wire.Block{}.Text(message.HeaderStreamCircuit, fmt.Sprint("circuit", c)).Uint32(message.HeaderStreamFlags, i)
					if err := way.from.only().OfferWhenRoom(t.Context(), &wire.Packet{Type: message.TypePayload, Block: block, Body: body}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		sent.Wait()
		until(t, "all arrived at "+way.to.id, func() bool {
			mu.Lock()
			defer mu.Unlock()
			all := uint32(0)
			for _, n := range got {
				all += n
			}
			return all == circuits*count
		})
	}
}
