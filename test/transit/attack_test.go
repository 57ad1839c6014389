package transit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/networktest"
)

const clientAPI = "/edge/client/v1/"

// raw is a client that says what it likes.
type raw struct {
	t     *testing.T
	n     *networktest.Network
	cert  tls.Certificate
	roots *x509.CertPool
	token string
}

// login gets an identity an API session.
func login(t *testing.T, n *networktest.Network, i networktest.Identity) *raw {
	t.Helper()
	id, err := remote.ReadIdentity(i.File)
	must(t, err)
	r := &raw{t: t, n: n, roots: x509.NewCertPool()}
	r.cert, err = tls.X509KeyPair([]byte(id.ID.Cert), []byte(id.ID.Key))
	must(t, err)
	r.roots.AppendCertsFromPEM([]byte(id.ID.CA))
	r.token = n.Server.Nobody(t).Presenting(&r.cert).Post(clientAPI+"authenticate?method=cert", M{}).Want(200).Data()["token"].(string)
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// session gets the token of a session to dial or host.
func (r *raw) session(service, typ string) string {
	r.t.Helper()
	mine := r.n.Server.Nobody(r.t).Presenting(&r.cert).With("zt-session", r.token)
	var id string
	for _, s := range mine.Get(clientAPI + "services?limit=500").Want(200).List() {
		if s["name"] == service {
			id = s["id"].(string)
		}
	}
	return mine.Post(clientAPI+"sessions", M{"serviceId": id, "type": typ}).Want(201).Data()["token"].(string)
}

// connect says hello to a router with a token, and returns what comes.
func (r *raw) connect(router *networktest.Router, token string) (net.Conn, error) {
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: r.roots, Certificates: []tls.Certificate{r.cert}}}).DialContext(r.t.Context(), "tcp", router.Address)
	if err != nil {
		return nil, err
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	h := wire.Headers{}
	if token != "" {
		h.SetText(message.HeaderClientToken, token)
	}
	_, err = channel.Greet(conn, time.Now().Add(networktest.Soon), channel.Hello{ID: "whoever", Headers: h})
	return conn, err
}

// cut waits until a connection is closed by the other side.
func cut(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(networktest.Soon))
	_, err := io.Copy(io.Discard, conn)
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		t.Fatal("was not cut off")
	}
}

// ask sends a frame and returns the reply.
func ask(t *testing.T, conn net.Conn, f *wire.Frame) *wire.Frame {
	t.Helper()
	must(t, conn.SetDeadline(time.Now().Add(networktest.Soon)))
	_, err := conn.Write(f.Append(nil))
	must(t, err)
	for {
		got, err := wire.Read(conn, wire.Bounds{Headers: 1 << 16, Body: 1 << 20})
		must(t, err)
		if n, ok := got.Headers.Uint32(message.HeaderReplyFor); ok && int32(n) == f.Seq {
			return got
		}
	}
}

// TestStrangers have no live API session of their own and are not let in.
func TestStrangers(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	me, other := login(t, n, n.AddIdentity("me")), login(t, n, n.AddIdentity("other"))

	t.Run("no certificate", func(t *testing.T) {
		t.Parallel()
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: me.roots}}).DialContext(t.Context(), "tcp", router.Address)
		if err == nil { // the refusal may come with the first answer
			defer conn.Close()
			_, err = conn.Read(make([]byte, 1))
		}
		if err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Fatalf("was let in: %v", err)
		}
	})
	for _, c := range []struct{ name, token, logged string }{
		{"no token", "", "it shows no token"},
		{"a token of nobody", "c0ffee", "there is no API session with its token"},
		{"a token of another", other.token, "its certificate does not belong to the API session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if conn, err := me.connect(router, c.token); err == nil {
				cut(t, conn)
			}
			n.Eventually("it is logged", func() bool { return router.Logged(c.logged) })
		})
	}
	t.Run("a session that is over", func(t *testing.T) {
		t.Parallel()
		gone := login(t, n, n.AddIdentity("gone"))
		n.Server.Nobody(t).Presenting(&gone.cert).With("zt-session", gone.token).Delete(clientAPI + "current-api-session").Want(200)
		if conn, err := gone.connect(router, gone.token); err == nil {
			cut(t, conn)
		}
	})
}

// TestCutOff has clients lose what they came in with: they are cut off within
// two seconds.
func TestCutOff(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	for name, lose := range map[string]func(i networktest.Identity, r *raw){
		"the API session ended": func(_ networktest.Identity, r *raw) {
			n.Server.Nobody(t).Presenting(&r.cert).With("zt-session", r.token).Delete(clientAPI + "current-api-session").Want(200)
		},
		"the identity was disabled": func(i networktest.Identity, _ *raw) {
			n.Admin.Post(networktest.Management+"identities/"+i.ID+"/disable", M{"durationMinutes": 0}).Want(200)
		},
		"the identity was deleted": func(i networktest.Identity, _ *raw) {
			n.Admin.Delete(networktest.Management + "identities/" + i.ID).Want(200)
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := n.AddIdentity(strings.ReplaceAll(name, " ", "-"))
			r := login(t, n, i)
			conn, err := r.connect(router, r.token)
			must(t, err)
			// Who is answered is in.
			ask(t, conn, &wire.Frame{Type: message.TypeLatency, Seq: 7})
			lose(i, r)
			watch := machine.Begin(t)
			cut(t, conn)
			if took, most := watch.Took(2 * time.Second); took > most {
				t.Fatalf("was cut off after %v, and not within %v", took, most)
			}
			n.Eventually("it is logged", func() bool { return router.Logged("identity="+i.ID) && router.Logged("its API session is over") })
		})
	}
}

// TestCircuitsOfOthers has a client name connections and circuits that are
// another's: nothing of it arrives, and nothing ends.
func TestCircuitsOfOthers(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("echo", false)
	host := n.Client(n.AddIdentity("host"))
	n.Echo(host, service)
	user := n.Client(n.AddIdentity("user"))
	conn, err := user.Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
	must(t, err)
	defer conn.Close()
	say := func(text string) {
		t.Helper()
		_ = conn.SetDeadline(time.Now().Add(networktest.Soon))
		_, err := conn.Write([]byte(text))
		must(t, err)
		got := make([]byte, len(text))
		_, err = io.ReadFull(conn, got)
		if err != nil || string(got) != text {
			t.Fatalf("said %q and heard %q: %v", text, got, err)
		}
	}
	say("before")
	circuit := n.Admin.Get("/fabric/v1/circuits").Want(200).List()
	id := ""
	for _, c := range circuit {
		if slices.ContainsFunc(c["path"].(M)["nodes"].([]any), func(node any) bool { return node.(M)["id"] == router.ID }) {
			id = c["id"].(string)
		}
	}
	if id == "" {
		t.Fatalf("there is no circuit at the router: %v", circuit)
	}
	r := login(t, n, n.AddIdentity("attacker"))
	evil, err := r.connect(router, r.token)
	must(t, err)
	for number := range uint32(5) {
		for _, conn := range []uint32{number, message.FirstAssigned + number} {
			for _, typ := range []int32{message.TypeData, message.TypePayload, message.TypeAck, message.TypeStreamControl, message.TypeClosed, message.TypeUnbind, message.TypeCircuitEnded} {
				h := wire.Headers{}
				h.SetUint32(message.HeaderConn, conn)
				h.SetText(message.HeaderStreamCircuit, id)
				h.SetUint64(message.HeaderStreamSeq, uint64(number)+1)
				body := []byte("evil")
				if typ == message.TypeCircuitEnded {
					body = []byte(id)
				}
				_, err := evil.Write((&wire.Frame{Type: typ, Seq: 9, Headers: h, Body: body}).Append(nil))
				must(t, err)
			}
		}
	}
	// Everything was taken when this is answered.
	ask(t, evil, &wire.Frame{Type: message.TypeLatency, Seq: 7})
	say("after")
}

// TestForeignSessions has a client dial and host with the session of another:
// the controller refuses, and says why.
func TestForeignSessions(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("echo", false)
	host := n.Client(n.AddIdentity("host"))
	n.Echo(host, service)
	victim, evil := login(t, n, n.AddIdentity("victim")), login(t, n, n.AddIdentity("evil"))
	token := victim.session(service, "Dial")
	conn, err := evil.connect(router, evil.token)
	must(t, err)
	h := wire.Headers{}
	h.SetUint32(message.HeaderConn, 1)
	answer := ask(t, conn, &wire.Frame{Type: message.TypeConnect, Seq: 5, Headers: h, Body: []byte(token)})
	if answer.Type != message.TypeClosed || !strings.Contains(string(answer.Body), "somebody else") {
		t.Fatalf("dialling with another's session: %d %q", answer.Type, answer.Body)
	}
	// With its own it works: so it was the session.
	own := ask(t, conn, &wire.Frame{Type: message.TypeConnect, Seq: 6, Headers: h, Body: []byte(evil.session(service, "Dial"))})
	if own.Type != message.TypeConnected {
		t.Fatalf("dialling with its own: %d %q", own.Type, own.Body)
	}
}

// TestTooMuch has a client ask for more than it may have: it is told, and others
// are not concerned.
func TestTooMuch(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("echo", true)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	r := login(t, n, n.AddIdentity("greedy"))
	conn, err := r.connect(router, r.token)
	must(t, err)
	must(t, conn.SetDeadline(time.Now().Add(networktest.Soon)))
	const most = 1000
	sent := make(chan error, 1)
	go func() {
		for i := range uint32(most + 10) {
			h := wire.Headers{}
			h.SetUint32(message.HeaderConn, i+1)
			if _, err := conn.Write((&wire.Frame{Type: message.TypeBind, Seq: int32(i) + 1, Headers: h, Body: []byte("no session")}).Append(nil)); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	refused := 0
	for replies := 0; replies < most+10; {
		f, err := wire.Read(conn, wire.Bounds{Headers: 1 << 16, Body: 1 << 20})
		must(t, err)
		if _, reply := f.Headers.Uint32(message.HeaderReplyFor); reply {
			if replies++; f.Type == message.TypeClosed && strings.Contains(string(f.Body), "hosts too much") {
				refused++
			}
		}
	}
	must(t, <-sent)
	t.Logf("%d of %d were refused at once", refused, most+10)
	if err := exchange(within(t, networktest.Soon), n.Client(n.AddIdentity("user")), service, 1000); err != nil {
		t.Fatal(err)
	}
	// What is no frame, or too large for one, ends its own connection alone.
	for i, garbage := range [][]byte{[]byte(fmt.Sprintf("GET / HTTP/1.1%020d", 0)), (&wire.Frame{Type: message.TypeData, Body: make([]byte, 100)}).Append(nil)} {
		if i == 1 {
			garbage[19] = 0x7f // says that two gigabytes follow
		}
		bad, err := r.connect(router, r.token)
		must(t, err)
		_, err = bad.Write(garbage)
		must(t, err)
		cut(t, bad)
	}
}

// TestHeldHandshakes has an address hold sockets that show nothing: whoever
// comes from it with a certificate is still served.
func TestHeldHandshakes(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("echo", true)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	for range 800 {
		conn, err := net.Dial("tcp", router.Address)
		must(t, err)
		defer conn.Close()
	}
	if err := exchange(within(t, networktest.Soon), n.Client(n.AddIdentity("user")), service, 1000); err != nil {
		t.Fatal(err)
	}
}

// TestLogOfStrangers has an address be turned away again and again: the log tells
// of it, and is not filled by it.
func TestLogOfStrangers(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	began := time.Now()
	for range 200 {
		conn, err := net.Dial("tcp", router.Address)
		must(t, err)
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n")
		must(t, err)
		cut(t, conn)
		_ = conn.Close()
	}
	if lines := router.Count("turned away"); lines == 0 || lines > 70+int(time.Since(began).Seconds()) {
		t.Fatalf("the log has %d lines of 200 who were turned away within seconds", lines)
	}
}

// TestLogOfClients has an identity come and go again and again: the log tells of
// it, and is not filled by it.
func TestLogOfClients(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	r := login(t, n, n.AddIdentity("restless"))
	const times = 150
	began := time.Now()
	for range times {
		conn, err := r.connect(router, r.token)
		must(t, err)
		ask(t, conn, &wire.Frame{Type: message.TypeLatency, Seq: 1}) // it is in
		must(t, conn.Close())
	}
	if lines := router.Count("a client is "); lines == 0 || lines > 122+int(2*time.Since(began).Seconds()) {
		t.Fatalf("the log has %d lines of %d clients within seconds", lines, times)
	}
}
