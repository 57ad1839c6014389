package transit

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/networktest"
)

// numbered are headers that name a connection.
func numbered(id uint32) wire.Headers {
	h := wire.Headers{}
	h.SetUint32(message.HeaderConn, id)
	return h
}

// dials has a client dial and say something so many times.
func dials(t *testing.T, c *sdk.Client, service string, times int) {
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
	must(t, dialling.SetReadDeadline(time.Now().Add(networktest.Soon)))
	go func() { refused <- refusals(dialling, "too many requests of this identity", many/2) }()
	for i := range uint32(many) {
		_, err := dialling.Write((&wire.Frame{Type: message.TypeConnect, Seq: int32(i) + 1, Headers: numbered(i + 1), Body: token}).Append(nil))
		must(t, err)
	}
	dials(t, user, service, 20)
	if got := <-refused; got < many/2 {
		t.Fatalf("of %d dials at once %d were refused", many, got)
	}
	must(t, dialling.Close())
}

// refusals counts answers with a text, up to so many.
func refusals(conn net.Conn, text string, most int) (count int) {
	for count < most {
		f, err := wire.Read(conn, wire.Bounds{Headers: 1 << 16, Body: 1 << 20})
		if err != nil {
			return count
		}
		if f.Type == message.TypeClosed && strings.Contains(string(f.Body), text) {
			count++
		}
	}
	return count
}

// TestGoneSession has a client dial with a session that was deleted: the answer
// has the code and the very words by which clients of others know that they need
// another.
func TestGoneSession(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("echo", false)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	r := login(t, n, n.AddIdentity("user"))
	conn, err := r.connect(router, r.token)
	must(t, err)
	token := r.session(service, "Dial")
	for _, s := range n.Admin.Get(networktest.Management + "sessions?limit=500").Want(200).List() {
		if s["type"] == "Dial" && s["service"].(M)["name"] == service {
			n.Admin.Delete(networktest.Management + "sessions/" + s["id"].(string)).Want(200)
		}
	}
	answer := ask(t, conn, &wire.Frame{Type: message.TypeConnect, Seq: 5, Headers: numbered(1), Body: []byte(token)})
	code, _ := answer.Headers.Uint32(message.HeaderErrorCode)
	if answer.Type != message.TypeClosed || string(answer.Body) != "Invalid Session" || message.ErrorCode(code) != message.CodeInvalidSession {
		t.Fatalf("the session is gone, and the answer is %d with code %d: %q", answer.Type, code, answer.Body)
	}
}

// TestLogOfLinks has strangers say that they are routers: the log tells of it,
// and is not filled by it.
func TestLogOfLinks(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	r := login(t, n, n.AddIdentity("stranger"))
	start := time.Now()
	for range 200 {
		conn, err := (&tls.Dialer{Config: &tls.Config{
			RootCAs: r.roots, Certificates: []tls.Certificate{r.cert}, NextProtos: []string{message.LinkALPN},
		}}).DialContext(t.Context(), "tcp", router.Address)
		must(t, err)
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\n\r\nand a little more")
		must(t, err)
		cut(t, conn)
		_ = conn.Close()
	}
	// Sixty at once, and one more with each second.
	took := time.Since(start)
	if lines := router.Count("a link was refused"); lines == 0 || lines > 61+int(took.Seconds()) {
		t.Fatalf("the log has %d lines of 200 who were turned away within %v", lines, took)
	}
}

// TestUnread has an identity send long messages to clients of its own that do
// not read: the router keeps a bounded part of them, for both kinds of hosts.
func TestUnread(t *testing.T) {
	for name, flow := range map[string]bool{"held by clients": true, "held by routers": false} {
		t.Run(name, func(t *testing.T) {
			n := networktest.New(t, shared)
			router := n.AddRouter("one")
			service := n.AddService("sink", false)
			echo := n.AddService("echo", true)
			n.Echo(n.Client(n.AddIdentity("host")), echo)
			user := n.Client(n.AddIdentity("user"))
			dials(t, user, echo, 1)
			r := login(t, n, n.AddIdentity("evil"))
			bind, dial := []byte(r.session(service, "Bind")), []byte(r.session(service, "Dial"))
			const hosts, size = 12, 32 << 20
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			long := make([]byte, size)
			written := make(chan error, hosts)
			for i := range hosts {
				deaf(r, router, bind, i, flow)
				go func() { written <- tell(r, router, dial, i, flow, long) }()
			}
			// What the router does not take stays with who sends it.
			patience := time.After(5 * time.Second)
			for done := 0; done < hosts; {
				select {
				case err := <-written:
					must(t, err)
					done++
				case <-patience:
					done = hosts
				}
			}
			dials(t, user, echo, 5)
			// What was let go while the collector was at work counts until the next time.
			var grown int64
			for deadline := time.Now().Add(networktest.Soon); ; {
				runtime.GC()
				runtime.ReadMemStats(&after)
				if grown = int64(after.HeapAlloc) - int64(before.HeapAlloc); grown <= 256<<20 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%d messages of %d MiB that nobody reads take %d MiB", hosts, size>>20, grown>>20)
				}
			}
			t.Logf("%d messages of %d MiB that nobody reads take %d MiB", hosts, size>>20, grown>>20)
		})
	}
}

// deaf hosts a service under a number, takes one connection, and reads nothing
// from then on.
func deaf(r *raw, router *networktest.Router, token []byte, number int, flow bool) {
	r.t.Helper()
	conn, err := r.connect(router, r.token)
	must(r.t, err)
	h := numbered(1)
	h.SetText(message.HeaderInstance, fmt.Sprint(number))
	for _, key := range []int32{message.HeaderTellsBound, message.HeaderRouterNumbers} {
		h.SetBool(key, true)
	}
	h.SetBool(message.HeaderClientFlow, flow)
	_, err = conn.Write((&wire.Frame{Type: message.TypeBind, Seq: 1, Headers: h, Body: token}).Append(nil))
	must(r.t, err)
	next := func(typ int32) (*wire.Frame, error) {
		for {
			if f, err := wire.Read(conn, wire.Bounds{Headers: 1 << 16, Body: 1 << 20}); err != nil || f.Type == typ {
				return f, err
			}
		}
	}
	must(r.t, conn.SetDeadline(time.Now().Add(networktest.Soon)))
	_, err = next(message.TypeBound)
	must(r.t, err)
	go func() {
		asked, err := next(message.TypeDial)
		if err != nil {
			return
		}
		h := wire.Headers{}
		h.SetUint32(message.HeaderReplyFor, uint32(asked.Seq))
		_, _ = conn.Write((&wire.Frame{Type: message.TypeDialSuccess, Seq: 2, Headers: h}).Append(nil))
	}()
}

// tell dials the host with a number and sends it one message.
func tell(r *raw, router *networktest.Router, token []byte, number int, flow bool, text []byte) error {
	conn, err := r.connect(router, r.token)
	if err != nil {
		return err
	}
	h := numbered(1)
	h.SetText(message.HeaderInstance, fmt.Sprint(number))
	h.SetBool(message.HeaderClientFlow, flow)
	if _, err := conn.Write((&wire.Frame{Type: message.TypeConnect, Seq: 1, Headers: h, Body: token}).Append(nil)); err != nil {
		return err
	}
	answer, err := wire.Read(conn, wire.Bounds{Headers: 1 << 16, Body: 1 << 20})
	if err != nil || answer.Type != message.TypeConnected {
		return fmt.Errorf("a dial is answered with %+v: %v", answer, err)
	}
	m := &wire.Frame{Type: message.TypeData, Seq: 2, Headers: numbered(1)}
	if flow {
		m.Type = message.TypePayload
		m.Headers.SetText(message.HeaderStreamCircuit, answer.Headers.Text(message.HeaderClientCircuit))
		m.Headers.SetUint64(message.HeaderStreamSeq, 0)
	}
	// The text is not copied: what it takes is the router's.
	head := m.Append(nil)
	binary.LittleEndian.PutUint32(head[16:], uint32(len(text)))
	if _, err := conn.Write(head); err != nil {
		return err
	}
	for len(text) > 0 {
		part := text[:min(len(text), 1<<20)]
		if _, err := conn.Write(part); err != nil {
			return nil // the test is over
		}
		text = text[len(part):]
	}
	return nil
}
