package transit

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"netkeep/internal/line/message"
	"netkeep/internal/line/wire"
	"netkeep/internal/transit/client"
	"netkeep/test/networktest"
)

// numbered are headers that name a connection.
func numbered(id uint32) wire.Headers {
	h := wire.Headers{}
	h.SetUint32(message.HeaderConn, id)
	return h
}

// dials has a client dial and say something so many times.
func dials(t *testing.T, c *client.Client, service string, times int) {
	t.Helper()
	for i := range times {
		if err := exchange(within(t, networktest.Soon), c, service, 1000); err != nil {
			t.Fatalf("dial %d of %d of somebody else: %v", i+1, times, err)
		}
	}
}

// stayed fails if the router was without its controller for a moment.
func stayed(t *testing.T, router *networktest.Router) {
	t.Helper()
	if lost := router.Count("there is no connection to the controller"); lost > 0 {
		t.Fatalf("the router lost its controller %d times", lost)
	}
}

// TestLongTokens has an identity without any service say more than controllers
// take in a frame: it is refused and named, and nobody else notices.
func TestLongTokens(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("echo", true)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	user := n.Client(n.AddIdentity("user"))
	dials(t, user, service, 1)
	evil := n.AddIdentity("evil")
	r := login(t, n, evil)
	conn, err := r.connect(router, r.token)
	must(t, err)
	with := func(h wire.Headers, key int32, size int) wire.Headers {
		h[key] = make([]byte, size)
		return h
	}
	long := strings.Repeat("t", 70_000)
	seq := int32(10)
	for _, c := range []struct {
		name, want string
		times      int
		frame      func(id uint32) *wire.Frame
	}{
		{"long tokens of dials", "has at most 2048 bytes", 20, func(id uint32) *wire.Frame {
			return &wire.Frame{Type: message.TypeConnect, Headers: numbered(id), Body: []byte(long)}
		}},
		{"long tokens of hosts", "has at most 2048 bytes", 4, func(id uint32) *wire.Frame {
			return &wire.Frame{Type: message.TypeBind, Headers: numbered(id), Body: make([]byte, 9_000_000)}
		}},
		{"long data of dials", "send the rest over the connection", 5, func(id uint32) *wire.Frame {
			h := with(with(numbered(id), message.HeaderAppData, 20_000), message.HeaderInstance, 20_000)
			return &wire.Frame{Type: message.TypeConnect, Headers: h, Body: []byte("token")}
		}},
		{"long secrets of hosts", "send the rest over the connection", 5, func(id uint32) *wire.Frame {
			return &wire.Frame{Type: message.TypeBind, Headers: with(numbered(id), message.HeaderInstanceSecret, 60_000), Body: []byte("token")}
		}},
	} {
		for range c.times {
			f := c.frame(uint32(seq))
			f.Seq = seq
			seq++
			if answer := ask(t, conn, f); answer.Type != message.TypeClosed || !strings.Contains(string(answer.Body), c.want) {
				t.Fatalf("%s are answered with %d %q", c.name, answer.Type, answer.Body)
			}
		}
		dials(t, user, service, 5)
	}
	stayed(t, router)
	if lines := router.Count("more than the controller takes"); lines != 1 || !router.Logged("identity="+evil.ID) {
		t.Fatalf("the log has %d lines about it; whether it names the identity: %v", lines, router.Logged("identity="+evil.ID))
	}
	// A host with a session that is none hears so once, and is not asked for again.
	h := numbered(7)
	if answer := ask(t, conn, &wire.Frame{Type: message.TypeBind, Seq: 7, Headers: h, Body: []byte("none")}); answer.Type != message.TypeConnected {
		t.Fatalf("a host is answered with %d %q", answer.Type, answer.Body)
	}
	for {
		f, err := wire.Read(conn, wire.Bounds{Headers: 1 << 16, Body: 1 << 20})
		must(t, err)
		if id, _ := f.Headers.Uint32(message.HeaderConn); f.Type == message.TypeClosed && id == 7 {
			break
		}
	}
}

// TestSilentHost has an identity host a service, never answer, and dial it as
// often as it can: dials of others go on.
func TestSilentHost(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service, silent := n.AddService("echo", true), n.AddService("silent", false)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	user := n.Client(n.AddIdentity("user"))
	dials(t, user, service, 1)
	r := login(t, n, n.AddIdentity("evil"))
	hosting, err := r.connect(router, r.token)
	must(t, err)
	h := numbered(1)
	h.SetBool(message.HeaderTellsBound, true)
	_, err = hosting.Write((&wire.Frame{Type: message.TypeBind, Seq: 1, Headers: h, Body: []byte(r.session(silent, "Bind"))}).Append(nil))
	must(t, err)
	must(t, hosting.SetReadDeadline(time.Now().Add(networktest.Soon)))
	for {
		f, err := wire.Read(hosting, wire.Bounds{Headers: 1 << 16, Body: 1 << 20})
		must(t, err)
		if f.Type == message.TypeBound {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, hosting) }()
	must(t, hosting.SetReadDeadline(time.Time{}))
	token := []byte(r.session(silent, "Dial"))
	const many = 600
	refused := make(chan int, 1)
	dialling, err := r.connect(router, r.token)
	must(t, err)
	go func() { refused <- refusals(dialling, "too many requests of this identity") }()
	for i := range uint32(many) {
		_, err := dialling.Write((&wire.Frame{Type: message.TypeConnect, Seq: int32(i) + 1, Headers: numbered(i + 1), Body: token}).Append(nil))
		must(t, err)
	}
	dials(t, user, service, 20)
	must(t, dialling.Close())
	if got := <-refused; got < many/2 {
		t.Fatalf("of %d dials at once %d were refused", many, got)
	}
}

// refusals counts answers with a text until the connection ends.
func refusals(conn net.Conn, text string) int {
	count := 0
	for {
		f, err := wire.Read(conn, wire.Bounds{Headers: 1 << 16, Body: 1 << 20})
		if err != nil {
			return count
		}
		if f.Type == message.TypeClosed && strings.Contains(string(f.Body), text) {
			count++
		}
	}
}
