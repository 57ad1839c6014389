package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// caller is somebody who dials a router by hand.
type caller struct {
	t    *testing.T
	n    *network
	to   *node
	cert tls.Certificate
	id   string
}

// caller is a router of the network that does what a test says.
func (n *network) caller(t *testing.T, id string, to *node) *caller {
	c := &caller{t, n, to, n.certificate(id), id}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owners[fingerprintOf(c.cert)] = id
	return c
}

func (c *caller) socket() net.Conn {
	c.t.Helper()
	conn, err := c.n.socket(c.t.Context(), c.to, c.cert)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// hello is a good one.
func (c *caller) hello(linkID string) channel.Hello {
	h := channel.Hello{ID: linkID, Headers: wire.Headers{}}
	h.Headers.SetText(message.HeaderLinkRouter, c.id)
	h.Headers.SetText(message.HeaderLinkConn, "conn-"+linkID)
	h.Headers.SetUint32(message.HeaderLinkIteration, 1)
	return h
}

func (c *caller) greet(h channel.Hello) (net.Conn, error) {
	c.t.Helper()
	conn := c.socket()
	_, err := channel.Greet(conn, time.Now().Add(time.Minute), h)
	return conn, err
}

// TestRefused lists what does not become a link.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *caller, h *channel.Hello)
		says   string
	}{
		"a certificate of another network": {func(c *caller, h *channel.Hello) { c.cert = newNetwork(c.t).certificate("peer") }, ""},
		"a certificate of another router":  {func(c *caller, h *channel.Hello) { c.cert = c.n.caller(c.t, "other", c.to).cert }, "verified"},
		"a victim's certificate as filler": {func(c *caller, h *channel.Hello) {
			victim := c.cert
			c.cert = c.n.caller(c.t, "other", c.to).cert
			c.cert.Certificate = append(c.cert.Certificate, victim.Certificate...)
		}, "verified"},
		"a hello for another router": {func(_ *caller, h *channel.Hello) { h.Headers.SetText(message.HeaderLinkDialed, "other") }, "for another router"},
		"a hello for no router":      {func(_ *caller, h *channel.Hello) { h.Headers.SetText(message.HeaderLinkDialed, "") }, "for another router"},
		"the router itself":          {func(_ *caller, h *channel.Hello) { h.Headers.SetText(message.HeaderLinkRouter, "r") }, "itself"},
		"nobody":                     {func(_ *caller, h *channel.Hello) { delete(h.Headers, message.HeaderLinkRouter) }, "no router's id"},
		"no id":                      {func(_ *caller, h *channel.Hello) { h.ID = "" }, "no link's id"},
		"an id that is too long":     {func(_ *caller, h *channel.Hello) { h.ID = strings.Repeat("x", 65) }, "is none"},
		"an id of several lines":     {func(_ *caller, h *channel.Hello) { h.ID = "x\ny" }, "is none"},
		"an id that others have":     {func(_ *caller, h *channel.Hello) { h.ID = "taken" }, "another link's"},
		"a binding of several lines": {func(_ *caller, h *channel.Hello) { h.Headers.SetText(message.HeaderLinkBinding, "x\ny") }, "is none"},
		"a part that is none":        {func(_ *caller, h *channel.Hello) { h.Headers[message.HeaderLinkSplit] = []byte{3} }, "not known"},
		"a part of nothing": {func(_ *caller, h *channel.Hello) {
			h.Headers[message.HeaderLinkSplit], h.Headers[message.HeaderLinkConn] = []byte{1}, nil
		}, "belong together"},
		"no controller that could say": {func(c *caller, _ *channel.Hello) { c.n.owners = map[string]string{} }, "verified"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				r := n.node("r", "")
				owner := n.caller(t, "owner", r)
				if _, err := owner.greet(owner.hello("taken")); err != nil {
					t.Fatal(err)
				}
				c := n.caller(t, "peer", r)
				h := c.hello("link")
				test.change(c, &h)
				conn, err := n.socket(t.Context(), r, c.cert)
				if err == nil {
					_, err = channel.Greet(conn, time.Now().Add(time.Minute), h)
					_ = conn.Close()
				}
				if err == nil || !strings.Contains(err.Error(), test.says) || test.says != "" && !errors.Is(err, channel.ErrRefused) {
					t.Errorf("got %v", err)
				}
				synctest.Wait()
				if k := r.only(); k.ID() != "taken" || k.Peer() != "owner" {
					t.Errorf("the router has the links %v", r.ids())
				}
				if sockets, halves := r.pending(); sockets+halves > 0 {
					t.Errorf("left behind are %d sockets and %d halves", sockets, halves)
				}
			})
		})
	}
}

// TestGarbage has callers send what is no hello, and nothing at all.
func TestGarbage(t *testing.T) {
	huge := (&wire.Frame{Type: message.TypeHello, Body: make([]byte, 5000)}).Append(nil)
	for name, data := range map[string][]byte{
		"nothing": nil, "half a prefix": {3, 6, 9}, "HTTP": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "a huge hello": huge[:20],
		"another frame": (&wire.Frame{Type: message.TypePayload}).Append(nil),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				r := n.node("r", "")
				conn := n.caller(t, "peer", r).socket()
				began := time.Now()
				if _, err := conn.Write(data); err != nil {
					t.Fatal(err)
				}
				rest, err := io.ReadAll(conn)
				if took := time.Since(began); len(rest) > 0 || took > helloWait {
					t.Errorf("after %v came %d bytes, %v", took, len(rest), err)
				}
				synctest.Wait()
				if sockets, _ := r.pending(); len(r.ids()) > 0 || sockets > 0 {
					t.Errorf("left behind are %v, %d sockets", r.ids(), sockets)
				}
			})
		})
	}
}

// TestFlood has one caller open as many sockets as it can and say nothing:
// others get in.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.node("r", "")
		flooder := n.caller(t, "flooder", r)
		for range 5 * maxPendingEach {
			flooder.socket()
		}
		synctest.Wait()
		if sockets, _ := r.pending(); sockets != maxPendingEach {
			t.Errorf("%d of one certificate are waited for", sockets)
		}
		other := n.caller(t, "other", r)
		if _, err := other.greet(other.hello("link")); err != nil {
			t.Error(err)
		}
		pass(helloWait + time.Second)
		if sockets, _ := r.pending(); sockets != 0 {
			t.Errorf("%d are still waited for", sockets)
		}
	})
}

// TestTooMany has one peer make as many links as it can, whole and half ones.
func TestTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.node("r", "")
		c := n.caller(t, "greedy", r)
		refused := 0
		for i := range maxPerPeer + 5 {
			h := c.hello(fmt.Sprint("link", i))
			h.Headers.SetText(message.HeaderLinkBinding, fmt.Sprint("eth", i))
			if _, err := c.greet(h); err != nil {
				refused++
			}
		}
		synctest.Wait()
		if refused != 5 || len(r.ids()) != maxPerPeer {
			t.Errorf("%d were refused, and there are %d", refused, len(r.ids()))
		}
		refused = 0
		for i := range maxHalvesEach + 3 {
			h := c.hello(fmt.Sprint("half", i))
			h.Headers[message.HeaderLinkSplit] = []byte{splitData}
			if _, err := c.greet(h); err != nil {
				refused++
			}
		}
		synctest.Wait()
		if _, halves := r.pending(); refused != 3 || halves != maxHalvesEach {
			t.Errorf("%d halves were refused, and there are %d", refused, halves)
		}
		pass(partWait + time.Second)
		if _, halves := r.pending(); halves != 0 {
			t.Errorf("%d halves are still there", halves)
		}
	})
}

// TestMute has a peer say nothing after its hello: the link counts as slow, and
// then as dead.
func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.node("r", "")
		c := n.caller(t, "mute", r)
		conn, err := c.greet(c.hello("link"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		if len(r.Latencies()) > 0 || r.only().Latency() != 0 {
			t.Errorf("what was not measured is %v", r.Latencies())
		}
		pass(unheard + time.Second)
		if h := r.Latencies()["link.link.latency"]; h.Count != 1 || h.Mean != 8888888888888 {
			t.Errorf("after half a minute of silence the latency is %v", h)
		}
		pass(silence)
		if len(r.ids()) > 0 {
			t.Error("after a minute and a half of silence there is the link")
		}
	})
}

// TestLatency measures a link that takes its time.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.node("r", "")
		c := n.caller(t, "slow", r)
		conn, err := c.greet(c.hello("link"))
		if err != nil {
			t.Fatal(err)
		}
		measured := 0
		r.opt.Measured = func() { measured++ }
		wait := 20 * time.Millisecond
		for range 7 {
			f, err := wire.Read(conn, wire.Bounds{Headers: 100, Body: 100})
			if err != nil {
				t.Fatal(err)
			}
			pass(wait)
			wait = 40 * time.Millisecond
			f.Headers[message.HeaderHeartbeatResponse] = f.Headers[message.HeaderHeartbeat]
			delete(f.Headers, message.HeaderHeartbeat)
			if _, err := conn.Write(f.Append(nil)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if first := r.Latencies()["link.link.latency"]; first.Count == 1 && (first.Mean != 20e6 || time.Since(r.only().since) > time.Second) {
				t.Errorf("at first it was %v, after %v", first, time.Since(r.only().since))
			}
		}
		if measured != 1 {
			t.Errorf("%d times it was said that the link is measured", measured)
		}
		if h := r.Latencies()["link.link.latency"]; h != (message.Histogram{Count: 6, Min: 40e6, Max: 40e6, Mean: 40e6}) || r.only().Latency() != 40*time.Millisecond {
			t.Errorf("of the last minute it is %+v", h)
		}
	})
}

// TestSplit has a peer of an older kind: one connection for payloads, and one
// for acknowledgements.
func TestSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.node("r", "")
		c := n.caller(t, "older", r)
		part := func(split byte) (net.Conn, error) {
			h := c.hello("link")
			h.Headers[message.HeaderLinkSplit] = []byte{split}
			return c.greet(h)
		}
		data, err := part(splitData)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := data.Write((&wire.Packet{Type: message.TypePayload, Body: []byte("early")}).Append(nil)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(r.ids()) > 0 || len(r.bodies("link")) > 0 {
			t.Error("half a link is one")
		}
		if _, err := part(splitData); err == nil {
			t.Error("two connections are for payloads")
		}
		thief := n.caller(t, "thief", r)
		h := thief.hello("link")
		h.Headers[message.HeaderLinkSplit] = []byte{splitAcks}
		if _, err := thief.greet(h); err == nil {
			t.Error("the other half is another router's")
		}
		acks, err := part(splitAcks)
		if err != nil {
			t.Fatal(err)
		}
		k := r.only()
		if !k.Offer(payload("circuit", "a payload")) || !k.Offer(&wire.Packet{Type: message.TypeAck, Body: []byte("an ack")}) {
			t.Error("nothing can be sent")
		}
		for conn, want := range map[net.Conn]string{data: "a payload", acks: "an ack"} {
			if got := next(t, conn); string(got.Body) != want {
				t.Errorf("%q came where %q should", got.Body, want)
			}
			if _, err := conn.Write(payload("circuit", want).Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := r.bodies("link"); len(got) != 2 {
			t.Errorf("over both came %q", got)
		}
		_ = acks.Close()
		synctest.Wait()
		if len(r.ids()) > 0 {
			t.Error("the link outlives one of its connections")
		}
		if _, err := io.ReadAll(data); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the other connection: %v", err)
		}
	})
}

// next is the next frame that is no sign of life.
func next(t *testing.T, conn net.Conn) *wire.Frame {
	t.Helper()
	for {
		f, err := wire.Read(conn, wire.Bounds{Headers: 1000, Body: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if f.Type != message.TypeHeartbeat {
			return f
		}
	}
}

// TestStopped has a router stop while it is busy: nothing is left.
func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.node("a", ""), n.node("b", "")
		a.meets(b)
		c := n.caller(t, "c", a)
		h := c.hello("half")
		h.Headers[message.HeaderLinkSplit] = []byte{splitData}
		if _, err := c.greet(h); err != nil {
			t.Fatal(err)
		}
		silent := c.socket()
		go func() { _, _ = io.Copy(io.Discard, silent) }()
		synctest.Wait()
		a.stop()
		synctest.Wait()
		if sockets, halves := a.pending(); len(a.ids())+a.known()+halves+sockets > 0 {
			t.Errorf("left are %v, %d peers, %d halves, %d sockets", a.ids(), a.known(), halves, sockets)
		}
		if err := a.add(a.bare("late", 1, true)); err != errOver {
			t.Errorf("a link that is late: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		conn, err := n.socket(ctx, a, c.cert)
		if err == nil {
			_, err = channel.Greet(conn, time.Now().Add(time.Minute), c.hello("later"))
		}
		if err == nil {
			t.Error("a router that has stopped takes links")
		}
	})
}
