package transit

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/networktest"
)

// socket says hello with headers of its own, and returns the answer's.
func (r *raw) socket(router *networktest.Router, h wire.Headers) (net.Conn, wire.Headers, error) {
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: r.roots, Certificates: []tls.Certificate{r.cert}}}).DialContext(r.t.Context(), "tcp", router.Address)
	must(r.t, err)
	r.t.Cleanup(func() { _ = conn.Close() })
	h.SetText(message.HeaderClientToken, r.token)
	answer, err := channel.Greet(conn, time.Now().Add(networktest.Soon), channel.Hello{ID: "whoever", Headers: h})
	return conn, answer, err
}

// group are the headers of a hello of one of several sockets.
func group(kind, id string, secret []byte) wire.Headers {
	h := wire.Headers{}
	h.SetBool(message.HeaderGrouped, true)
	h.SetText(message.HeaderChannelType, kind)
	if id == "" {
		h.SetBool(message.HeaderGroupFirst, true)
		return h
	}
	h.SetText(message.HeaderConnectionID, id)
	h[message.HeaderGroupSecret] = secret
	return h
}

// TestGroup has a client come with several sockets: requests on one of them are
// answered on another, and nobody else can join.
func TestGroup(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("echo", false)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	me := login(t, n, n.AddIdentity("me"))
	first, answer, err := me.socket(router, group("edge.default", "", nil))
	must(t, err)
	id, secret := answer.Text(message.HeaderConnectionID), answer[message.HeaderGroupSecret]
	if !answer.Bool(message.HeaderGrouped) || id == "" || len(secret) < 16 {
		t.Fatalf("the first of several sockets was answered with %v", answer)
	}
	ask(t, first, &wire.Frame{Type: message.TypeLatency, Seq: 1}) // it is in

	t.Run("strangers", func(t *testing.T) {
		other := login(t, n, n.AddIdentity("other"))
		for name, try := range map[string]func() (net.Conn, wire.Headers, error){
			"another secret": func() (net.Conn, wire.Headers, error) {
				return me.socket(router, group("edge.default", id, []byte("guess")))
			},
			"another certificate": func() (net.Conn, wire.Headers, error) { return other.socket(router, group("edge.default", id, secret)) },
			"another group": func() (net.Conn, wire.Headers, error) {
				return me.socket(router, group("edge.default", "nobody", secret))
			},
		} {
			if conn, _, err := try(); err == nil {
				cut(t, conn)
				t.Errorf("%s: was welcomed", name)
			}
		}
	})
	t.Run("no secret", func(t *testing.T) {
		// Older clients know none: such a socket is one of its own.
		alone, answer, err := me.socket(router, group("edge.default", id, nil))
		must(t, err)
		if answer.Bool(message.HeaderGrouped) || answer.Text(message.HeaderConnectionID) == id {
			t.Fatalf("a socket that shows no secret joins others: %v", answer)
		}
		ask(t, alone, &wire.Frame{Type: message.TypeLatency, Seq: 1})
	})
	control, _, err := me.socket(router, group("edge.control", id, secret))
	must(t, err)
	h := wire.Headers{}
	h.SetUint32(message.HeaderConn, 1)
	_, err = control.Write((&wire.Frame{Type: message.TypeConnect, Seq: 2, Headers: h, Body: []byte(me.session(service, "Dial"))}).Append(nil))
	must(t, err)
	must(t, first.SetDeadline(time.Now().Add(networktest.Soon)))
	got, err := wire.Read(first, wire.Bounds{Headers: 1 << 16, Body: 1 << 20})
	must(t, err)
	if got.Type != message.TypeConnected {
		t.Fatalf("a dial on the socket for requests was answered with %d %q", got.Type, got.Body)
	}
	// Without the socket for requests it goes on, without the other it is over.
	must(t, control.Close())
	ask(t, first, &wire.Frame{Type: message.TypeLatency, Seq: 3})
	second, _, err := me.socket(router, group("edge.control", id, secret))
	must(t, err)
	must(t, first.Close())
	cut(t, second)
}

// bound hosts with a raw client, and waits until the controller has agreed.
func bound(t *testing.T, conn net.Conn, seq int32, id uint32, token, listener string, headers wire.Headers) {
	t.Helper()
	headers.SetUint32(message.HeaderConn, id)
	headers.SetText(message.HeaderBindID, listener)
	headers.SetBool(message.HeaderTellsBound, true)
	if answer := ask(t, conn, &wire.Frame{Type: message.TypeBind, Seq: seq, Headers: headers, Body: []byte(token)}); answer.Type != message.TypeConnected {
		t.Fatalf("hosting was answered with %d %q", answer.Type, answer.Body)
	}
	f := next(t, conn)
	if n, _ := f.Headers.Uint32(message.HeaderConn); f.Type != message.TypeBound || n != id {
		t.Fatalf("after hosting began came %d %q", f.Type, f.Body)
	}
}

// next is the next frame that comes.
func next(t *testing.T, conn net.Conn) *wire.Frame {
	t.Helper()
	must(t, conn.SetDeadline(time.Now().Add(networktest.Soon)))
	f, err := wire.Read(conn, wire.Bounds{Headers: 1 << 16, Body: 1 << 20})
	must(t, err)
	return f
}

// TestBindAgain has a host bind the same listener from a new connection while
// the old one is still there: it goes on under the same terminator, and the old
// connection is told.
func TestBindAgain(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("echo", false)
	host := login(t, n, n.AddIdentity("host"))
	token := host.session(service, "Bind")
	terminators := func() []string {
		var ids []string
		for _, d := range n.Admin.Get(networktest.Management + "terminators?limit=500").Want(200).List() {
			if d["service"].(M)["name"] == service {
				ids = append(ids, d["id"].(string))
			}
		}
		return ids
	}
	before, err := host.connect(router, host.token)
	must(t, err)
	bound(t, before, 1, 5, token, "listener", wire.Headers{})
	had := terminators()
	after, err := host.connect(router, host.token)
	must(t, err)
	bound(t, after, 1, 9, token, "listener", wire.Headers{})
	if f := next(t, before); f.Type != message.TypeClosed {
		t.Fatalf("the connection that hosted before heard %d %q", f.Type, f.Body)
	}
	must(t, before.Close())
	if now := terminators(); len(had) != 1 || len(now) != 1 || had[0] != now[0] {
		t.Fatalf("there was terminator %v, and now there is %v", had, now)
	}
	must(t, after.Close())
	n.Eventually("the terminator is gone with its host", func() bool { return len(terminators()) == 0 })
}

// TestOldHost hosts as clients did that number their own connections.
func TestOldHost(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("old", false)
	host := login(t, n, n.AddIdentity("host"))
	conn, err := host.connect(router, host.token)
	must(t, err)
	token := host.session(service, "Bind")
	bound(t, conn, 1, 5, token, "", wire.Headers{})
	user := n.Client(n.AddIdentity("user"))
	dialed := make(chan error, 1)
	go func() {
		c, err := user.Dial(t.Context(), service, sdk.DialOptions{})
		if err == nil {
			_, err = c.Write([]byte("hello"))
		}
		dialed <- err
	}()
	f := next(t, conn)
	if _, numbered := f.Headers.Uint32(message.HeaderRouterNumbers); f.Type != message.TypeDial || string(f.Body) != token || numbered {
		t.Fatalf("a dial looks like %d %v", f.Type, f.Headers)
	}
	reply := &wire.Frame{Type: message.TypeDialSuccess, Seq: 2, Headers: wire.Headers{}, Body: binary.LittleEndian.AppendUint32(nil, 77)}
	reply.Headers.SetUint32(message.HeaderReplyFor, uint32(f.Seq))
	if answer := ask(t, conn, reply); answer.Type != message.TypeConnected {
		t.Fatalf("an old host is told to begin with %d", answer.Type)
	}
	must(t, <-dialed)
	for {
		f := next(t, conn)
		if id, _ := f.Headers.Uint32(message.HeaderConn); f.Type == message.TypeData && id == 77 && string(f.Body) == "hello" {
			return
		}
	}
}

// TestTooManySockets has a client add sockets of either kind without end. The
// router takes only so many, and as many again when those have ended.
func TestTooManySockets(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	me := login(t, n, n.AddIdentity("me"))
	first, answer, err := me.socket(router, group("edge.default", "", nil))
	must(t, err)
	ask(t, first, &wire.Frame{Type: message.TypeLatency, Seq: 1}) // it is in
	id, secret := answer.Text(message.HeaderConnectionID), answer[message.HeaderGroupSecret]
	further := func() (conns []net.Conn) {
		for i := range 40 {
			conn, _, err := me.socket(router, group([]string{"edge.control", "edge.default"}[i%2], id, secret))
			if err == nil {
				conns = append(conns, conn)
			}
		}
		return conns
	}
	taken := further()
	if len(taken) != 15 {
		t.Fatalf("beside the first %d sockets are taken, want 15", len(taken))
	}
	for _, conn := range taken {
		must(t, conn.Close())
	}
	ask(t, first, &wire.Frame{Type: message.TypeLatency, Seq: 2})
	n.Eventually("there is room again", func() bool { return len(further()) > 0 })
}
