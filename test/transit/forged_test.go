package transit

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"testing"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/networktest"
)

// forger is a router in somebody else's hands: it has the router's papers, and
// puts what it likes in place of what clients and the network say.
type forger struct {
	t    *testing.T
	back string // the router itself
	as   []*raw // whose clients come

	mu     sync.Mutex
	typ    int32 // of frames in which it puts its own key; 0 is none
	public []byte
	change func(*wire.Frame) // what else it does to frames
}

// forge puts itself before a router.
func forge(t *testing.T, r *networktest.Router, as ...*raw) *forger {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r.Move(inner)
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	must(t, err)
	f := &forger{t: t, back: inner.Addr().String(), as: as, public: key.PublicKey().Bytes()}
	front, err := tls.Listen("tcp", r.Address, &tls.Config{
		Certificates: []tls.Certificate{r.Papers.Server}, ClientAuth: tls.RequestClientCert, NextProtos: []string{message.EdgeALPN},
	})
	must(t, err)
	t.Cleanup(func() { _ = front.Close() })
	go func() {
		for {
			conn, err := front.Accept()
			if err != nil {
				return
			}
			go f.carry(conn.(*tls.Conn))
		}
	}()
	return f
}

func (f *forger) in(typ int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.typ = typ
}

// does has it change frames in a way of its own.
func (f *forger) does(change func(*wire.Frame)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.change = change
}

func (f *forger) carry(conn *tls.Conn) {
	defer conn.Close()
	if conn.HandshakeContext(f.t.Context()) != nil {
		return
	}
	for _, as := range f.as {
		if !bytes.Equal(as.cert.Certificate[0], conn.ConnectionState().PeerCertificates[0].Raw) {
			continue
		}
		back, err := (&tls.Dialer{Config: &tls.Config{
			RootCAs: as.roots, Certificates: []tls.Certificate{as.cert}, NextProtos: []string{message.EdgeALPN},
		}}).DialContext(f.t.Context(), "tcp", f.back)
		if err != nil {
			return
		}
		var both sync.WaitGroup
		both.Go(func() { f.pump(back, conn) })
		both.Go(func() { f.pump(conn, back) })
		both.Wait()
	}
}

func (f *forger) pump(to, from net.Conn) {
	defer to.Close()
	for {
		frame, err := wire.Read(from, wire.Bounds{Headers: 1 << 16, Body: 1 << 20})
		if err != nil {
			return
		}
		f.mu.Lock()
		if f.typ != 0 && frame.Type == f.typ && frame.Headers[message.HeaderPublicKey] != nil {
			frame.Headers[message.HeaderPublicKey] = f.public
		}
		if f.change != nil {
			f.change(frame)
		}
		f.mu.Unlock()
		if _, err := to.Write(frame.Append(nil)); err != nil {
			return
		}
	}
}

// TestForgedKeys has a router that was taken over put its own key in the place
// of others', to read what is encrypted. Who dials notices that of the host; that
// of the dialer alone is of no use; and a host cannot be offered with another.
func TestForgedKeys(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	host, user := n.AddIdentity("host"), n.AddIdentity("user")
	f := forge(t, router, login(t, n, host), login(t, n, user))
	service, other := n.AddService("dialled", true), n.AddService("hosted", true)
	hosting, using := n.Client(host), n.Client(user)
	n.Echo(hosting, service)
	if err := exchange(within(t, networktest.Soon), using, service, 1000); err != nil {
		t.Fatalf("as long as nothing is forged: %v", err)
	}

	f.in(message.TypeConnected)
	_, err := using.Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
	if err == nil || !strings.Contains(err.Error(), "a key that none of its hosts has") {
		t.Errorf("a dial that is answered with the router's own key: %v", err)
	}
	f.in(message.TypeDial)
	if err := exchange(within(t, networktest.Soon), using, service, 1000); err == nil {
		t.Error("a dial with the router's own key has led to a connection")
	}
	// It is tried again for as long as one waits: there may be another router.
	f.in(message.TypeBind)
	_, err = hosting.Listen(within(t, networktest.Soon/12), other, sdk.ListenOptions{})
	if err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("hosting with the router's own key: %v", err)
	}
	if !n.Server.Logged("a router offers a host with another key than the host has told the controller") {
		t.Error("the controller does not log that a router offers another key")
	}
}

// TestHostKey has somebody who has the token of a client, as routers do, say with
// which key it hosts.
func TestHostKey(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("secret", true)
	host := login(t, n, n.AddIdentity("host"))
	conn, err := host.connect(router, host.token)
	must(t, err)
	h := wire.Headers{message.HeaderPublicKey: bytes.Repeat([]byte{7}, 32)}
	h.SetBool(message.HeaderRouterNumbers, true)
	bound(t, conn, 1, 5, host.session(service, "Bind"), "", h)

	first, own := strings.Repeat("07", 32), strings.Repeat("08", 32)
	thief := n.Server.Nobody(t).With("zt-session", host.token)
	thief.Put(clientAPI+"current-api-session/host-key", M{"key": own}).Want(401)
	holder := thief.Presenting(&host.cert)
	for _, wrong := range []string{"", "no number", own[:20]} {
		holder.Put(clientAPI+"current-api-session/host-key", M{"key": wrong}).Want(400)
	}
	id := holder.Get(clientAPI + "services?filter=name=%22" + service + "%22").Want(200).List()[0]["id"].(string)
	keys := clientAPI + "services/" + id + "/host-keys/"
	holder.Get(keys + own[:20]).Want(400)
	hosted := func(key string) bool { return holder.Get(keys + key).Want(200).Data()["hosted"].(bool) }
	if !hosted(first) || hosted(own) {
		t.Errorf("hosted with the key that was offered: %v, with another: %v", hosted(first), hosted(own))
	}
	holder.Put(clientAPI+"current-api-session/host-key", M{"key": own}).Want(200)
	if hosted(first) {
		t.Error("what was offered with another key is still there")
	}
}
