package torture

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

var badFrames = flag.Int("frames", 3000, "how many bad frames are sent")

// TestBadFrames says good hellos to a controller and a router, as a router, as a client
// and as the other end of a link, and then what nobody should say, also in the middle of
// what was well begun. Somebody else goes about their work meanwhile, and when it is over
// nothing of it is kept.
func TestBadFrames(t *testing.T) {
	n := networktest.New(t, servertest.Start(t, func(c *config.Config) { c.Log.Level = "error" }))
	a := &abuser{n: n, router: n.AddRouter("one"), chance: chance(t)}
	a.liar = n.Server.AddRouter(t)
	a.service = n.AddService("echo", false)
	n.Echo(n.Client(n.AddIdentity("host")), a.service)
	user := n.Client(n.AddIdentity("user"))
	a.login(t, n.AddIdentity("evil"))
	ways := []func(*testing.T, int){a.asRouter, a.asClient, a.asLink}
	for _, way := range ways {
		way(t, 100)
	}
	work(t, user, a.service)
	before, goroutines := heap(), runtime.NumGoroutine()
	const some = 200
	last := a.frames + *badFrames
	for i, sent := 0, 0; a.frames < last; i++ {
		if i%len(ways) == 0 {
			if i > 0 && a.frames == sent {
				t.Fatal("nobody takes a frame")
			}
			sent = a.frames
		}
		ways[i%len(ways)](t, min(some, last-a.frames))
		for tries := 1; ; tries++ { // a machine that is busy holds up any of them, but not all
			begun := time.Now()
			work(t, user, a.service)
			if took := time.Since(begun); took <= time.Second {
				break
			} else if tries == 10 {
				t.Fatalf("a dial of somebody else takes %s after %d frames, ten times", took, a.frames)
			}
		}
	}
	t.Logf("%d frames on %d connections; %d times it was cut off for a while", a.frames, a.connections, a.refused)
	servertest.Eventually(t, time.Minute, "the end of what the frames began", func() bool { return runtime.NumGoroutine() <= goroutines+20 })
	most := before + 32<<20 + uint64(*badFrames)*300 // lines of log, which the test keeps
	servertest.Eventually(t, time.Minute, "memory as before", func() bool { return heap() <= most })
	t.Logf("memory in use was %d MiB and is %d MiB", before>>20, heap()>>20)
}

// work is what somebody does who means well.
func work(t *testing.T, c *sdk.Client, service string) {
	t.Helper()
	conn, err := c.Dial(t.Context(), service, sdk.DialOptions{})
	if err != nil {
		t.Fatalf("somebody else cannot dial: %v", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(networktest.Soon))
	want := bytes.Repeat([]byte("well meant "), 100)
	if _, err := conn.Write(want); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("somebody else gets other bytes back: %v", err)
	}
}

// abuser is whoever sends bad frames.
type abuser struct {
	n       *networktest.Network
	router  *networktest.Router
	liar    *servertest.Router // enrolled, and no better for it
	service string
	chance  *rand.Rand

	cert        tls.Certificate
	roots       *x509.CertPool
	token       string // of its API session
	dial, host  string // tokens of sessions
	frames      int
	connections int
	refused     int
}

func (a *abuser) login(t *testing.T, i networktest.Identity) {
	t.Helper()
	id, err := remote.ReadIdentity(i.File)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = tls.X509KeyPair([]byte(id.ID.Cert), []byte(id.ID.Key)); err != nil {
		t.Fatal(err)
	}
	a.roots = x509.NewCertPool()
	a.roots.AppendCertsFromPEM([]byte(id.ID.CA))
	c := a.n.Server.Nobody(t).Presenting(&a.cert)
	a.token = c.Post("/edge/client/v1/authenticate?method=cert", M{}).Want(200).Data()["token"].(string)
	c.Token = a.token
	for _, service := range c.Get("/edge/client/v1/services?limit=500").Want(200).List() {
		if service["name"] == a.service {
			a.dial = c.Post("/edge/client/v1/sessions", M{"serviceId": service["id"], "type": "Dial"}).Want(201).Data()["token"].(string)
			a.host = c.Post("/edge/client/v1/sessions", M{"serviceId": service["id"], "type": "Bind"}).Want(201).Data()["token"].(string)
		}
	}
}

// types are those of all frames that anybody sends, and some that nobody does.
var types = slices.Concat(
	span(0, 6), span(1000, 1056), span(1100, 1104), span(20000, 20003), span(20100, 20103), span(20200, 20220), span(20300, 20304),
	span(20400, 20416), span(20500, 20506), span(31000, 31004), span(60780, 60810), []int32{-1, -33, 1 << 30},
)

func span(from, to int32) (all []int32) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// bodies are those of messages as they should be, before they are spoilt.
func (a *abuser) bodies() [][]byte {
	return [][]byte{
		nil, []byte(a.dial), []byte(a.host), []byte("{}"),
		message.Marshal(&message.CreateTerminator{Address: "x", SessionToken: a.host, Cost: 1}),
		message.Marshal(&message.RemoveTerminators{IDs: []string{"x"}}),
		message.Marshal(&message.UpdateTerminator{SessionToken: a.host, TerminatorID: "x", UpdateCost: true, Cost: 9}),
		message.Marshal(&message.Fault{Subject: message.FaultIngress, ID: "x"}),
		message.Marshal(&message.Links{Links: []message.Link{{ID: "l", DialAddress: "tls:127.0.0.1:1"}}}),
		message.Marshal(&message.PeerStates{Changes: []message.PeerState{{ID: a.router.ID, State: message.PeerUnhealthy}}}),
		message.Marshal(&message.RemoveTerminator{SessionToken: a.host, TerminatorID: "x"}),
		bytes.Repeat([]byte{0xff}, 300), bytes.Repeat([]byte{0x0a, 0x80}, 40),
	}
}

// frame makes one: of any type, with headers that somebody reads, and a body that was one.
func (a *abuser) frame(of []int32, headers []int32) *wire.Frame {
	r := a.chance
	f := &wire.Frame{Type: of[r.IntN(len(of))], Seq: int32(100 + a.frames), Headers: wire.Headers{}}
	if r.IntN(20) == 0 {
		f.Seq = int32(r.Uint32())
	}
	for range r.IntN(5) {
		value := make([]byte, []int{0, 1, 2, 4, 4, 4, 8, 24, 40, 500}[r.IntN(10)])
		for i := range value {
			if r.IntN(2) == 0 {
				value[i] = byte(r.Uint32())
			}
		}
		f.Headers[headers[r.IntN(len(headers))]] = value
	}
	if r.IntN(3) > 0 {
		f.Headers.SetUint32(message.HeaderConn, uint32(1+r.IntN(3)))
	}
	bodies := a.bodies()
	f.Body = slices.Clone(bodies[r.IntN(len(bodies))])
	switch r.IntN(4) {
	case 0:
		f.Body = f.Body[:r.IntN(len(f.Body)+1)]
	case 1:
		for range min(len(f.Body), 1+r.IntN(4)) {
			f.Body[r.IntN(len(f.Body))] ^= 1 << r.IntN(8)
		}
	case 2:
		f.Body = append(f.Body, make([]byte, r.IntN(2000))...)
	}
	return f
}

// say sends frames on connections, a new one whenever the other side has had enough.
func (a *abuser) say(t *testing.T, n int, connect func() (net.Conn, error), of, headers []int32, first ...*wire.Frame) {
	t.Helper()
	for n > 0 {
		conn, err := connect()
		if err != nil { // it was cut off for a while, in which others have a turn
			a.refused++
			return
		}
		a.connections++
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		_ = conn.SetWriteDeadline(time.Now().Add(networktest.Soon))
		for _, f := range first {
			if _, err = conn.Write(f.Append(nil)); err != nil {
				break
			}
		}
		for life := 5 + a.chance.IntN(100); n > 0 && life > 0 && err == nil; n, life = n-1, life-1 {
			data := a.frame(of, headers).Append(nil)
			switch a.chance.IntN(60) {
			case 0:
				data[a.chance.IntN(len(data))] ^= 1 << a.chance.IntN(8)
			case 1:
				data = data[:a.chance.IntN(len(data))]
			}
			_, err = conn.Write(data)
			a.frames++
		}
		_ = conn.Close()
	}
}

func (a *abuser) greeted(t *testing.T, address string, cfg *tls.Config, h channel.Hello) (net.Conn, error) {
	conn, err := (&tls.Dialer{Config: cfg}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	if _, err = channel.Greet(conn, time.Now().Add(networktest.Soon), h); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func (a *abuser) asRouter(t *testing.T, n int) {
	if a.connections%20 == 19 { // one that has connected too often has to wait
		a.liar = a.n.Server.AddRouter(t)
	}
	opt := a.liar.Options()
	cfg := opt.TLS.Clone()
	cfg.NextProtos = []string{message.ALPN}
	h := wire.Headers{}
	h.SetText(message.HeaderVersion, "v1.6.20|abc|2026-08-20 19:41:33|linux|amd64")
	a.say(t, n, func() (net.Conn, error) {
		return a.greeted(t, opt.Address, cfg, channel.Hello{ID: a.liar.ID, Headers: h})
	}, types, slices.Concat(span(0, 30), span(1000, 1036)))
}

func (a *abuser) asClient(t *testing.T, n int) {
	cfg := &tls.Config{RootCAs: a.roots, Certificates: []tls.Certificate{a.cert}, NextProtos: []string{message.EdgeALPN}}
	h := wire.Headers{}
	h.SetText(message.HeaderClientToken, a.token)
	numbered := func(id uint32) wire.Headers {
		h := wire.Headers{}
		h.SetUint32(message.HeaderConn, id)
		return h
	}
	a.say(t, n, func() (net.Conn, error) {
		return a.greeted(t, a.router.Address, cfg, channel.Hello{ID: "evil", Headers: h})
	}, types, slices.Concat(span(1000, 1036), span(2255, 2261), span(2000, 2003), span(20, 26)),
		&wire.Frame{Type: message.TypeConnect, Seq: 2, Headers: numbered(1), Body: []byte(a.dial)}, // in the middle of a circuit
		&wire.Frame{Type: message.TypeBind, Seq: 3, Headers: numbered(2), Body: []byte(a.host)})
}

func (a *abuser) asLink(t *testing.T, n int) {
	cfg := &tls.Config{RootCAs: a.roots, Certificates: []tls.Certificate{a.liar.Cert}, NextProtos: []string{message.LinkALPN}}
	a.say(t, n, func() (net.Conn, error) {
		h := wire.Headers{}
		h.SetText(message.HeaderLinkConn, servertest.Unique("conn"))
		h.SetText(message.HeaderLinkRouter, a.liar.ID)
		h.SetText(message.HeaderLinkVersion, "v1.6.20")
		h.SetText(message.HeaderLinkBinding, "transport")
		h.SetUint32(message.HeaderLinkIteration, uint32(a.connections))
		return a.greeted(t, a.router.Address, cfg, channel.Hello{ID: servertest.Unique("link"), Headers: h})
	}, types, slices.Concat(span(0, 10), span(20, 26), span(2000, 2003), span(2255, 2261)))
}
